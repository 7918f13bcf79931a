//! What must be true of an object's metadata when it is created, and when it is updated.

use std::collections::{BTreeMap, BTreeSet};

use super::{FINALIZER_FOREGROUND, FINALIZER_ORPHAN, ManagedFieldsEntry, ObjectMeta, OwnerReference, Text};
use crate::field::{BadValue, Error, ErrorList, Path};
use crate::go;
use crate::kind::GroupVersionKind;
use crate::name::{self, Format, NameRule};

pub const MAX_FIELD_MANAGER_BYTES: usize = 128;
const MAX_SUBRESOURCE_BYTES: usize = 256;

/// Whether the objects of a kind live in namespaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scope {
    Namespaced,
    Cluster,
}

/// The name must have been generated already.
pub fn check_create(path: &Path<'_>, meta: &ObjectMeta<'_>, scope: Scope, rule: NameRule) -> ErrorList {
    let mut errors = ErrorList::new();
    if !meta.generate_name.is_empty() {
        let path = path.child("generateName");
        let problems = rule.prefix_problems(&meta.generate_name);
        errors
            .extend(problems.into_iter().map(|problem| Error::invalid(&path, &*meta.generate_name, problem)));
    }
    match &*meta.name {
        "" => errors.push(Error::required(&path.child("name"), "name or generateName is required")),
        name => {
            let path = path.child("name");
            errors
                .extend(rule.problems(name).into_iter().map(|problem| Error::invalid(&path, name, problem)));
        }
    }
    errors.extend(check_namespace(&path.child("namespace"), &meta.namespace, scope));
    if meta.generation < 0 {
        let problem = "must be greater than or equal to 0";
        errors.push(Error::invalid(&path.child("generation"), meta.generation, problem));
    }
    errors.extend(name::labels(&path.child("labels"), entries(&meta.labels)));
    errors.extend(name::annotations(&path.child("annotations"), entries(&meta.annotations)));
    errors.extend(check_owners(&path.child("ownerReferences"), &meta.owner_references));
    errors.extend(check_finalizers(&path.child("finalizers"), &meta.finalizers));
    errors.extend(check_managed_fields(&path.child("managedFields"), &meta.managed_fields));
    errors
}

/// What is asked of every kind, before the kind itself is.
pub fn check_any_update(path: &Path<'_>, new: &ObjectMeta<'_>, old: &ObjectMeta<'_>) -> ErrorList {
    let scope = if old.namespace.is_empty() { Scope::Cluster } else { Scope::Namespaced };
    let mut errors = check_create(path, new, scope, NameRule::PathSegment);
    errors.extend(check_update(path, new, old));
    errors
}

pub fn check_update(path: &Path<'_>, new: &ObjectMeta<'_>, old: &ObjectMeta<'_>) -> ErrorList {
    let mut errors = ErrorList::new();
    if old.is_deleting() {
        errors.extend(check_no_new_finalizers(&path.child("finalizers"), &new.finalizers, &old.finalizers));
    }
    if new.resource_version.is_empty() {
        let problem = "must be specified for an update";
        errors.push(Error::invalid(&path.child("resourceVersion"), "", problem));
    }
    if new.generation < old.generation {
        errors.push(Error::invalid(&path.child("generation"), new.generation, "must not be decremented"));
    }
    for (field, is_same, value) in [
        ("name", new.name == old.name, BadValue::from(&*new.name)),
        ("namespace", new.namespace == old.namespace, BadValue::from(&*new.namespace)),
        ("uid", new.uid == old.uid, BadValue::json(&new.uid)),
        (
            "creationTimestamp",
            new.creation_timestamp == old.creation_timestamp,
            BadValue::json(&new.creation_timestamp),
        ),
        (
            "deletionTimestamp",
            new.deletion_timestamp == old.deletion_timestamp,
            BadValue::json(&new.deletion_timestamp),
        ),
        (
            "deletionGracePeriodSeconds",
            new.deletion_grace_period_seconds == old.deletion_grace_period_seconds,
            BadValue::json(&new.deletion_grace_period_seconds),
        ),
    ] {
        if !is_same {
            errors.push(Error::invalid(&path.child(field), value, "field is immutable"));
        }
    }
    errors.extend(name::labels(&path.child("labels"), entries(&new.labels)));
    errors.extend(name::annotations(&path.child("annotations"), entries(&new.annotations)));
    errors.extend(check_owners(&path.child("ownerReferences"), &new.owner_references));
    errors.extend(check_managed_fields(&path.child("managedFields"), &new.managed_fields));
    errors
}

