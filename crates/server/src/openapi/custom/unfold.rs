//! Says in plain OpenAPI what extensions mean: a number or a text, and whole objects inside of others.

use serde_json::{Value, json};

use super::{CONVENTIONS, Form, object_meta};

/// Every part of a schema that is told outside of `allOf` and the like, the inner ones first.
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
pub(super) fn numbers_or_texts(schema: &mut Value) {
    each(schema, &mut |part| {
        if is_true(part, "x-kubernetes-int-or-string") {
            tell_types(part);
        }
    });
}

fn tell_types(schema: &mut Value) {
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

/// `x-kubernetes-embedded-resource`. In the older form an object that may hold anything stays so.
pub(super) fn embedded(schema: &mut Value, form: Form) {
    each(schema, &mut |part| {
        let is_open = form == Form::Older && is_true(part, "x-kubernetes-preserve-unknown-fields");
        if is_true(part, "x-kubernetes-embedded-resource") && !is_open {
            tell_metadata(part);
        }
    });
}

fn tell_metadata(schema: &mut Value) {
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
