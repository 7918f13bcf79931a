//! Nobody grants what they do not have: the check before a role or a binding is written.

use super::{Attributes, OnResource, allows, coverage, grants::RoleRef, is_master, rule, rule::Rule};
use crate::{call::Call, refusal::Refusal};
use api::{go, object};
use serde::Deserialize;
use serde_json::Value;

const GROUP: &str = "rbac.authorization.k8s.io";

/// Refuses a role that holds more than its writer does, and a binding to such a role. Other objects pass.
pub(crate) async fn check(call: &Call, draft: &Value, current: Option<&Value>) -> Result<(), Refusal> {
    let resource = call.target.resource.as_str();
    let is_role = matches!(resource, "roles" | "clusterroles");
    let is_binding = matches!(resource, "rolebindings" | "clusterrolebindings");
    if call.target.group != GROUP || !(is_role || is_binding) || is_master(call.caller()) {
        return Ok(());
    }
    if current.is_some_and(|current| is_same_to_readers(draft, current)) {
        return Ok(());
    }
    match is_role {
        true => Box::pin(check_role(call, draft, current)).await,
        false => Box::pin(check_binding(call, draft)).await,
    }
}

/// Whether only that changes which the garbage collector changes.
fn is_same_to_readers(draft: &Value, current: &Value) -> bool {
    let stripped = |object: &Value| {
        let mut object = object.clone();
        let metadata = object::metadata_mut(&mut object);
        for field in ["ownerReferences", "finalizers", "managedFields", "selfLink"] {
            metadata.remove(field);
        }
        object
    };
    stripped(draft) == stripped(current)
}

async fn check_role(call: &Call, draft: &Value, current: Option<&Value>) -> Result<(), Refusal> {
    let target = &call.target;
    let escalate = OnResource {
        verb: "escalate",
        group: GROUP,
        resource: &target.resource,
        namespace: &target.namespace,
        name: &target.name,
        ..OnResource::default()
    };
    if may(call, escalate).await? {
        return Ok(());
    }
    let name = object::name(draft);
    confirm(call, name, &rule::rules_of(draft)).await?;
    // It can gather anything.
    if gathers(draft) || current.is_some_and(gathers) {
        let why = "must have cluster-admin privileges to use the aggregationRule";
        let confirmed = confirm(call, name, &Rule::everything()).await;
        confirmed.map_err(|_| Refusal::forbidden(&call.resource(), name, why))?;
    }
    Ok(())
}

fn gathers(role: &Value) -> bool {
    role["aggregationRule"]["clusterRoleSelectors"].as_array().is_some_and(|them| !them.is_empty())
}

async fn check_binding(call: &Call, draft: &Value) -> Result<(), Refusal> {
    // What cannot be read is refused by validation.
    let Ok(role) = RoleRef::deserialize(&draft["roleRef"]) else { return Ok(()) };
    let namespace = call.target.namespace.as_str();
    let resource = if role.is_of_cluster() { "clusterroles" } else { "roles" };
    let group = if role.api_group.is_empty() { GROUP } else { &role.api_group };
    let bind =
        OnResource { verb: "bind", group, resource, namespace, name: &role.name, ..OnResource::default() };
    if matches!(role.kind.as_str(), "Role" | "ClusterRole") && may(call, bind).await? {
        return Ok(());
    }
    let rules = call.inner.authorizer.rbac.rules_of(call.inner.store.as_ref(), &role, namespace).await;
    let rules = rules?;
    // Kubernetes: it is the binding that it says is not there.
    let rules = rules.ok_or_else(|| Refusal::not_found(&call.resource(), &role.name))?;
    confirm(call, object::name(draft), &rules).await
}

async fn may(call: &Call, wanted: OnResource<'_>) -> Result<bool, Refusal> {
    let decision = allows(&call.inner, call.caller(), &Attributes::Resource(wanted)).await?;
    Ok(decision.is_allowed)
}

/// Whether the caller has all that `rules` give.
async fn confirm(call: &Call, name: &str, rules: &[Rule]) -> Result<(), Refusal> {
    let (caller, inner) = (call.caller(), &call.inner);
    let held = inner.authorizer.rbac.rules_for(inner.store.as_ref(), caller, &call.target.namespace).await;
    let (held, lost) = held?;
    let missing = coverage::missing(&held, rules);
    if missing.is_empty() {
        return Ok(());
    }
    let mut text = format!(
        "user {} (groups={}) is attempting to grant RBAC permissions not currently held:\n{}",
        go::quote(&caller.name),
        rule::quoted(&caller.groups),
        missing.join("\n")
    );
    if !lost.is_empty() {
        text.push_str(&format!("; resolution errors: [{}]", RoleRef::in_one(&lost, RoleRef::not_found)));
    }
    Err(Refusal::forbidden(&call.resource(), name, text))
}