/// What the built-in kinds ask for in addition, on create and on update.
pub fn check_kube_finalizers(path: &Path<'_>, finalizers: &[String]) -> ErrorList {
    let is_bare = |finalizer: &str| {
        !finalizer.contains('/')
            && !["kubernetes", FINALIZER_ORPHAN, FINALIZER_FOREGROUND].contains(&finalizer)
    };
    let bare = finalizers.iter().enumerate().filter(|(_, finalizer)| is_bare(finalizer));
    bare.map(|(index, finalizer)| {
        let problem = "name is neither a standard finalizer name nor is it fully qualified";
        Error::invalid(&path.index(index), finalizer, problem)
    })
    .collect()
}

/// The name of a field manager: short and printable. The caller of this decides about an empty one.
pub fn field_manager(path: &Path<'_>, manager: &str) -> ErrorList {
    let too_long =
        (manager.len() > MAX_FIELD_MANAGER_BYTES).then(|| Error::too_long(path, MAX_FIELD_MANAGER_BYTES));
    let unprintable = manager.char_indices().filter(|(_, c)| !go::is_print(*c)).map(|(position, c)| {
        let problem = format!("invalid character U+{:04X} (at position {position})", u32::from(c));
        Error::invalid(path, manager, problem)
    });
    too_long.into_iter().chain(unprintable).collect()
}

fn entries<'m>(map: &'m BTreeMap<Text<'_>, Text<'_>>) -> impl Iterator<Item = (&'m str, &'m str)> {
    map.iter().map(|(key, value)| (&**key, &**value))
}

fn check_namespace(path: &Path<'_>, namespace: &str, scope: Scope) -> ErrorList {
    match (scope, namespace) {
        (Scope::Namespaced, "") => Error::required(path, "").into(),
        (Scope::Namespaced, namespace) => Format::Dns1123Label.check(path, namespace),
        (Scope::Cluster, "") => ErrorList::new(),
        (Scope::Cluster, _) => Error::forbidden(path, "not allowed on this type").into(),
    }
}

/// Kubernetes: all errors name the list, none the entry.
fn check_owners(path: &Path<'_>, owners: &[OwnerReference<'_>]) -> ErrorList {
    let mut errors = ErrorList::new();
    let mut first_controller = None;
    for owner in owners {
        errors.extend(check_owner(path, owner));
        if owner.controller != Some(true) {
            continue;
        }
        let controller = [&*owner.kind, "/", &*owner.name].concat();
        match &first_controller {
            None => first_controller = Some(controller),
            // Each of these errors shows all owners.
            Some(_) if errors.is_full() => break,
            Some(first) => {
                let problem = format!(
                    "Only one reference can have Controller set to true. Found \"true\" in references for {first} and {controller}"
                );
                errors.push(Error::invalid(path, BadValue::json(owners), problem));
            }
        }
    }
    errors
}

fn check_owner(path: &Path<'_>, owner: &OwnerReference<'_>) -> ErrorList {
    let mut errors = ErrorList::new();
    let kind = GroupVersionKind::parse(&owner.api_version, &owner.kind);
    if kind.as_ref().map_or(true, |kind| kind.version.is_empty()) {
        let problem = "version must not be empty";
        errors.push(Error::invalid(&path.child("apiVersion"), &*owner.api_version, problem));
    }
    for (field, text) in [("kind", &owner.kind), ("name", &owner.name), ("uid", &owner.uid)] {
        if text.is_empty() {
            errors.push(Error::invalid(&path.child(field), &**text, "must not be empty"));
        }
    }
    // Events come and go too fast to own anything.
    if let Ok(event) = kind
        && event == GroupVersionKind::new("", "v1", "Event")
    {
        let problem = format!("{event} is disallowed from being an owner");
        errors.push(Error::invalid(path, BadValue::json(owner), problem));
    }
    errors
}

