//! Whether an apply would change an object, by the fields that its manager owns: exact, and without a schema.
//!
//! The fields that a manager has applied are in `metadata.managedFields`, with the keys by which the items of
//! lists are found. An apply changes nothing if it has exactly these fields, with the values that the object
//! has. Where this file is not sure, it says that the apply may change something: the server then decides.

use serde::Deserialize;
use serde_json::{Map, Value, value::RawValue};
use std::borrow::Cow;

/// The fields that a manager has applied, as the server tells: an entry of `metadata.managedFields`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AppliedFields {
    manager: Box<str>,
    api_version: Box<str>,
    fields: Box<str>,
}

#[derive(Deserialize)]
struct Object<'a> {
    #[serde(borrow)]
    metadata: ManagedMetadata<'a>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ManagedMetadata<'a> {
    #[serde(borrow, default)]
    managed_fields: Vec<Entry<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Entry<'a> {
    #[serde(borrow, default)]
    manager: Cow<'a, str>,
    #[serde(borrow, default)]
    operation: Cow<'a, str>,
    #[serde(borrow, default)]
    api_version: Cow<'a, str>,
    #[serde(borrow, default)]
    subresource: Cow<'a, str>,
    #[serde(borrow)]
    fields_v1: Option<&'a RawValue>,
}

/// Metadata that no manager owns.
// Kubernetes: removed from every set of managed fields.
const UNOWNED: [&str; 2] = ["name", "namespace"];

impl AppliedFields {
    /// What each manager has applied. Most objects were never applied, which a search finds out.
    pub(super) fn read(json: &str) -> Box<[AppliedFields]> {
        if memchr::memmem::find(json.as_bytes(), br#""operation":"Apply""#).is_none() {
            return Box::default();
        }
        let Ok(object) = serde_json::from_str::<Object<'_>>(json) else { return Box::default() };
        let entries = object.metadata.managed_fields.into_iter();
        let applied = entries.filter(|entry| entry.operation == "Apply" && entry.subresource.is_empty());
        let fields = applied.map(|entry| AppliedFields {
            manager: entry.manager.into(),
            api_version: entry.api_version.into(),
            fields: entry.fields_v1.map_or("{}", RawValue::get).into(),
        });
        fields.collect()
    }

    pub(super) fn is_of(&self, manager: &str) -> bool {
        *self.manager == *manager
    }

    pub(super) fn text(&self) -> &str {
        &self.fields
    }

    /// Whether the manager has applied exactly the fields of `intent`, and `object` still has their values.
    pub(super) fn are(&self, intent: &Value, object: &Value) -> bool {
        let fields = serde_json::from_str::<Map<String, Value>>(&self.fields);
        let (Ok(fields), Value::Object(intent)) = (fields, intent) else { return false };
        if intent.get("apiVersion").and_then(Value::as_str) != Some(&self.api_version) {
            return false;
        }
        let mut intent = intent.clone();
        intent.retain(|name, _| name != "apiVersion" && name != "kind");
        if let Some(Value::Object(metadata)) = intent.get_mut("metadata") {
            metadata.retain(|name, _| !UNOWNED.contains(&name.as_str()));
            if metadata.is_empty() {
                intent.remove("metadata");
            }
        }
        members_are_equal(&fields, &intent, object)
    }
}

/// Whether `fields` are those of `intent`, and `present` has the same values there.
fn are_equal(fields: &Map<String, Value>, intent: &Value, present: &Value) -> bool {
    let is_whole = fields.keys().all(|name| name == ".");
    match intent {
        _ if is_whole => intent == present,
        Value::Object(intent) => members_are_equal(fields, intent, present),
        Value::Array(intent) => items_are_equal(fields, intent, present),
        _ => false,
    }
}

fn members_are_equal(fields: &Map<String, Value>, intent: &Map<String, Value>, present: &Value) -> bool {
    let owned = fields.keys().filter(|name| *name != ".").count();
    owned == intent.len()
        && intent.iter().all(|(name, intent)| {
            let fields = fields.get(&format!("f:{name}")).and_then(Value::as_object);
            let (Some(fields), Some(present)) = (fields, present.get(name)) else { return false };
            are_equal(fields, intent, present)
        })
}

/// The items must also have the same order: it may matter, and an apply would change it.
fn items_are_equal(fields: &Map<String, Value>, intent: &[Value], present: &Value) -> bool {
    let Some(present) = present.as_array() else { return false };
    let owned: Vec<Option<ListItem<'_>>> = fields
        .iter()
        .filter(|(name, _)| *name != ".")
        .map(|(name, fields)| ListItem::read(name, fields))
        .collect();
    if owned.len() != intent.len() {
        return false;
    }
    let Some(owned) = owned.into_iter().collect::<Option<Vec<ListItem<'_>>>>() else { return false };
    let mut after = 0;
    intent.iter().all(|intent| {
        let mut candidates = owned.iter().filter(|item| item.may_be(intent));
        let (Some(item), None) = (candidates.next(), candidates.next()) else { return false };
        let Some(found) = present[after..].iter().position(|present| item.is(present)) else { return false };
        after += found + 1;
        are_equal(item.fields, intent, &present[after - 1])
    })
}

/// An item of a list: the keys or the value by which it is found, and the fields of it that are owned.
struct ListItem<'a> {
    name: ItemKey,
    fields: &'a Map<String, Value>,
}

enum ItemKey {
    Keys(Map<String, Value>),
    Value(Value),
}

