//! The schema of a custom resource as its definition has it in, the one that clients see out, with that of its list.

use serde_json::{Value, json};

use super::schema_of::SCHEMAS;

const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1";
const CONVENTIONS: &str =
    "https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md";

/// One version of a custom resource.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CustomKind<'a> {
    pub(crate) group: &'a str,
    pub(crate) version: &'a str,
    pub(crate) kind: &'a str,
    pub(crate) list_kind: &'a str,
    pub(crate) plural: &'a str,
    /// `openAPIV3Schema` of the version.
    pub(crate) schema: Option<&'a Value>,
    /// `jsonPath` of its selectable fields.
    pub(crate) selectable: &'a [&'a str],
}

/// The schemas of the kind and of its list, by name.
pub(crate) fn custom_schemas(of: &CustomKind<'_>) -> [(String, Value); 2] {
    let name = custom_name(of.group, of.version, of.kind);
    let list_name = custom_name(of.group, of.version, of.list_kind);
    let list = list_schema(of, &name);
    [(name, object_schema(of)), (list_name, list)]
}

/// The schema's name of a custom resource: `com.example.v1.Widget`.
pub(crate) fn custom_name(group: &str, version: &str, kind: &str) -> String {
    let reversed: Vec<_> = group.split('.').rev().collect();
    format!("{}.{version}.{kind}", reversed.join("."))
}

fn object_schema(of: &CustomKind<'_>) -> Value {
    // Kubernetes: without a schema nothing is said of any field, or kubectl would refuse all others.
    let mut schema = json!({ "type": "object" });
    if let Some(given) = of.schema {
        schema = given.clone();
        unfold(&mut schema);
        let properties = &mut schema["properties"];
        properties["apiVersion"] = type_meta("apiVersion");
        properties["kind"] = type_meta("kind");
        properties["metadata"] = object_meta();
    }
    mark(&mut schema, of, of.kind);
    schema
}

fn list_schema(of: &CustomKind<'_>, name: &str) -> Value {
    let mut schema = json!({
        "type": "object",
        "description": format!("{} is a list of {}", of.list_kind, of.kind),
        "required": ["items"],
        "properties": {
            "apiVersion": type_meta("apiVersion"),
            "kind": type_meta("kind"),
            "items": {
                "description": format!("List of {}. More info: {CONVENTIONS}", of.plural),
                "type": "array",
                "items": { "$ref": format!("{SCHEMAS}{name}") },
            },
            "metadata": {
                "description": format!("Standard list metadata. More info: {CONVENTIONS}#types-kinds"),
                "allOf": [{ "$ref": format!("{SCHEMAS}{META}.ListMeta") }],
            },
        },
    });
    mark(&mut schema, of, of.list_kind);
    schema
}

fn mark(schema: &mut Value, of: &CustomKind<'_>, kind: &str) {
    schema["x-kubernetes-group-version-kind"] =
        json!([{ "group": of.group, "kind": kind, "version": of.version }]);
    if !of.selectable.is_empty() {
        let fields = of.selectable.iter().map(|path| json!({ "fieldPath": path.trim_start_matches('.') }));
        schema["x-kubernetes-selectable-fields"] = fields.collect();
    }
}

/// Says in plain OpenAPI what extensions mean: a number or a text, and whole objects inside of others.
fn unfold(schema: &mut Value) {
    if !schema.is_object() {
        return;
    }
    for field in schema["properties"].as_object_mut().into_iter().flatten() {
        unfold(field.1);
    }
    for inner in ["items", "additionalProperties"] {
        if let Some(inner) = schema.get_mut(inner) {
            unfold(inner);
        }
    }
    if schema["properties"].is_null()
        && let Some(members) = schema.as_object_mut()
    {
        members.remove("properties");
    }
    if schema.get("x-kubernetes-int-or-string") == Some(&Value::Bool(true)) {
        unfold_int_or_string(schema);
    }
    if schema.get("x-kubernetes-embedded-resource") == Some(&Value::Bool(true)) {
        unfold_embedded(schema);
    }
}

fn unfold_int_or_string(schema: &mut Value) {
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

fn unfold_embedded(schema: &mut Value) {
    schema["properties"]["apiVersion"] = json!({
        "type": "string",
        "description": format!(
            "apiVersion defines the versioned schema of this representation of an object. More info: {CONVENTIONS}#resources"
        ),
    });
    schema["properties"]["kind"] = json!({
        "type": "string",
        "description": format!(
            "kind is a string value representing the type of this object. In CamelCase. More info: {CONVENTIONS}#types-kinds"
        ),
    });
    schema["properties"]["metadata"] = object_meta();
    let mut required = schema.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
    for name in ["kind", "apiVersion"] {
        if !required.iter().any(|it| it == name) {
            required.push(Value::from(name));
        }
    }
    schema["required"] = Value::from(required);
}

fn object_meta() -> Value {
    json!({
        "description": format!("Standard object's metadata. More info: {CONVENTIONS}#metadata"),
        "allOf": [{ "$ref": format!("{SCHEMAS}{META}.ObjectMeta") }],
    })
}

fn type_meta(name: &str) -> Value {
    let description = match name {
        "apiVersion" => format!(
            "APIVersion defines the versioned schema of this representation of an object. Servers should convert recognized schemas to the latest internal value, and may reject unrecognized values. More info: {CONVENTIONS}#resources"
        ),
        _ => format!(
            "Kind is a string value representing the REST resource this object represents. Servers may infer this from the endpoint the client submits requests to. Cannot be updated. In CamelCase. More info: {CONVENTIONS}#types-kinds"
        ),
    };
    json!({ "description": description, "type": "string" })
}
