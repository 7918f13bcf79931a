//! The status of a ValidatingAdmissionPolicy: type errors of its expressions.

use crate::{
    Inner,
    call::{Call, Committed},
    refusal::Refusal,
    request::Target,
    served::{Kind, Served},
    stored::Stored,
    write::{self, ByServer, Change, DraftState, Next},
};
use api::object;
use expression::Type;
use kinds::policy::{Names, Offer, Wanted, typed};
use serde_json::{Value, json};
use std::sync::Arc;

const GROUP: &str = "admissionregistration.k8s.io";
const RESOURCE: &str = "validatingadmissionpolicies";
// Kubernetes: the field manager of the status.
const MANAGER: &str = "validatingadmissionpolicy-status-controller";
/// Kubernetes: limit on the kinds that a policy is checked against.
const MAX_KINDS: usize = 10;

/// A kind that a policy matches.
struct TypedKind {
    title: String,
    ty: Type,
}

pub(super) fn concerns(served: &Served, target: &Target) -> bool {
    served.is(GROUP, RESOURCE) && target.subresource.is_empty()
}

/// Type-checks the policies that were written.
pub(super) async fn after(call: &Call, commits: &[Committed]) -> Result<(), Refusal> {
    for commit in commits.iter().filter(|commit| commit.after.is_some()) {
        let write = ByServer {
            resource: (GROUP, "v1", RESOURCE),
            name: &commit.name,
            subresource: "status",
            field_manager: MANAGER,
            ..ByServer::default()
        };
        let Some(call) = write.call(&call.inner) else { return Ok(()) };
        write::change(&call, &mut TypeCheck).await?;
    }
    Ok(())
}

/// Writes the type errors of a policy's expressions into its status.
struct TypeCheck;

impl Change for TypeCheck {
    async fn next(&mut self, call: &Call, stored: &Stored, live: Value) -> Result<Next, Refusal> {
        let generation = object::generation(&live);
        if generation <= live["status"]["observedGeneration"].as_i64().unwrap_or(0) {
            return Ok(Next::Keep);
        }
        let warnings = warnings(&call.inner, &live["spec"]).await?;
        let mut draft = live.clone();
        draft["status"]["observedGeneration"] = generation.into();
        draft["status"]["typeChecking"] = match warnings.is_empty() {
            true => json!({}),
            false => json!({"expressionWarnings": warnings}),
        };
        let next = write::prepare_next(call, (stored, &live), draft, DraftState::AsSent).await?;
        Ok(next.map_or(Next::Keep, Next::Write))
    }

    async fn absent(&mut self, _: &Call) -> Result<Option<write::Checked>, Refusal> {
        Ok(None)
    }
}

/// The type errors of each expression, by kind.
async fn warnings(inner: &Inner, spec: &Value) -> Result<Vec<Value>, Refusal> {
    let kinds = kinds_of(inner, spec).await?;
    let params = &spec["paramKind"];
    let params_type = match params["kind"].as_str() {
        Some(kind) => {
            let api_version = params["apiVersion"].as_str().unwrap_or_default();
            all_served(inner)
                .await?
                .iter()
                .find(|it| it.api_version() == api_version && it.resource.kind == kind)
                .map(|it| type_of(it))
        }
        None => None,
    };
    let offer = Offer { params: params.is_object(), authorizer: true, patches: false };
    let scopes: Vec<(String, Names)> = kinds
        .into_iter()
        .map(|kind| {
            let names = Names::new(offer).with_types(&kind.ty, params_type.as_ref()).composed();
            let variables = spec["variables"].as_array().into_iter().flatten();
            let names = variables.fold(names, |names, variable| {
                let text = |member: &str| variable[member].as_str().unwrap_or_default();
                let compiled = names.compile(text("expression"), Wanted::Anything).ok();
                names.define(text("name"), compiled.as_ref())
            });
            (kind.title, names)
        })
        .collect();
    let mut warnings = Vec::new();
    for (at, validation) in spec["validations"].as_array().into_iter().flatten().enumerate() {
        for member in ["expression", "messageExpression"] {
            let source = validation[member].as_str().filter(|source| !source.is_empty());
            let Some(source) = source else { continue };
            let doubts = scopes
                .iter()
                .filter_map(|(title, names)| Some(format!("{title}: {}\n", names.doubts(source)?)));
            let doubts: Vec<String> = doubts.collect();
            if !doubts.is_empty() {
                let field = format!("spec.validations[{at}].{member}");
                warnings.push(json!({"fieldRef": field, "warning": doubts.join("\n")}));
            }
        }
    }
    Ok(warnings)
}

/// The kinds that the rules name without wildcards, in order.
async fn kinds_of(inner: &Inner, spec: &Value) -> Result<Vec<TypedKind>, Refusal> {
    let all = all_served(inner).await?;
    let mut found: Vec<&Arc<Served>> = Vec::new();
    for rule in spec["matchConstraints"]["resourceRules"].as_array().into_iter().flatten() {
        let texts = |member: &str| {
            let list = rule[member].as_array().into_iter().flatten();
            list.filter_map(Value::as_str).map(str::to_owned).collect::<Vec<_>>()
        };
        let (groups, versions) = (texts("apiGroups"), texts("apiVersions"));
        if groups.iter().chain(&versions).any(|it| it.contains('*')) {
            continue;
        }
        let resources = texts("resources");
        let named = all.iter().filter(|it| {
            let has = |list: &[String], wanted: &str| list.iter().any(|it| it == wanted);
            let resource = &it.resource;
            has(&groups, &resource.group)
                && has(&versions, &resource.version)
                && has(&resources, &resource.name)
        });
        found.extend(named);
    }
    let order = |it: &&Arc<Served>| {
        let resource = &it.resource;
        (resource.group.to_string(), resource.version.to_string(), resource.kind.to_string())
    };
    found.sort_by_key(order);
    found.dedup_by_key(|it| order(it));
    found.truncate(MAX_KINDS);
    let checked = found.into_iter().map(|it| {
        let resource = &it.resource;
        let title = format!("{}/{}, Kind={}", resource.group, resource.version, resource.kind);
        TypedKind { title, ty: type_of(it) }
    });
    Ok(checked.collect())
}

fn type_of(served: &Served) -> Type {
    match &served.kind {
        Kind::BuiltIn { types, of } => typed::built_in(types, *of),
        Kind::Custom(custom) => typed::custom(custom.compiled().types(), custom.compiled().of()),
    }
}

async fn all_served(inner: &Inner) -> Result<Vec<Arc<Served>>, Refusal> {
    let registry = &inner.registry;
    let built_in = kinds::resources().iter().filter_map(|it| registry.find(&it.group, &it.version, &it.name));
    let mut all: Vec<Arc<Served>> = built_in.cloned().collect();
    let customs = registry.customs(&*inner.store).await?;
    for it in customs.all() {
        let resource = &it.resource;
        all.extend(registry.served(&*inner.store, &resource.group, &resource.version, &resource.name).await?);
    }
    Ok(all)
}
