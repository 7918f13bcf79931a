//! What no structural schema can hold at all: the first such keyword, in the order in which Kubernetes reads.

use serde_json::Value;

use super::walk;

pub(super) fn find(schema: &Value) -> Option<String> {
    if walk::is_plain_scalar(schema) {
        return None;
    }
    if let Some(holder) = walk::plain_holder(schema) {
        return walk::parts_behind(holder, schema).find_map(find);
    }
    let is_there = |name: &str| match schema.get(name) {
        None | Some(Value::Null) => false,
        Some(Value::String(text)) => !text.is_empty(),
        Some(Value::Object(members)) => !members.is_empty(),
        Some(_) => true,
    };
    let keywords =
        [("id", "id"), ("$schema", "schema"), ("$ref", "$ref"), ("patternProperties", "patternProperties")];
    for (name, shown) in keywords.into_iter().chain([("dependencies", "dependencies")]) {
        if is_there(name) {
            return Some(format!("OpenAPIV3Schema '{shown}' is not supported"));
        }
    }
    if schema.get("additionalItems").is_some_and(|it| !it.is_null()) {
        return Some("OpenAPIV3Schema 'additionalItems' is not supported".to_owned());
    }
    if is_there("definitions") {
        return Some("OpenAPIV3Schema 'definitions' is not supported".to_owned());
    }
    let junctors = ["not", "allOf", "anyOf", "oneOf"].into_iter().filter_map(|name| schema.get(name));
    if let Some(problem) = junctors.flat_map(alternatives).find_map(find) {
        return Some(problem);
    }
    if schema.get("x-kubernetes-preserve-unknown-fields") == Some(&Value::Bool(false)) {
        let problem = "internal error: 'x-kubernetes-preserve-unknown-fields' must be true or undefined";
        return Some(problem.to_owned());
    }
    if schema.get("items").is_some_and(|items| items.as_array().is_some_and(|it| !it.is_empty())) {
        return Some("OpenAPIV3Schema 'items' must be a schema, but is an array".to_owned());
    }
    let items = schema.get("items").into_iter();
    let properties = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
    let inner = items.chain(properties.map(|(_, schema)| schema)).chain(schema.get("additionalProperties"));
    inner.filter(|it| it.is_object()).find_map(find)
}

/// A schema alone, or each of a list.
fn alternatives(value: &Value) -> Box<dyn Iterator<Item = &Value> + '_> {
    match value {
        Value::Array(items) => Box::new(items.iter()),
        Value::Object(_) => Box::new(std::iter::once(value)),
        _ => Box::new(std::iter::empty()),
    }
}
