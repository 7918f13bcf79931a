//! Reviews a schema: what keeps it from being structural, and what will cause problems.

use super::{Findings, rule};
use serde_json::{Map, Value, json};

/// Kubernetes: not allowed in a structural schema.
const FORBIDDEN: &[&str] = &["$ref", "definitions", "dependencies", "id", "patternProperties", "$schema"];
/// Kubernetes: schemas inside of these may only restrict what the schema outside of them allows.
const JUNCTORS: &[&str] = &["allOf", "anyOf", "oneOf", "not"];
const OUTSIDE_ONLY: &[&str] =
    &["additionalProperties", "default", "description", "nullable", "title", "type"];
/// Kubernetes: the formats that are validated.
const FORMATS: &[&str] = &[
    "bsonobjectid",
    "uri",
    "email",
    "hostname",
    "ipv4",
    "ipv6",
    "cidr",
    "mac",
    "uuid",
    "uuid3",
    "uuid4",
    "uuid5",
    "isbn",
    "isbn10",
    "isbn13",
    "creditcard",
    "ssn",
    "hexcolor",
    "rgbcolor",
    "byte",
    "password",
    "date",
    "duration",
    "datetime",
    "date-time",
    "int32",
    "int64",
    "float",
    "double",
    "k8s-short-name",
    "k8s-long-name",
];

/// What surrounds a schema.
#[derive(Clone, Copy)]
pub(super) struct SchemaContext<'a> {
    /// The nearest enclosing list or map without a limit.
    pub(super) unbounded: Option<&'a str>,
    /// Whether an enclosing list is not a map list, so that its items have no identity.
    pub(super) has_no_identity: bool,
    depth: usize,
}

pub(super) fn review(path: &str, schema: &Value, findings: &mut Findings) {
    if kind(schema) != "object" {
        findings.refused(format!("{path}.type"), "must be object at the root");
    }
    if is_set(schema, "x-kubernetes-preserve-unknown-fields") {
        findings.hurts(path, "unknown fields are kept everywhere: misspelt ones stay unnoticed");
    }
    for field in ["apiVersion", "kind"] {
        if schema["properties"].get(field).is_some_and(|found| kind(found) != "string") {
            findings.refused(format!("{path}.properties[{field}].type"), "must be string");
        }
    }
    if let Some(metadata) = schema["properties"].get("metadata") {
        let allowed = |field: &String| ["name", "generateName"].contains(&field.as_str());
        if fields(metadata, "properties").is_some_and(|fields| !fields.keys().all(allowed)) {
            findings.refused(format!("{path}.properties[metadata]"), "may only narrow name and generateName");
        }
    }
    node(path, schema, SchemaContext { unbounded: None, has_no_identity: false, depth: 0 }, findings);
}

/// A schema and those below it.
fn node(path: &str, schema: &Value, context: SchemaContext<'_>, findings: &mut Findings) {
    shape(path, schema, findings);
    default(path, schema, findings);
    for junctor in JUNCTORS {
        for (place, part) in junction(schema, junctor) {
            narrowing(&format!("{path}.{junctor}{place}"), part, schema, findings);
        }
    }
    rule::review(path, schema, context, findings);
    let deeper = SchemaContext { depth: context.depth + 1, ..context };
    for (name, field) in fields(schema, "properties").into_iter().flatten() {
        let path = format!("{path}.properties[{name}]");
        let is_common = context.depth == 0 && ["apiVersion", "kind", "metadata"].contains(&name.as_str());
        if !is_common && field.get("description").is_none() {
            findings.hurts(&path, "has no description");
        }
        node(&path, field, deeper, findings);
    }
    let limit = |name: &str| schema.get(name).is_some_and(Value::is_number);
    if let Some(values) = schema.get("additionalProperties").filter(|values| values.is_object()) {
        let unbounded = if limit("maxProperties") { context.unbounded } else { Some(path) };
        node(
            &format!("{path}.additionalProperties"),
            values,
            SchemaContext { unbounded, ..deeper },
            findings,
        );
    }
    if let Some(items) = schema.get("items").filter(|items| items.is_object()) {
        list(path, schema, items, findings);
        let unbounded = if limit("maxItems") { context.unbounded } else { Some(path) };
        let has_no_identity = context.has_no_identity || text(schema, "x-kubernetes-list-type") != "map";
        node(
            &format!("{path}.items"),
            items,
            SchemaContext { unbounded, has_no_identity, ..deeper },
            findings,
        );
    }
}

/// What a structural schema needs.
fn shape(path: &str, schema: &Value, findings: &mut Findings) {
    let is_either = is_set(schema, "x-kubernetes-int-or-string");
    match kind(schema) {
        "" if !is_either && !is_set(schema, "x-kubernetes-preserve-unknown-fields") => {
            findings.refused(format!("{path}.type"), "must be there");
        }
        "array" if !schema.get("items").is_some_and(Value::is_object) => {
            findings.refused(format!("{path}.items"), "must be there, once for all items");
        }
        kind if is_either && !kind.is_empty() => {
            findings.refused(format!("{path}.type"), "must not be there beside x-kubernetes-int-or-string");
        }
        "array" | "boolean" | "integer" | "number" | "object" | "string" | "" => {}
        other => findings.refused(format!("{path}.type"), format!("{other:?} is no type")),
    }
    match schema.get("additionalProperties") {
        Some(Value::Bool(false)) => {
            findings.refused(format!("{path}.additionalProperties"), "must not be false")
        }
        Some(_) if fields(schema, "properties").is_some_and(|fields| !fields.is_empty()) => {
            findings.refused(format!("{path}.additionalProperties"), "must not be there beside properties");
        }
        _ => {}
    }
    if is_set(schema, "uniqueItems") {
        findings.refused(format!("{path}.uniqueItems"), "must not be true: use x-kubernetes-list-type: set");
    }
    for word in FORBIDDEN.iter().filter(|word| schema.get(**word).is_some()) {
        findings.refused(format!("{path}.{word}"), "must not be there");
    }
    if let Some(format) = schema.get("format").and_then(Value::as_str)
        && !FORMATS.contains(&format)
    {
        findings.hurts(format!("{path}.format"), format!("{format:?} is not checked by the server"));
    }
    for name in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        if fields(schema, "properties").is_some_and(|fields| !fields.contains_key(name)) {
            findings.hurts(format!("{path}.required"), format!("{name:?} is no property"));
        }
    }
}

