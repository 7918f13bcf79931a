//! An object as JSON: reading who and what it is without copying, and setting it.
//!
//! What is missing, `null` or of the wrong type reads as empty; setting something empty removes it, as the real
//! server omits it.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::kind::{BadGroupVersion, GroupVersionKind};
use crate::meta::ObjectMeta;
use crate::time::Time;

pub fn api_version(object: &Value) -> &str {
    text(object.get("apiVersion"))
}

pub fn set_api_version(object: &mut Value, api_version: &str) {
    map_of(object).insert("apiVersion".to_owned(), api_version.into());
}

pub fn kind(object: &Value) -> &str {
    text(object.get("kind"))
}

pub fn group_version_kind(object: &Value) -> Result<GroupVersionKind, BadGroupVersion> {
    GroupVersionKind::parse(api_version(object), kind(object))
}

pub fn set_group_version_kind(object: &mut Value, kind: &GroupVersionKind) {
    let root = map_of(object);
    root.insert("apiVersion".to_owned(), kind.group_version().to_string().into());
    root.insert("kind".to_owned(), (*kind.kind).into());
}

pub fn metadata(object: &Value) -> Option<&Map<String, Value>> {
    object.get("metadata")?.as_object()
}

/// The metadata, made if there is none.
pub fn metadata_mut(object: &mut Value) -> &mut Map<String, Value> {
    map_of(map_of(object).entry("metadata").or_insert(Value::Null))
}

/// The metadata, typed.
pub fn meta(object: &Value) -> Result<ObjectMeta<'_>, serde_json::Error> {
    object.get("metadata").map_or_else(|| Ok(ObjectMeta::default()), ObjectMeta::deserialize)
}

pub fn name(object: &Value) -> &str {
    metadata_text(object, "name")
}

pub fn set_name(object: &mut Value, name: &str) {
    set_text(object, "name", name);
}

pub fn generate_name(object: &Value) -> &str {
    metadata_text(object, "generateName")
}

pub fn namespace(object: &Value) -> &str {
    metadata_text(object, "namespace")
}

pub fn set_namespace(object: &mut Value, namespace: &str) {
    set_text(object, "namespace", namespace);
}

pub fn uid(object: &Value) -> &str {
    metadata_text(object, "uid")
}

pub fn set_uid(object: &mut Value, uid: &str) {
    set_text(object, "uid", uid);
}

pub fn resource_version(object: &Value) -> &str {
    metadata_text(object, "resourceVersion")
}

pub fn set_resource_version(object: &mut Value, resource_version: &str) {
    set_text(object, "resourceVersion", resource_version);
}

pub fn generation(object: &Value) -> i64 {
    metadata_field(object, "generation").and_then(Value::as_i64).unwrap_or(0)
}

pub fn set_generation(object: &mut Value, generation: i64) {
    set(object, "generation", (generation != 0).then(|| generation.into()));
}

pub fn creation_timestamp(object: &Value) -> Option<Time> {
    time(object, "creationTimestamp")
}

pub fn set_creation_timestamp(object: &mut Value, moment: Option<Time>) {
    set(
        object,
        "creationTimestamp",
        moment.filter(|moment| !moment.is_zero()).map(|moment| to_value(&moment)),
    );
}

pub fn deletion_timestamp(object: &Value) -> Option<Time> {
    time(object, "deletionTimestamp")
}

pub fn set_deletion_timestamp(object: &mut Value, moment: Option<Time>) {
    set(object, "deletionTimestamp", moment.map(|moment| to_value(&moment)));
}

/// On its way out: only finalizers or a grace period keep it.
pub fn is_deleting(object: &Value) -> bool {
    metadata_field(object, "deletionTimestamp").is_some_and(|moment| !moment.is_null())
}

pub fn deletion_grace_period_seconds(object: &Value) -> Option<i64> {
    metadata_field(object, "deletionGracePeriodSeconds")?.as_i64()
}

pub fn set_deletion_grace_period_seconds(object: &mut Value, seconds: Option<i64>) {
    set(object, "deletionGracePeriodSeconds", seconds.map(Value::from));
}

pub fn labels(object: &Value) -> Option<&Map<String, Value>> {
    metadata_field(object, "labels")?.as_object()
}

pub fn label<'a>(object: &'a Value, key: &str) -> Option<&'a str> {
    labels(object)?.get(key)?.as_str()
}

pub fn annotations(object: &Value) -> Option<&Map<String, Value>> {
    metadata_field(object, "annotations")?.as_object()
}

pub fn annotation<'a>(object: &'a Value, key: &str) -> Option<&'a str> {
    annotations(object)?.get(key)?.as_str()
}

pub fn finalizers(object: &Value) -> impl Iterator<Item = &str> {
    metadata_list(object, "finalizers").filter_map(Value::as_str)
}

pub fn has_finalizer(object: &Value, finalizer: &str) -> bool {
    finalizers(object).any(|found| found == finalizer)
}

pub fn set_finalizers<'a>(object: &mut Value, finalizers: impl IntoIterator<Item = &'a str>) {
    let finalizers = finalizers.into_iter().map(Value::from).collect::<Vec<_>>();
    set(object, "finalizers", (!finalizers.is_empty()).then_some(Value::Array(finalizers)));
}

pub fn owner_references(object: &Value) -> impl Iterator<Item = &Value> {
    metadata_list(object, "ownerReferences")
}

