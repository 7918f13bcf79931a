//! Schemas of a custom resource and its list for OpenAPI, from the schema in its definition.

mod older;
mod unfold;

use kinds::definition::{Definition, Version};
use serde_json::{Value, json};

use super::schema_of::SCHEMAS;

const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1";
const CONVENTIONS: &str =
    "https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md";

/// The version of OpenAPI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OpenApiVersion {
    /// Version 2, for old kubectl: constructs that it does not support are left out. References are still
    /// those of version 3.
    V2,
    /// Version 3.
    V3,
}

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
    pub(crate) selectable: &'a [String],
    /// `preserveUnknownFields`: all fields are kept, whatever the schema.
    pub(crate) preserves: bool,
}

/// The schemas of a version of a definition.
pub(crate) fn schemas_of(
    definition: &Definition,
    version: &Version,
    openapi: OpenApiVersion,
) -> [(String, Value); 2] {
    let schema = version.schema();
    let kind = CustomKind {
        group: &definition.group,
        version: &version.name,
        kind: &definition.names.kind,
        list_kind: &definition.names.list_kind,
        plural: &definition.names.plural,
        schema: schema.as_ref(),
        selectable: &version.selectable,
        preserves: definition.preserve_unknown_fields,
    };
    custom_schemas(&kind, openapi)
}

/// The schemas of the kind and of its list, by name.
pub(crate) fn custom_schemas(of: &CustomKind<'_>, openapi: OpenApiVersion) -> [(String, Value); 2] {
    let name = custom_name(of.group, of.version, of.kind);
    let list_name = custom_name(of.group, of.version, of.list_kind);
    let list = list_schema(of, &name);
    [(name, object_schema(of, openapi)), (list_name, list)]
}

/// The schema name of a custom resource: `com.example.v1.Widget`.
pub(crate) fn custom_name(group: &str, version: &str, kind: &str) -> String {
    let reversed: Vec<_> = group.split('.').rev().collect();
    format!("{}.{version}.{kind}", reversed.join("."))
}

fn object_schema(of: &CustomKind<'_>, openapi: OpenApiVersion) -> Value {
    let mut schema = of.schema.filter(|_| !is_published_empty(of, openapi)).cloned();
    if let Some(schema) = &mut schema {
        unfold::int_or_string(schema);
        if openapi == OpenApiVersion::V2 {
            older::simplify(schema);
        }
        unfold::embedded(schema, openapi);
        let properties = &mut schema["properties"];
        properties["apiVersion"] = type_meta("apiVersion");
        properties["kind"] = type_meta("kind");
        properties["metadata"] = object_meta();
    }
    let mut schema = schema.unwrap_or_else(|| json!({ "type": "object" }));
    mark(&mut schema, of, of.kind);
    schema
}

/// Kubernetes: old kubectl rejects every field that a schema does not name, so a schema that preserves
/// unknown fields is published without any.
fn is_published_empty(of: &CustomKind<'_>, openapi: OpenApiVersion) -> bool {
    let preserves =
        of.schema.is_some_and(|it| it.get("x-kubernetes-preserve-unknown-fields") == Some(&true.into()));
    openapi == OpenApiVersion::V2 && (preserves || of.preserves)
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
        let fields = of.selectable.iter().map(|path| {
            let path = path.strip_prefix('.').unwrap_or(path);
            json!({ "fieldPath": path })
        });
        schema["x-kubernetes-selectable-fields"] = fields.collect();
    }
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
