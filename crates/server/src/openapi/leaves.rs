//! Types without fields: times, quantities, and arbitrary values.

use schema::types::{Node, Other};
use serde_json::{Value, json};

const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1";
const EXTENSIONS: &str = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1";
const QUANTITY: &str = "io.k8s.apimachinery.pkg.api.resource.Quantity";
const INT_OR_STRING: &str = "io.k8s.apimachinery.pkg.util.intstr.IntOrString";
const RAW: &str = "io.k8s.apimachinery.pkg.runtime.RawExtension";

/// The name of the definition that a node refers to, if any.
pub(super) fn name(node: &Node) -> Option<String> {
    Some(match node {
        Node::Time => format!("{META}.Time"),
        Node::MicroTime => format!("{META}.MicroTime"),
        Node::FieldsV1 => format!("{META}.FieldsV1"),
        Node::Quantity => QUANTITY.to_owned(),
        Node::IntOrString => INT_OR_STRING.to_owned(),
        Node::Raw => RAW.to_owned(),
        Node::Json => format!("{EXTENSIONS}.JSON"),
        Node::Either(_, Other::List) => format!("{EXTENSIONS}.JSONSchemaPropsOrArray"),
        Node::Either(_, Other::Bool) => format!("{EXTENSIONS}.JSONSchemaPropsOrBool"),
        Node::Either(_, Other::Strings) => format!("{EXTENSIONS}.JSONSchemaPropsOrStringArray"),
        _ => return None,
    })
}

/// The definition of that name.
pub(super) fn definition(name: &str) -> Option<Value> {
    let leaf = match name.rsplit_once('.')? {
        (_, "Quantity") if name == QUANTITY => json!({
            "description": "An exact amount with an optional unit, such as 500m, 1Gi or 2.5.",
            "oneOf": [{ "type": "string" }, { "type": "number" }],
        }),
        (_, "IntOrString") if name == INT_OR_STRING => json!({
            "description": "A whole number of 32 bits, or a text.",
            "format": "int-or-string",
            "oneOf": [{ "type": "integer" }, { "type": "string" }],
        }),
        (_, "RawExtension") if name == RAW => json!({
            "description": "An object of any kind, kept as it is.",
            "type": "object",
        }),
        (META, "Time") => json!({
            "description": "A moment to the second, in RFC 3339, such as 2026-01-31T12:00:00Z.",
            "format": "date-time",
            "type": "string",
        }),
        (META, "MicroTime") => json!({
            "description": "A moment to the microsecond, in RFC 3339.",
            "format": "date-time",
            "type": "string",
        }),
        (META, "FieldsV1") => json!({
            "description": "A set of fields as a tree: f:NAME is a field, k:KEYS and v:VALUE are items of a list, . is the place itself.",
            "type": "object",
        }),
        (META, "Patch") => json!({
            "description": "The body of a patch request. Its content type tells its form.",
            "type": "object",
        }),
        (EXTENSIONS, "JSON") => json!({ "description": "Any JSON value." }),
        (EXTENSIONS, "JSONSchemaPropsOrArray") => json!({
            "description": "A schema, or a list of schemas.",
        }),
        (EXTENSIONS, "JSONSchemaPropsOrBool") => json!({
            "description": "A schema, or true for anything and false for nothing.",
        }),
        (EXTENSIONS, "JSONSchemaPropsOrStringArray") => json!({
            "description": "A schema, or a list of names of properties.",
        }),
        _ => return None,
    };
    Some(leaf)
}
