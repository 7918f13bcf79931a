//! A request as policies and webhooks see it: operation, resource and user, and its objects in any version.

use super::{Operation, Review, authority::Authority};
use crate::{
    call::Call,
    convert,
    input::{self, Encoding, Undecodable},
    lookup,
    refusal::Refusal,
    scale_view,
    served::{Kind, Served},
};
use api::{kind::GroupResource, object};
use schema::{
    decode::FieldValidation,
    types::{TypeId, Types},
};
use serde_json::{Map, Value, json};
use std::sync::{Arc, OnceLock};
use tokio::sync::OnceCell;

/// What the written object is.
enum ReviewedKind {
    Object,
    /// The object is stored, its Scale is reviewed.
    Scale,
    /// A subresource request: an Eviction or a Binding.
    Request(&'static Types, TypeId),
}

/// The parts of a request that stay the same during admission. The object changes, and is passed in.
#[derive(Debug)]
pub(super) struct Facts<'a> {
    pub(super) call: &'a Call,
    pub(super) operation: Operation,
    pub(super) old: Option<&'a Value>,
    authority: OnceLock<Arc<Authority>>,
    /// The same resource in other versions and groups.
    equivalents: OnceCell<Vec<Arc<Served>>>,
    namespace: OnceCell<Option<Value>>,
}

// Kubernetes: webhook and policy configurations are exempt, or a broken one could never be repaired.
const EXEMPT: [&str; 6] = [
    "validatingwebhookconfigurations",
    "mutatingwebhookconfigurations",
    "validatingadmissionpolicies",
    "validatingadmissionpolicybindings",
    "mutatingadmissionpolicies",
    "mutatingadmissionpolicybindings",
];

impl<'a> Facts<'a> {
    pub(super) fn of(review: &Review<'a>) -> Facts<'a> {
        Facts {
            call: review.call,
            operation: review.operation,
            old: review.old,
            authority: OnceLock::new(),
            equivalents: OnceCell::new(),
            namespace: OnceCell::new(),
        }
    }

    /// Answers the authorizer calls of expressions for this caller.
    pub(super) fn authority(&self) -> &Arc<Authority> {
        self.authority.get_or_init(|| Arc::new(Authority::new(self.call.caller().clone())))
    }

    /// Whether policies and webhooks are skipped.
    pub(super) fn is_exempt(&self) -> bool {
        let served = &self.call.served;
        EXEMPT.iter().any(|resource| served.is("admissionregistration.k8s.io", resource))
    }

    pub(super) fn resource(&self) -> &str {
        &self.call.served.resource.name
    }

    pub(super) fn subresource(&self) -> &str {
        &self.call.target.subresource
    }

    /// The object's name; empty where it is still to be generated.
    pub(super) fn name<'v>(&'v self, object: &'v Value) -> &'v str {
        match self.call.target.name.as_str() {
            "" => object::name(object),
            name => name,
        }
    }

    /// Kubernetes: the namespace of a Namespace is itself.
    pub(super) fn namespace<'v>(&'v self, object: &'v Value) -> &'v str {
        if self.is_namespace() { self.name(object) } else { &self.call.target.namespace }
    }

    pub(super) fn is_namespace(&self) -> bool {
        self.call.served.is("", "namespaces")
    }

    pub(super) fn operation(&self) -> &'static str {
        self.operation.text()
    }

    pub(super) fn is_dry_run(&self) -> bool {
        self.call.options.is_dry_run()
    }

    /// 403 for this object.
    pub(super) fn forbidden(&self, object: &Value, reason: &str) -> Refusal {
        let name = [self.name(object), object::generate_name(object), "Unknown"];
        let name = name.into_iter().find(|name| !name.is_empty()).unwrap_or_default();
        Refusal::forbidden(&self.call.resource(), name, reason)
    }

    /// The resource in all other versions and groups that serve it.
    pub(super) async fn equivalents(&self) -> Result<&[Arc<Served>], Refusal> {
        let found = self.equivalents.get_or_try_init(|| self.find_equivalents());
        found.await.map(Vec::as_slice)
    }

