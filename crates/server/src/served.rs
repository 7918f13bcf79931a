//! One served version of a resource, built-in or custom.

use crate::{
    custom::Custom,
    request::{Target, Verb},
};
use api::{
    field::ErrorList,
    kind::{GroupKind, GroupResource},
};
use kinds::{
    resources::{Resource, Scope, Subresource},
    strategy::Strategy,
};
use schema::types::{Name, TypeId, Types};
use serde_json::Value;
use std::borrow::Cow;
use store::Revision;

#[derive(Debug)]
pub(crate) struct Served {
    pub(crate) resource: Resource,
    /// The storage version; `None` for reviews and bindings, which are not stored.
    pub(crate) stored: Option<StoredAs>,
    pub(crate) kind: Kind,
}

/// Where the rules of a kind come from.
#[derive(Debug)]
pub(crate) enum Kind {
    BuiltIn { types: &'static Types, of: TypeId },
    Custom(Custom),
}

#[derive(Clone, Debug)]
pub(crate) struct StoredAs {
    pub(crate) group: Name,
    pub(crate) version: Name,
    /// Its type, if that differs from the type of the request's version.
    pub(crate) of: Option<TypeId>,
    pub(crate) prefix: Name,
}

impl Served {
    pub(crate) fn of_custom(custom: Custom) -> Served {
        let definition = &custom.definition;
        let stored = definition.storage_version().map(|storage| StoredAs {
            group: definition.group.clone().into(),
            version: storage.name.clone().into(),
            of: None,
            prefix: format!("{}/{}", definition.group, definition.names.plural).into(),
        });
        Served { resource: definition.resource(custom.version()), stored, kind: Kind::Custom(custom) }
    }

    pub(crate) fn group_resource(&self) -> GroupResource {
        GroupResource::new(&*self.resource.group, &*self.resource.name)
    }

    /// The kind in errors of the storage layer.
    // Kubernetes: events are of the core group, through either group.
    pub(crate) fn kept_kind(&self) -> GroupKind {
        let kind = self.group_kind();
        if &*kind.group == "events.k8s.io" { GroupKind { group: "".into(), ..kind } } else { kind }
    }

    pub(crate) fn group_kind(&self) -> GroupKind {
        GroupKind::new(&*self.resource.group, &*self.resource.kind)
    }

    pub(crate) fn api_version(&self) -> String {
        join(&self.resource.group, &self.resource.version)
    }

    pub(crate) fn list_kind(&self) -> Cow<'_, str> {
        match &self.kind {
            Kind::BuiltIn { .. } => format!("{}List", self.resource.kind).into(),
            Kind::Custom(custom) => custom.definition.names.list_kind.as_str().into(),
        }
    }

    /// The Go type of an object or a list, which is part of some texts.
    pub(crate) fn go_type(&self, suffix: &str) -> String {
        match &self.kind {
            Kind::BuiltIn { .. } => {
                format!("{}.{}{suffix}", package(&self.resource.group), self.resource.kind)
            }
            Kind::Custom(_) => format!("unstructured.Unstructured{suffix}"),
        }
    }

    /// Whether it is this resource of the group.
    pub(crate) fn is(&self, group: &str, resource: &str) -> bool {
        self.resource.name == resource && self.resource.group == group
    }

    pub(crate) fn is_namespaced(&self) -> bool {
        self.resource.scope == Scope::Namespaced
    }

    /// Whether its scope allows the path: with or without a namespace.
    // Kubernetes: built-in resources reject verbs that do not work across namespaces with another error.
    pub(crate) fn is_at(&self, target: &Target, verb: Verb) -> bool {
        let across = target.name.is_empty() && matches!(verb, Verb::List | Verb::Watch);
        match self.is_namespaced() {
            true => self.custom().is_none() || across || !target.namespace.is_empty(),
            false => target.namespace.is_empty(),
        }
    }

    pub(crate) fn subresource(&self, name: &str) -> Option<&Subresource> {
        self.resource.subresources.iter().find(|sub| sub.name == name)
    }

    /// Whether a built-in resource or subresource can be shown as a Table.
    // Kubernetes: resources that are not stored have no columns, nor have these statuses.
    pub(crate) fn has_table(&self, subresource: &str) -> bool {
        match subresource {
            "" => self.stored.is_some() || self.is("", "componentstatuses"),
            "scale" => true,
            "status" => {
                self.resource.group != "resource.k8s.io" && !self.is("scheduling.k8s.io", "podgroups")
            }
            _ => false,
        }
    }

    pub(crate) fn custom(&self) -> Option<&Custom> {
        match &self.kind {
            Kind::BuiltIn { .. } => None,
            Kind::Custom(custom) => Some(custom),
        }
    }

    /// The key of an object in the store.
    pub(crate) fn key(&self, namespace: &str, name: &str) -> String {
        self.key_of([namespace, name])
    }

    /// The key prefix of all objects, or of all in a namespace.
    pub(crate) fn prefix(&self, namespace: &str) -> String {
        self.key_of([namespace, ""])
    }

    fn key_of(&self, [namespace, name]: [&str; 2]) -> String {
        let kept = self.stored.as_ref().map_or(&*self.resource.name, |stored| &stored.prefix);
        let slash = if namespace.is_empty() { "" } else { "/" };
        ["/registry/", kept, "/", namespace, slash, name].concat()
    }

    /// The type table for managedFields.
    pub(crate) fn types(&self) -> &Types {
        match &self.kind {
            Kind::BuiltIn { types, .. } => types,
            Kind::Custom(custom) => custom.compiled().types(),
        }
    }