fn check_finalizers(path: &Path<'_>, finalizers: &[Text<'_>]) -> ErrorList {
    let mut errors = ErrorList::new();
    for finalizer in finalizers {
        errors.extend(Format::QualifiedName.check(path, finalizer));
    }
    let has = |name: &str| finalizers.iter().any(|finalizer| &**finalizer == name);
    if has(FINALIZER_ORPHAN) && has(FINALIZER_FOREGROUND) {
        let problem = format!("finalizer {FINALIZER_ORPHAN} and {FINALIZER_FOREGROUND} cannot be both set");
        errors.push(Error::invalid(path, BadValue::json(finalizers), problem));
    }
    errors
}

fn check_no_new_finalizers(path: &Path<'_>, new: &[Text<'_>], old: &[Text<'_>]) -> Option<Error> {
    let before: BTreeSet<_> = old.iter().collect();
    let mut added = new.iter().filter(|finalizer| !before.contains(finalizer)).collect::<Vec<_>>();
    added.sort_unstable();
    added.dedup();
    (!added.is_empty()).then(|| {
        let added = go::quote_all(added.into_iter().map(|finalizer| &**finalizer));
        let problem = "no new finalizers can be added if the object is being deleted, found new finalizers";
        Error::forbidden(path, format!("{problem} []string{{{added}}}"))
    })
}