/// A schema inside `anyOf` and its like.
fn narrowing(path: &str, part: &Value, outside: &Value, findings: &mut Findings) {
    let is_either =
        is_set(outside, "x-kubernetes-int-or-string") && matches!(kind(part), "integer" | "string");
    for (word, _) in part.as_object().into_iter().flatten() {
        let is_outside_only = OUTSIDE_ONLY.contains(&word.as_str()) || word.starts_with("x-kubernetes-");
        if is_outside_only && !(is_either && word == "type") {
            findings.refused(format!("{path}.{word}"), "must not be there: say it outside");
        }
    }
    for (name, field) in fields(part, "properties").into_iter().flatten() {
        let path = format!("{path}.properties[{name}]");
        let known = outside["properties"].get(name).or(outside.get("additionalProperties"));
        match known {
            Some(known) => narrowing(&path, field, known, findings),
            None if is_set(outside, "x-kubernetes-preserve-unknown-fields") => {}
            None => findings.refused(path, "must be a property outside, too"),
        }
    }
}

/// How the items of a list are identified.
fn list(path: &str, schema: &Value, items: &Value, findings: &mut Findings) {
    let keys: Vec<&str> = schema["x-kubernetes-list-map-keys"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let place = format!("{path}.x-kubernetes-list-type");
    match text(schema, "x-kubernetes-list-type") {
        "" if kind(items) == "object" => {
            findings.hurts(place, "is not set: whoever applies an item takes the whole list");
        }
        "" | "atomic" => {}
        "set" => {
            let is_atomic = text(items, "x-kubernetes-map-type") == "atomic"
                || text(items, "x-kubernetes-list-type") == "atomic";
            if matches!(kind(items), "object" | "array") && !is_atomic {
                findings.refused(place, "a set holds scalars or atomic items");
            }
        }
        "map" if keys.is_empty() => findings.refused(place, "a map needs x-kubernetes-list-map-keys"),
        "map" => {
            for key in keys {
                map_key(&format!("{path}.items.properties[{key}]"), key, items, findings);
            }
        }
        other => findings.refused(place, format!("{other:?} is none of atomic, set, map")),
    }
    let is_condition = path.ends_with("properties[conditions]");
    if is_condition && schema["x-kubernetes-list-map-keys"] != json!(["type"]) {
        findings.hurts(path, "conditions should be a map by type, lest controllers overwrite each other's");
    }
}

fn map_key(path: &str, key: &str, items: &Value, findings: &mut Findings) {
    let Some(field) = items["properties"].get(key) else {
        return findings.refused(path, "is a key of the list, but no property of its items");
    };
    if !matches!(kind(field), "boolean" | "integer" | "number" | "string") {
        findings.refused(path, "is a key of the list, and must be a scalar");
    }
    let is_required = items["required"].as_array().is_some_and(|all| all.contains(&json!(key)));
    if !is_required && field.get("default").is_none() {
        findings.refused(path, "is a key of the list, and must be required or have a default");
    }
}

fn default(path: &str, schema: &Value, findings: &mut Findings) {
    let Some(value) = schema.get("default") else { return };
    let is_known_null = value.is_null() && is_set(schema, "nullable");
    let fits = match kind(schema) {
        _ if is_known_null => true,
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        _ => true,
    };
    if !fits {
        findings.refused(format!("{path}.default"), format!("{value} is no {}", kind(schema)));
    }
    let values = schema["enum"].as_array();
    if values.is_some_and(|values| !values.contains(value)) {
        findings.refused(format!("{path}.default"), format!("{value} is not in the enum"));
    }
}

fn junction<'a>(schema: &'a Value, junctor: &str) -> Vec<(String, &'a Value)> {
    match schema.get(junctor) {
        Some(Value::Array(parts)) => {
            parts.iter().enumerate().map(|(place, part)| (format!("[{place}]"), part)).collect()
        }
        Some(part) => vec![(String::new(), part)],
        None => Vec::new(),
    }
}

fn fields<'a>(schema: &'a Value, word: &str) -> Option<&'a Map<String, Value>> {
    schema.get(word).and_then(Value::as_object)
}

pub(super) fn kind(schema: &Value) -> &str {
    text(schema, "type")
}

fn text<'a>(schema: &'a Value, word: &str) -> &'a str {
    schema.get(word).and_then(Value::as_str).unwrap_or_default()
}

fn is_set(schema: &Value, word: &str) -> bool {
    schema.get(word) == Some(&Value::Bool(true))
}
