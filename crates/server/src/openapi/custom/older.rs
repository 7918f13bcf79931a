//! Removes from a schema what OpenAPI v2, or old kubectl, does not support.

use serde_json::{Map, Value};

/// Outer parts first: dropped parts need no visit.
pub(super) fn simplify(schema: &mut Value) {
    let Some(members) = schema.as_object_mut() else { return };
    for junctor in ["allOf", "oneOf", "anyOf", "not"] {
        members.remove(junctor);
    }
    let preserves = is_true(members, "x-kubernetes-preserve-unknown-fields");
    let is_nullable = members.remove("nullable") == Some(Value::Bool(true));
    // Kubernetes: kubectl takes a given type, fields or items as exhaustive.
    if is_nullable || preserves {
        members.remove("items");
        members.remove("properties");
    }
    let is_list_of_anything = is(members, "array") && !members.contains_key("items");
    if is_nullable || is_list_of_anything || preserves && is(members, "object") {
        members.remove("type");
    }
    forgive_nullable(members);
    for (_, property) in members.get_mut("properties").and_then(Value::as_object_mut).into_iter().flatten() {
        simplify(property);
    }
    for inner in ["items", "additionalProperties"] {
        if let Some(inner) = members.get_mut(inner) {
            simplify(inner);
        }
    }
}

/// A nullable field cannot be required: null counts as missing.
fn forgive_nullable(members: &mut Map<String, Value>) {
    let properties = members.get("properties").and_then(Value::as_object).into_iter().flatten();
    let nullable: Vec<String> = properties
        .filter(|(_, property)| property.get("nullable") == Some(&Value::Bool(true)))
        .map(|(name, _)| name.clone())
        .collect();
    let all_are =
        members.get("additionalProperties").and_then(|it| it.get("nullable")) == Some(&Value::Bool(true));
    let Some(required) = members.get_mut("required").and_then(Value::as_array_mut) else { return };
    required.retain(|name| !all_are && !nullable.iter().any(|it| name == it));
    if required.is_empty() {
        members.remove("required");
    }
}

fn is_true(members: &Map<String, Value>, extension: &str) -> bool {
    members.get(extension) == Some(&Value::Bool(true))
}

fn is(members: &Map<String, Value>, type_name: &str) -> bool {
    members.get("type").is_some_and(|it| it == type_name)
}