impl ListItem<'_> {
    /// `None` for an item that is found by its index.
    fn read<'a>(name: &str, fields: &'a Value) -> Option<ListItem<'a>> {
        let name = match name.split_at_checked(2)? {
            ("k:", keys) => ItemKey::Keys(serde_json::from_str(keys).ok()?),
            ("v:", value) => ItemKey::Value(serde_json::from_str(value).ok()?),
            _ => return None,
        };
        Some(ListItem { name, fields: fields.as_object()? })
    }

    fn is(&self, item: &Value) -> bool {
        match &self.name {
            ItemKey::Keys(keys) => keys.iter().all(|(name, value)| item.get(name) == Some(value)),
            ItemKey::Value(value) => value == item,
        }
    }

    /// [`ListItem::is`] for an item without the keys that have a default.
    fn may_be(&self, item: &Value) -> bool {
        match &self.name {
            ItemKey::Keys(keys) => {
                keys.iter().all(|(name, value)| item.get(name).is_none_or(|found| found == value))
            }
            ItemKey::Value(_) => self.is(item),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// An object as the server has it after manager `m` has applied what the test calls the intent.
    fn object() -> Value {
        json!({
            "metadata": {
                "name": "web", "labels": {"a": "b", "theirs": "x"}, "uid": "1",
                "managedFields": [
                    {"manager": "other", "operation": "Update", "apiVersion": "apps/v1",
                        "fieldsV1": {"f:spec": {"f:paused": {}}}},
                    {"manager": "m", "operation": "Apply", "apiVersion": "apps/v1", "fieldsV1": {
                        "f:metadata": {"f:labels": {"f:a": {}}},
                        "f:spec": {
                            "f:selector": {},
                            "f:finalizers": {"v:\"x\"": {}, "v:\"y\"": {}},
                            "f:ports": {
                                "k:{\"port\":1,\"protocol\":\"TCP\"}": {".": {}, "f:port": {}, "f:name": {}},
                                "k:{\"port\":2,\"protocol\":\"UDP\"}": {".": {}, "f:port": {}, "f:protocol": {}},
                            },
                        },
                    }},
                ],
            },
            "spec": {
                "selector": {"a": "b"}, "paused": true, "finalizers": ["theirs", "x", "y"],
                "ports": [
                    {"port": 1, "protocol": "TCP", "name": "one", "nodePort": 9},
                    {"port": 2, "protocol": "UDP"},
                ],
            },
        })
    }

    fn intent() -> Value {
        json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": "web", "namespace": "prod", "labels": {"a": "b"}},
            "spec": {
                "selector": {"a": "b"}, "finalizers": ["x", "y"],
                "ports": [{"port": 1, "name": "one"}, {"port": 2, "protocol": "UDP"}],
            },
        })
    }

    fn is_applied(intent: &Value, object: &Value) -> bool {
        let applied = AppliedFields::read(&object.to_string());
        applied.iter().any(|fields| fields.is_of("m") && fields.are(intent, object))
    }

    #[test]
    fn an_apply_of_the_same_fields_and_values_changes_nothing() {
        assert!(is_applied(&intent(), &object()));
        let mut theirs = object();
        theirs["spec"]["paused"] = json!(false);
        theirs["spec"]["ports"][0]["nodePort"] = json!(10);
        theirs["spec"]["finalizers"] = json!(["x", "theirs", "y"]);
        assert!(is_applied(&intent(), &theirs), "other managers change other fields");
    }

    #[test]
    fn another_intent_changes_something() {
        for (path, value) in [
            ("/apiVersion", json!("apps/v2")),
            ("/metadata/labels/a", json!("c")),
            ("/metadata/labels", json!({"a": "b", "theirs": "x"})),
            ("/metadata/labels", json!({})),
            ("/metadata/labels", json!(null)),
            ("/spec/selector", json!({"a": "b", "c": "d"})),
            ("/spec/finalizers", json!(["x"])),
            ("/spec/finalizers", json!(["y", "x"])),
            ("/spec/finalizers", json!(["x", "y", "z"])),
            ("/spec/ports/0/name", json!("two")),
            ("/spec/ports/0", json!({"port": 1})),
            ("/spec/ports/1", json!({"port": 3})),
            ("/spec/ports", json!([{"port": 2, "protocol": "UDP"}, {"port": 1, "name": "one"}])),
            ("/spec", json!({"replicas": 1})),
        ] {
            let mut other = intent();
            *other.pointer_mut(path).unwrap() = value.clone();
            assert!(!is_applied(&other, &object()), "{path} {value}");
        }
    }

    #[test]
    fn another_object_is_changed_back() {
        for (path, value) in [
            ("/metadata/labels/a", json!("c")),
            ("/metadata/managedFields/1/manager", json!("n")),
            ("/metadata/managedFields/1/operation", json!("Update")),
            ("/metadata/managedFields/1/subresource", json!("status")),
            ("/metadata/managedFields/1/fieldsV1/f:spec/f:ports", json!({})),
            ("/metadata/managedFields/1/fieldsV1/f:spec/f:ports", json!({"i:0": {}, "i:1": {}})),
            ("/spec/selector/a", json!("c")),
            ("/spec/finalizers", json!(["y", "x"])),
            ("/spec/finalizers", json!(["x"])),
            ("/spec/ports/0/name", json!("two")),
            ("/spec/ports", json!(null)),
        ] {
            let mut other = object();
            match other.pointer_mut(path) {
                Some(there) => *there = value.clone(),
                None => other["metadata"]["managedFields"][1]["subresource"] = value.clone(),
            }
            assert!(!is_applied(&intent(), &other), "{path} {value}");
        }
    }
}
