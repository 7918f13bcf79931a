//! Every part of a schema, one after the other.

use serde_json::Value;

use super::list_type;

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
const FORMATS: [&str; 26] = [
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
    "k8sshortname",
    "k8slongname",
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
            let is_known = match text("type") {
                "" | "string" => FORMATS.contains(&&*format.replace('-', "")),
                "integer" => matches!(format, "int32" | "int64"),
                "number" => matches!(format, "float" | "double"),
                _ => false,
            };
            if !format.is_empty() && !is_known {
                found.push(format.to_owned());
            }
            false
        });
    }
    found
}