/// The reference to the one owner that manages the object.
pub fn controller(object: &Value) -> Option<&Value> {
    owner_references(object).find(|owner| owner.get("controller") == Some(&Value::Bool(true)))
}

pub fn is_controlled_by(object: &Value, uid: &str) -> bool {
    controller(object).is_some_and(|owner| text(owner.get("uid")) == uid)
}

fn metadata_field<'a>(object: &'a Value, field: &str) -> Option<&'a Value> {
    metadata(object)?.get(field)
}

fn metadata_text<'a>(object: &'a Value, field: &str) -> &'a str {
    text(metadata_field(object, field))
}

fn metadata_list<'a>(object: &'a Value, field: &str) -> impl Iterator<Item = &'a Value> {
    metadata_field(object, field).and_then(Value::as_array).into_iter().flatten()
}

fn text(value: Option<&Value>) -> &str {
    value.and_then(Value::as_str).unwrap_or_default()
}

fn time(object: &Value, field: &str) -> Option<Time> {
    metadata_text(object, field).parse().ok()
}

fn set_text(object: &mut Value, field: &str, text: &str) {
    set(object, field, (!text.is_empty()).then(|| text.into()));
}

fn set(object: &mut Value, field: &str, value: Option<Value>) {
    let metadata = metadata_mut(object);
    match value {
        Some(value) => metadata.insert(field.to_owned(), value),
        None => metadata.remove(field),
    };
}

fn to_value(value: &impl Serialize) -> Value {
    serde_json::to_value(value).expect("metadata has string keys and finite numbers")
}

/// The value as a map, which replaces whatever else it was.
fn map_of(value: &mut Value) -> &mut Map<String, Value> {
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    value.as_object_mut().expect("it has just been made one")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_object_says_who_it_is() {
        let object = json!({
            "apiVersion": "apps/v1",
            "kind": "ReplicaSet",
            "metadata": {
                "name": "web-1", "generateName": "web-", "namespace": "ns", "uid": "u", "resourceVersion": "7",
                "generation": 2, "creationTimestamp": "2026-11-15T09:30:00Z",
                "deletionTimestamp": "2026-11-15T09:31:00Z", "deletionGracePeriodSeconds": 30,
                "labels": {"app": "web"}, "annotations": {"note": "x"}, "finalizers": ["a/b", "c/d"],
                "ownerReferences": [{"uid": "1"}, {"uid": "2", "controller": true}],
            },
        });
        assert_eq!(group_version_kind(&object), Ok(GroupVersionKind::new("apps", "v1", "ReplicaSet")));
        assert_eq!((name(&object), generate_name(&object), namespace(&object)), ("web-1", "web-", "ns"));
        assert_eq!((uid(&object), resource_version(&object), generation(&object)), ("u", "7", 2));
        assert_eq!(
            creation_timestamp(&object).map(|time| time.to_string()).as_deref(),
            Some("2026-11-15T09:30:00Z")
        );
        assert!(is_deleting(&object) && deletion_timestamp(&object).is_some());
        assert_eq!(deletion_grace_period_seconds(&object), Some(30));
        assert_eq!((label(&object, "app"), annotation(&object, "note")), (Some("web"), Some("x")));
        assert_eq!(finalizers(&object).collect::<Vec<_>>(), ["a/b", "c/d"]);
        assert!(
            has_finalizer(&object, "c/d")
                && is_controlled_by(&object, "2")
                && !is_controlled_by(&object, "1")
        );
        assert_eq!(meta(&object).unwrap().owner_references.len(), 2);
    }

    #[test]
    fn what_is_missing_reads_as_empty() {
        for object in [
            json!({}),
            json!(null),
            json!({"metadata": null}),
            json!({"metadata": {"name": 5, "labels": [], "deletionTimestamp": null, "finalizers": {}}}),
        ] {
            assert_eq!(
                (api_version(&object), kind(&object), name(&object), generation(&object)),
                ("", "", "", 0)
            );
            assert_eq!((labels(&object), label(&object, "a"), finalizers(&object).count()), (None, None, 0));
            assert!(!is_deleting(&object) && controller(&object).is_none());
        }
    }

    #[test]
    fn setting_something_empty_removes_it() {
        let mut object = json!({"metadata": {"name": "a", "generation": 1, "finalizers": ["x/y"]}});
        set_name(&mut object, "");
        set_generation(&mut object, 0);
        set_finalizers(&mut object, []);
        set_creation_timestamp(&mut object, Some(Time::ZERO));
        assert_eq!(object, json!({"metadata": {}}));
    }

    #[test]
    fn metadata_is_made_when_it_is_set() {
        let mut object = json!(null);
        set_group_version_kind(&mut object, &GroupVersionKind::new("", "v1", "Pod"));
        set_namespace(&mut object, "ns");
        set_uid(&mut object, "u");
        set_resource_version(&mut object, "3");
        set_finalizers(&mut object, ["x/y"]);
        set_deletion_timestamp(&mut object, "2026-11-15T09:30:00Z".parse().ok());
        set_deletion_grace_period_seconds(&mut object, Some(0));
        let expected = json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {
                "namespace": "ns", "uid": "u", "resourceVersion": "3", "finalizers": ["x/y"],
                "deletionTimestamp": "2026-11-15T09:30:00Z", "deletionGracePeriodSeconds": 0,
            },
        });
        assert_eq!(object, expected);
    }
}
