//! Expresses extensions in plain OpenAPI: int-or-string and embedded resources.

use serde_json::{Value, json};

use super::{CONVENTIONS, OpenApiVersion, object_meta};

/// Visits every part of a schema outside of `allOf` and the like, inner parts first.
fn each(schema: &mut Value, change: &mut dyn FnMut(&mut Value)) {
    if !schema.is_object() {
        return;
    }
    for (_, property) in schema.get_mut("properties").and_then(Value::as_object_mut).into_iter().flatten() {
        each(property, change);
    }
    for inner in ["items", "additionalProperties"] {
        if let Some(inner) = schema.get_mut(inner) {
            each(inner, change);
        }
    }
    change(schema);
}

fn is_true(schema: &Value, extension: &str) -> bool {
    schema.get(extension) == Some(&Value::Bool(true))
}

/// `x-kubernetes-int-or-string`.
pub(super) fn int_or_string(schema: &mut Value) {
    each(schema, &mut |part| {
        if is_true(part, "x-kubernetes-int-or-string") {
            add_types(part);
        }
    });
}

fn add_types(schema: &mut Value) {
    let either = json!([{ "type": "integer" }, { "type": "string" }]);
    let is_said = schema.get("anyOf") == Some(&either)
        || schema.pointer("/allOf/0/anyOf").is_some_and(|any_of| *any_of == either);
    if is_said {
        return;
    }
    if schema.get("anyOf").is_none() {
        schema["anyOf"] = either;
        return;
    }
    let first = json!({ "anyOf": either });
    match schema.get_mut("allOf").and_then(Value::as_array_mut) {
        Some(all_of) => all_of.insert(0, first),
        None => schema["allOf"] = json!([first]),
    }
}

/// `x-kubernetes-embedded-resource`. In OpenAPI v2 an object that preserves unknown fields is left alone.
pub(super) fn embedded(schema: &mut Value, openapi: OpenApiVersion) {
    each(schema, &mut |part| {
        let is_open = openapi == OpenApiVersion::V2 && is_true(part, "x-kubernetes-preserve-unknown-fields");
        if is_true(part, "x-kubernetes-embedded-resource") && !is_open {
            add_metadata(part);
        }
    });
}

fn add_metadata(schema: &mut Value) {
    let text = |description: String| json!({ "type": "string", "description": description });
    let properties = &mut schema["properties"];
    properties["apiVersion"] = text(format!(
        "apiVersion defines the versioned schema of this representation of an object. More info: {CONVENTIONS}#resources"
    ));
    properties["kind"] = text(format!(
        "kind is a string value representing the type of this object. In CamelCase. More info: {CONVENTIONS}#types-kinds"
    ));
    properties["metadata"] = object_meta();
    let mut required = schema.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
    for name in ["kind", "apiVersion"] {
        if !required.iter().any(|it| it == name) {
            required.push(Value::from(name));
        }
    }
    schema["required"] = Value::from(required);
}