    async fn find_equivalents(&self) -> Result<Vec<Arc<Served>>, Refusal> {
        let (call, own) = (self.call, &self.call.served);
        let registry = &call.inner.registry;
        let mut found = Vec::new();
        let resource = &own.resource;
        match &own.kind {
            Kind::Custom(custom) => {
                for version in custom.definition.versions.iter().filter(|it| it.name != *resource.version) {
                    let store = &*call.inner.store;
                    let other =
                        registry.served(store, &resource.group, &version.name, &resource.name).await?;
                    found.extend(other);
                }
            }
            Kind::BuiltIn { .. } => {
                let same = |it: &&kinds::resources::Resource| {
                    let kept = it.storage.as_ref().map(|kept| &kept.prefix);
                    kept.is_some() && kept == resource.storage.as_ref().map(|kept| &kept.prefix)
                };
                let others = kinds::resources().iter().filter(same);
                let others = others.filter_map(|it| registry.find(&it.group, &it.version, &it.name));
                found.extend(others.filter(|it| !Arc::ptr_eq(it, own)).cloned());
            }
        }
        let subresource = self.subresource();
        found.retain(|it| subresource.is_empty() || it.subresource(subresource).is_some());
        Ok(found)
    }

    /// The stored Namespace of the object; `None` for cluster-scoped objects.
    pub(super) async fn stored_namespace(&self, object: &Value) -> Result<Option<&Value>, Refusal> {
        let name = self.namespace(object).to_owned();
        if name.is_empty() {
            return Ok(None);
        }
        let namespaces = ("", "v1", "namespaces");
        let found = self
            .namespace
            .get_or_try_init(|| lookup::object(&self.call.inner, namespaces, "", &name))
            .await?;
        match found {
            Some(found) => Ok(Some(found)),
            None => Err(Refusal::not_found(&GroupResource::new("", "namespaces"), &name)),
        }
    }

    /// An object converted to that version.
    pub(super) async fn shown(&self, face: &Arc<Served>, value: &Value) -> Result<Value, Refusal> {
        // The options of a connection have one version.
        if value.is_null() || self.operation == Operation::Connect {
            return Ok(value.clone());
        }
        let json = match self.form() {
            ReviewedKind::Object => {
                let converted = self.converted(&self.call.served, face, value.clone()).await?;
                face.encode(&converted)
            }
            ReviewedKind::Scale => return Ok(scale_view::shown(&self.call.served, value).unwrap_or_default()),
            ReviewedKind::Request(types, of) => schema::encode::encode(types, of, value),
        };
        serde_json::from_slice(&json).map_err(Refusal::internal_error)
    }

    /// Takes an object that a policy or webhook returned in another version: decoded, defaulted, in the
    /// version of the request.
    pub(super) async fn adopted(
        &self,
        face: &Arc<Served>,
        made: &Value,
        before: &Value,
    ) -> Result<Value, Refusal> {
        if self.operation == Operation::Connect {
            return Ok(made.clone());
        }
        let json = serde_json::to_vec(made).map_err(Refusal::internal_error)?;
        match self.form() {
            ReviewedKind::Object => {
                let read = input::object(face, &json, Encoding::Json, FieldValidation::Ignore);
                let mut value = read.map_err(unread)?.value;
                face.default(&mut value);
                let mut value = self.converted(face, &self.call.served, value).await?;
                self.call.served.normalize(&mut value);
                Ok(value)
            }
            ReviewedKind::Scale => {
                Ok(scale_view::rescaled(&self.call.served, before, made).unwrap_or_default())
            }
            ReviewedKind::Request(types, of) => {
                let read = schema::decode::decode(types, of, &json, FieldValidation::Ignore);
                Ok(read.map_err(Refusal::internal_error)?.value)
            }
        }
    }

    /// The type of the written object, where a subresource has another kind than its resource.
    fn form(&self) -> ReviewedKind {
        let own = &self.call.served;
        match own.subresource(self.subresource()) {
            Some(sub) if sub.name == "scale" => ReviewedKind::Scale,
            Some(sub) if sub.kind != own.resource.kind => {
                let types = kinds::types();
                types
                    .kind(&sub.group, &sub.version, &sub.kind)
                    .map_or(ReviewedKind::Object, |(of, _)| ReviewedKind::Request(types, of))
            }
            _ => ReviewedKind::Object,
        }
    }

