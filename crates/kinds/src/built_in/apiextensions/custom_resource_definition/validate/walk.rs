//! Every part of a schema, one after the other.

use schema::structural::is_checked_format;
use serde_json::Value;

use super::list_type;
use crate::validate::at::At;

const PROPERTIES: &str = "properties";
const ALONE: [&str; 4] = ["items", "not", "additionalProperties", "additionalItems"];
const LISTS: [&str; 4] = ["items", "allOf", "anyOf", "oneOf"];
const MAPS: [&str; 4] = ["properties", "patternProperties", "definitions", "dependencies"];
const EXTENSIONS: [&str; 6] = [
    "x-kubernetes-embedded-resource",
    "x-kubernetes-preserve-unknown-fields",
    "x-kubernetes-int-or-string",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-list-type",
    "x-kubernetes-validations",
];

/// Whether a part tells the type of one scalar and nothing that could be wrong about it, as most parts of most schemas
/// do: they need no second look.
pub(super) fn is_plain_scalar(schema: &Value) -> bool {
    let mut has_type = false;
    let is_plain = |(keyword, value): (&String, &Value)| match keyword.as_str() {
        "type" => {
            has_type = true;
            matches!(value.as_str(), Some("string" | "integer" | "boolean" | "number"))
        }
        "description" | "format" | "enum" | "maxLength" | "minLength" | "maximum" | "minimum" => true,
        _ => false,
    };
    schema.as_object().is_some_and(|members| members.iter().all(is_plain)) && has_type
}

/// The keyword with all that is inside of a part which tells the type of one object or list, and nothing that could be
/// wrong about it: such a part needs no second look, but what is inside does.
///
/// Behind `properties` are parts by name, behind the others is one.
pub(super) fn plain_holder(schema: &Value) -> Option<&'static str> {
    let (mut kind, mut holder, mut merged_as) = ("", None, None);
    for (keyword, value) in schema.as_object()? {
        let is_plain = match (keyword.as_str(), value) {
            ("description", _) | ("required", _) | ("minItems" | "maxItems", _) => true,
            ("type", Value::String(name)) => {
                kind = name;
                true
            }
            ("items" | "properties" | "additionalProperties", Value::Object(_)) => {
                // One of them at most: two are never plain.
                holder.replace(keyword.as_str()).is_none()
            }
            ("x-kubernetes-list-type", value) if value == "atomic" => merged_as.replace("array").is_none(),
            ("x-kubernetes-map-type", value) if value == "atomic" => merged_as.replace("object").is_none(),
            _ => false,
        };
        if !is_plain {
            return None;
        }
    }
    let holder = match (kind, holder) {
        ("array", Some("items")) => "items",
        ("object", None | Some(PROPERTIES)) => PROPERTIES,
        ("object", Some("additionalProperties")) => "additionalProperties",
        _ => return None,
    };
    merged_as.is_none_or(|merged_as| merged_as == kind).then_some(holder)
}

/// What is behind the holder of a part.
pub(super) fn parts_behind<'v>(holder: &str, schema: &'v Value) -> impl Iterator<Item = &'v Value> {
    let inside = schema.get(holder);
    let (one, members) = match holder {
        PROPERTIES => (None, inside.and_then(Value::as_object)),
        _ => (inside, None),
    };
    one.into_iter().chain(members.into_iter().flatten().map(|(_, part)| part))
}

/// The same with their places.
pub(super) fn each_behind<'v>(holder: &str, schema: &At<'v, '_>, mut look: impl FnMut(&At<'v, '_>)) {
    let inside = schema.field(holder);
    match holder {
        PROPERTIES => inside.entries().for_each(|(_, part)| look(&part)),
        _ => look(&inside),
    }
}

/// Whether some part of the schema is so.
pub(super) fn any(schema: &Value, is_so: &mut dyn FnMut(&Value) -> bool) -> bool {
    if !schema.is_object() {
        return false;
    }
    if is_so(schema) {
        return true;
    }
    if is_plain_scalar(schema) {
        return false;
    }
    if let Some(holder) = plain_holder(schema) {
        return parts_behind(holder, schema).any(|part| any(part, is_so));
    }
    let alone = ALONE.iter().filter_map(|name| schema.get(name));
    let listed = LISTS.iter().filter_map(|name| schema.get(name)?.as_array()).flatten();
    let mapped =
        MAPS.iter().filter_map(|name| schema.get(name)?.as_object()).flatten().map(|(_, schema)| schema);
    alone.chain(listed).chain(mapped).any(|part| any(part, is_so))
}

pub(super) fn has_default(schema: &Value) -> bool {
    any(schema, &mut |part| part.get("default").is_some_and(|it| !it.is_null()))
}

pub(super) fn has_extension(schema: &Value) -> bool {
    any(schema, &mut |part| EXTENSIONS.iter().any(|name| part.get(name).is_some_and(|it| *it != false)))
}

pub(super) fn has_unknown_type(schema: &Value) -> bool {
    const KNOWN: [&str; 7] = ["", "string", "number", "integer", "boolean", "array", "object"];
    any(schema, &mut |part| part["type"].as_str().is_some_and(|name| !KNOWN.contains(&name)))
}

pub(super) fn has_unatomic_set(schema: &Value) -> bool {
    any(schema, &mut |part| list_type::unatomic(part).is_some())
}

pub(super) fn has_bad_keys(schema: &Value) -> bool {
    any(schema, &mut list_type::has_bad_keys)
}

/// Formats that nothing checks, in the schemas of a definition's spec.
pub(crate) fn unrecognized_formats(spec: &Value) -> Vec<String> {
    let mut found = Vec::new();
    let versions = spec.get("versions").and_then(Value::as_array).into_iter().flatten();
    let mut schemas: Vec<_> =
        versions.filter_map(|version| version.pointer("/schema/openAPIV3Schema")).collect();
    // Kubernetes: what all versions share is looked at once.
    if schemas.windows(2).all(|pair| pair[0] == pair[1]) {
        schemas.truncate(1);
    }
    for schema in schemas {
        any(schema, &mut |part| {
            let text = |name: &str| part.get(name).and_then(Value::as_str).unwrap_or_default();
            let format = text("format");
            if format.is_empty() {
                return false;
            }
            let is_known = is_checked_format(text("type"), format);
            if !is_known {
                found.push(format.to_owned());
            }
            false
        });
    }
    found
}