fn check_managed_fields(path: &Path<'_>, managed_fields: &[ManagedFieldsEntry<'_>]) -> ErrorList {
    let mut errors = ErrorList::new();
    for (index, entry) in managed_fields.iter().enumerate() {
        let path = path.index(index);
        if !matches!(&*entry.operation, "Apply" | "Update") {
            let operation = BadValue::json(&entry.operation);
            errors.push(Error::invalid(&path.child("operation"), operation, "must be `Apply` or `Update`"));
        }
        if !matches!(&*entry.fields_type, "" | "FieldsV1") {
            errors.push(Error::invalid(&path.child("fieldsType"), &*entry.fields_type, "must be `FieldsV1`"));
        }
        errors.extend(field_manager(&path.child("manager"), &entry.manager));
        if entry.subresource.len() > MAX_SUBRESOURCE_BYTES {
            errors.push(Error::too_long(&path.child("subresource"), MAX_SUBRESOURCE_BYTES));
        }
    }
    errors
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;
    use serde_json::{Value, json};

    fn meta(value: &Value) -> ObjectMeta<'_> {
        ObjectMeta::deserialize(value).unwrap()
    }

    #[test]
    fn creates_are_checked_as_in_kubernetes() {
        let owner =
            json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": "1", "controller": true});
        for (scope, value, expected) in [
            (Scope::Namespaced, json!({"name": "a", "namespace": "ns", "generateName": "w-"}), ""),
            (
                Scope::Namespaced,
                json!({}),
                "[m.name: Required value: name or generateName is required, m.namespace: Required value]",
            ),
            (
                Scope::Namespaced,
                json!({"name": "a", "namespace": "n.s"}),
                "m.namespace: Invalid value: \"n.s\": must not contain dots",
            ),
            (
                Scope::Cluster,
                json!({"name": "a", "namespace": "ns"}),
                "m.namespace: Forbidden: not allowed on this type",
            ),
            (
                Scope::Cluster,
                json!({"name": "a", "generation": -1}),
                "m.generation: Invalid value: -1: must be greater than or equal to 0",
            ),
            (
                Scope::Cluster,
                json!({"name": "a", "labels": {"/a": ""}, "annotations": {"/b": ""}}),
                "[m.labels: Invalid value: \"/a\": prefix part must be non-empty, m.annotations: Invalid value: \
                 \"/b\": prefix part must be non-empty]",
            ),
            (
                Scope::Cluster,
                json!({"name": "a", "ownerReferences": [{}]}),
                "[m.ownerReferences.apiVersion: Invalid value: \"\": version must not be empty, \
                 m.ownerReferences.kind: Invalid value: \"\": must not be empty, m.ownerReferences.name: Invalid \
                 value: \"\": must not be empty, m.ownerReferences.uid: Invalid value: \"\": must not be empty]",
            ),
            (
                Scope::Cluster,
                json!({"name": "a", "ownerReferences": [{"apiVersion": "v1", "kind": "Event", "name": "o", "uid": "u"}]}),
                "m.ownerReferences: Invalid value: {\"apiVersion\":\"v1\",\"kind\":\"Event\",\"name\":\"o\",\"uid\":\"u\"}: \
                 /v1, Kind=Event is disallowed from being an owner",
            ),
            (
                Scope::Cluster,
                json!({"name": "a", "ownerReferences": [owner, owner]}),
                "m.ownerReferences: Invalid value: [{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"name\":\"o\",\"uid\":\"1\",\
                 \"controller\":true},{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"name\":\"o\",\"uid\":\"1\",\
                 \"controller\":true}]: Only one reference can have Controller set to true. Found \"true\" in \
                 references for ConfigMap/o and ConfigMap/o",
            ),
            (
                Scope::Cluster,
                json!({"name": "a", "finalizers": ["orphan", "foregroundDeletion"]}),
                "m.finalizers: Invalid value: [\"orphan\",\"foregroundDeletion\"]: finalizer orphan and \
                 foregroundDeletion cannot be both set",
            ),
            (
                Scope::Cluster,
                json!({"name": "a", "managedFields": [{"manager": "a\u{7}", "operation": "Delete", "fieldsType": "V2"}]}),
                "[m.managedFields[0].operation: Invalid value: \"Delete\": must be `Apply` or `Update`, \
                 m.managedFields[0].fieldsType: Invalid value: \"V2\": must be `FieldsV1`, \
                 m.managedFields[0].manager: Invalid value: \"a\\a\": invalid character U+0007 (at position 1)]",
            ),
        ] {
            let errors = check_create(&Path::new("m"), &meta(&value), scope, NameRule::DnsSubdomain);
            assert_eq!(errors.to_string(), expected);
        }
    }

    #[test]
    fn updates_are_checked_as_in_kubernetes() {
        let moment = "2026-11-15T09:30:00Z";
        for (new, old, expected) in [
            (json!({"name": "a", "resourceVersion": "1"}), json!({"name": "a"}), ""),
            (
                json!({"name": "b", "uid": "2", "deletionGracePeriodSeconds": 5}),
                json!({"name": "a", "uid": "1", "generation": 3, "creationTimestamp": moment}),
                "[m.resourceVersion: Invalid value: \"\": must be specified for an update, m.generation: Invalid \
                 value: 0: must not be decremented, m.name: Invalid value: \"b\": field is immutable, m.uid: Invalid \
                 value: \"2\": field is immutable, m.creationTimestamp: Invalid value: null: field is immutable, \
                 m.deletionGracePeriodSeconds: Invalid value: 5: field is immutable]",
            ),
            (
                json!({"resourceVersion": "1", "deletionTimestamp": moment}),
                json!({}),
                "m.deletionTimestamp: Invalid value: \"2026-11-15T09:30:00Z\": field is immutable",
            ),
            (
                json!({"resourceVersion": "1", "deletionTimestamp": moment, "finalizers": ["c/c", "a/a", "b/b", "b/b"]}),
                json!({"deletionTimestamp": moment, "finalizers": ["a/a"]}),
                "m.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, found new \
                 finalizers []string{\"b/b\", \"c/c\"}",
            ),
        ] {
            assert_eq!(check_update(&Path::new("m"), &meta(&new), &meta(&old)).to_string(), expected);
        }
    }

    #[test]
    fn built_in_kinds_want_qualified_finalizers() {
        let finalizers = ["orphan", "kubernetes", "example.com/hold", "hold"].map(str::to_owned);
        assert_eq!(
            check_kube_finalizers(&Path::new("metadata.finalizers"), &finalizers).to_string(),
            "metadata.finalizers[3]: Invalid value: \"hold\": name is neither a standard finalizer name nor is it \
             fully qualified"
        );
    }

    #[test]
    fn a_field_manager_is_short_and_printable() {
        let long = "x".repeat(129);
        for (manager, expected) in [
            ("", ""),
            ("kubectl é", ""),
            (long.as_str(), "f: Too long: may not be more than 128 bytes"),
            ("é\u{200b}", "f: Invalid value: \"é\\u200b\": invalid character U+200B (at position 2)"),
        ] {
            assert_eq!(field_manager(&Path::new("f"), manager).to_string(), expected);
        }
    }
}
