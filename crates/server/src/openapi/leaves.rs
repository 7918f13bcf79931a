//! The types that are no objects with fields: times, quantities, and what may be anything.

use schema::types::{Node, Other};
use serde_json::{Value, json};

const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1";
const EXTENSIONS: &str = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1";
const QUANTITY: &str = "io.k8s.apimachinery.pkg.api.resource.Quantity";
const INT_OR_STRING: &str = "io.k8s.apimachinery.pkg.util.intstr.IntOrString";
const RAW: &str = "io.k8s.apimachinery.pkg.runtime.RawExtension";

/// The name of the definition that a node refers to, if it has one.
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
            "description": "Quantity is a fixed-point representation of a number.",
            "oneOf": [{ "type": "string" }, { "type": "number" }],
        }),
        (_, "IntOrString") if name == INT_OR_STRING => json!({
            "description": "IntOrString is a type that can hold an int32 or a string.",
            "format": "int-or-string",
            "oneOf": [{ "type": "integer" }, { "type": "string" }],
        }),
        (_, "RawExtension") if name == RAW => json!({
            "description": "RawExtension is used to hold extensions in external versions.",
            "type": "object",
        }),
        (META, "Time") => json!({
            "description": "Time is a moment in RFC 3339 with seconds.",
            "format": "date-time",
            "type": "string",
        }),
        (META, "MicroTime") => json!({
            "description": "MicroTime is version of Time with microsecond level precision.",
            "format": "date-time",
            "type": "string",
        }),
        (META, "FieldsV1") => json!({
            "description": "FieldsV1 stores a set of fields in a data structure like a Trie, in JSON format.",
            "type": "object",
        }),
        (META, "Patch") => json!({
            "description":
                "Patch is provided to give a concrete name and type to the Kubernetes PATCH request body.",
            "type": "object",
        }),
        (EXTENSIONS, "JSON") => json!({ "description": "JSON represents any valid JSON value." }),
        (EXTENSIONS, "JSONSchemaPropsOrArray") => json!({
            "description": "JSONSchemaPropsOrArray represents a value that can either be a JSONSchemaProps or an array of JSONSchemaProps. Mainly here for serialization purposes.",
        }),
        (EXTENSIONS, "JSONSchemaPropsOrBool") => json!({
            "description": "JSONSchemaPropsOrBool represents JSONSchemaProps or a boolean value. Defaults to true for the boolean property.",
        }),
        (EXTENSIONS, "JSONSchemaPropsOrStringArray") => json!({
            "description": "JSONSchemaPropsOrStringArray represents a JSONSchemaProps or a string array.",
        }),
        _ => return None,
    };
    Some(leaf)
}