    /// The type of objects in the version of the request.
    pub(crate) fn of(&self) -> TypeId {
        match &self.kind {
            Kind::BuiltIn { of, .. } => *of,
            Kind::Custom(custom) => custom.compiled().of(),
        }
    }

    /// Whether bytes stored at `revision` are what a client of this version gets.
    pub(crate) fn is_as_stored(&self, revision: Revision) -> bool {
        match (&self.kind, &self.stored) {
            (_, None) => true,
            (Kind::BuiltIn { .. }, Some(stored)) => stored.of.is_none(),
            // Objects stored before the definition last changed may lack its defaults.
            (Kind::Custom(custom), Some(stored)) => {
                stored.version == self.resource.version && revision > custom.since
            }
        }
    }

    /// Whether objects of this version are stored without conversion.
    pub(crate) fn is_kept_in_its_version(&self) -> bool {
        let is_other = |stored: &StoredAs| stored.of.is_some();
        matches!(self.kind, Kind::BuiltIn { .. }) && !self.stored.as_ref().is_some_and(is_other)
    }

    pub(crate) fn strategy(&self) -> &'static Strategy {
        match &self.kind {
            Kind::BuiltIn { .. } => kinds::strategy::strategy(&self.resource.group, &self.resource.name),
            Kind::Custom(custom) => kinds::strategy::custom(custom.version().has_status),
        }
    }

    /// Sets defaults.
    pub(crate) fn default(&self, object: &mut Value) {
        match &self.kind {
            Kind::BuiltIn { of, .. } => kinds::defaults::default_as(*of, object),
            Kind::Custom(custom) => custom.compiled().schema.default(object),
        }
    }

    /// Normalizes an object for comparison.
    pub(crate) fn normalize(&self, object: &mut Value) {
        match &self.kind {
            Kind::BuiltIn { types, of } => schema::encode::normalize(types, *of, object),
            Kind::Custom(_) => {
                schema::structural::tidy_metadata(object);
                schema::number::level(object);
            }
        }
    }

    /// The JSON of an object in the version of the request.
    pub(crate) fn encode(&self, object: &Value) -> Vec<u8> {
        match &self.kind {
            Kind::BuiltIn { types, of } => schema::encode::encode(types, *of, object),
            Kind::Custom(_) => schema::encode::encode_any(object),
        }
    }

    /// Validates a new object.
    pub(crate) fn check_new(&self, object: &Value) -> ErrorList {
        let Resource { group, version, kind, .. } = &self.resource;
        match &self.kind {
            Kind::BuiltIn { .. } => kinds::validate::create(group, version, kind, object),
            Kind::Custom(custom) => custom.check_new(object),
        }
    }

    /// Validates an update. `forgiven` gets errors that are ignored because unchanged fields had them
    /// before.
    pub(crate) fn check_next(
        &self,
        subresource: &str,
        new: &Value,
        old: &Value,
        forgiven: &mut ErrorList,
    ) -> ErrorList {
        let Resource { group, version, kind, .. } = &self.resource;
        match (&self.kind, subresource) {
            (Kind::BuiltIn { .. }, "") => kinds::validate::update(group, version, kind, new, old),
            (Kind::BuiltIn { .. }, subresource) => {
                kinds::validate::subresource_update(group, version, kind, subresource, new, old)
            }
            (Kind::Custom(custom), subresource) => custom.check_next(subresource, new, old, forgiven),
        }
    }

    /// Warnings about an allowed write.
    pub(crate) fn warnings(&self, new: &Value, old: Option<&Value>) -> Vec<String> {
        let Resource { group, version, kind, .. } = &self.resource;
        match &self.kind {
            Kind::BuiltIn { .. } => kinds::validate::warnings(group, version, kind, new, old),
            Kind::Custom(_) => crate::custom::warnings(new, old),
        }
    }

    /// The deprecation warning of this version.
    pub(crate) fn deprecation(&self) -> Option<Cow<'_, str>> {
        let Resource { group, version, kind, .. } = &self.resource;
        match &self.kind {
            Kind::BuiltIn { .. } => kinds::validate::deprecation(group, version, kind).map(Cow::Borrowed),
            Kind::Custom(custom) => custom.version().deprecation.as_deref().map(Cow::Borrowed),
        }
    }

    /// Whether lists can be selected by a field; the error text is for the client.
    pub(crate) fn check_selectable(&self, field: &str) -> Result<(), String> {
        match &self.kind {
            Kind::BuiltIn { .. } => {
                kinds::selectable::field(&self.resource.group, &self.resource.name, field)
                    .map(drop)
                    .map_err(|problem| problem.to_string())
            }
            Kind::Custom(custom) => custom.check_selectable(field),
        }
    }

    pub(crate) fn selectable_value<'a>(&self, field: &str, object: &'a Value) -> Cow<'a, str> {
        match &self.kind {
            Kind::BuiltIn { .. } => {
                kinds::selectable::value(&self.resource.group, &self.resource.name, field, object)
            }
            Kind::Custom(custom) => custom.selectable_value(field, object),
        }
    }
}

/// The Go package of a group's internal types.
pub(crate) fn package(group: &str) -> &str {
    match group {
        "" | "events.k8s.io" => "core",
        group => group.split('.').next().unwrap_or(group),
    }
}

pub(crate) fn join(group: &str, version: &str) -> String {
    if group.is_empty() { version.to_owned() } else { [group, "/", version].concat() }
}