    async fn converted(&self, from: &Arc<Served>, to: &Arc<Served>, value: Value) -> Result<Value, Refusal> {
        if Arc::ptr_eq(from, to)
            || from.resource.version == to.resource.version && from.resource.group == to.resource.group
        {
            return Ok(value);
        }
        match &from.kind {
            Kind::Custom(custom) => {
                let version = &to.resource.version;
                let made = convert::convert_custom(&self.call.inner, custom, vec![value], version).await?;
                Ok(made.into_iter().next().unwrap_or_default())
            }
            Kind::BuiltIn { .. } => {
                let version =
                    |it: &'_ Served| (it.resource.group.to_string(), it.resource.version.to_string());
                let (from_version, to_version) = (version(from), version(to));
                let from_version = (from_version.0.as_str(), from_version.1.as_str());
                let to_version = (to_version.0.as_str(), to_version.1.as_str());
                Ok(kinds::convert::convert(value, from_version, to_version, &from.resource.kind))
            }
        }
    }

    /// The AdmissionRequest without its objects.
    pub(super) fn request(&self, face: &Served, object: &Value) -> Map<String, Value> {
        let caller = self.call.caller();
        let mut user = Map::new();
        let mut tell = |name: &str, value: Value, is_said: bool| {
            if is_said {
                user.insert(name.to_owned(), value);
            }
        };
        tell("username", json!(caller.name), !caller.name.is_empty());
        tell("uid", json!(caller.uid), !caller.uid.is_empty());
        tell("groups", json!(caller.groups), !caller.groups.is_empty());
        tell("extra", json!(caller.extra), !caller.extra.is_empty());
        let own = &self.call.served;
        let mut request = Map::new();
        for (prefix, served) in [("", face), ("request", own)] {
            let member = |name: &str, capital: &str| {
                if prefix.is_empty() { name.to_owned() } else { format!("{prefix}{capital}") }
            };
            let (resource, subresource) = (&served.resource, self.subresource());
            request.insert(member("kind", "Kind"), self.kind_at(served));
            let at = json!({"group": resource.group, "version": resource.version, "resource": resource.name});
            request.insert(member("resource", "Resource"), at);
            if !subresource.is_empty() {
                request.insert(member("subResource", "SubResource"), subresource.into());
            }
        }
        for (member, text) in [("name", self.name(object)), ("namespace", self.namespace(object))] {
            if !text.is_empty() {
                request.insert(member.to_owned(), text.into());
            }
        }
        request.insert("operation".to_owned(), self.operation().into());
        request.insert("userInfo".to_owned(), Value::Object(user));
        request.insert("dryRun".to_owned(), self.is_dry_run().into());
        request.insert("options".to_owned(), self.options());
        request
    }

    fn kind_at(&self, served: &Served) -> Value {
        match served.subresource(self.subresource()) {
            Some(sub) if !sub.kind.is_empty() => {
                json!({"group": sub.group, "version": sub.version, "kind": sub.kind})
            }
            _ => {
                let resource = &served.resource;
                json!({"group": resource.group, "version": resource.version, "kind": resource.kind})
            }
        }
    }

    fn options(&self) -> Value {
        let options = &self.call.options;
        let kind = match self.operation {
            Operation::Create => "CreateOptions",
            Operation::Update => "UpdateOptions",
            Operation::Delete => "DeleteOptions",
            // Kubernetes: a connection's options are its object.
            Operation::Connect => return Value::Null,
        };
        let mut options_json = json!({"kind": kind, "apiVersion": "meta.k8s.io/v1"});
        if self.is_dry_run() {
            options_json["dryRun"] = json!(["All"]);
        }
        if self.operation == Operation::Delete {
            if let Some(policy) = options.rest.get("propagationPolicy") {
                options_json["propagationPolicy"] = json!(policy);
            }
            return options_json;
        }
        if !options.field_manager.is_empty() {
            options_json["fieldManager"] = json!(options.field_manager);
        }
        let validation = match options.validation {
            FieldValidation::Strict => "Strict",
            FieldValidation::Ignore => "Ignore",
            FieldValidation::Warn => return options_json,
        };
        options_json["fieldValidation"] = validation.into();
        options_json
    }
}

/// The error for a returned object that cannot be decoded.
// Kubernetes: only the decoder's text; an object of another kind fails later, without a reason.
fn unread(Undecodable { problem, .. }: Undecodable) -> Refusal {
    match problem.starts_with("converting (") {
        true => Refusal::unclassified(problem),
        false => Refusal::internal_error(problem),
    }
}
