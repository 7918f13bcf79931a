//! `/openapi/v2`: the documents of all versions as one, in OpenAPI v2.

use schema::types::Types;
use serde_json::{Map, Value, json};

use super::schema_of::{SCHEMAS, SchemaCollector};
use super::{CustomSchemas, bearer_token, paths};
use crate::discovery::{self, Listed};

/// The prefix of a reference to a definition.
const DEFINITIONS: &str = "#/definitions/";

/// Everything that is served, in one document.
pub(crate) fn swagger(all: &[Listed<'_>], types: &Types, custom: &CustomSchemas) -> String {
    let mut schemas = SchemaCollector::new(types, custom);
    let mut paths = Map::new();
    for (path, item) in all.iter().flat_map(|it| paths::of_resource(it, types)) {
        schemas.refer(&item);
        paths.insert(path, path_item(item));
    }
    let definitions: Map<_, _> =
        schemas.collect(None).into_iter().map(|(name, schema)| (name, definition(schema))).collect();
    let document = json!({
        "swagger": "2.0",
        "info": { "title": "Kubernetes", "version": discovery::EMULATED },
        "paths": paths,
        "definitions": definitions,
        "securityDefinitions": { "BearerToken": bearer_token() },
        "security": [{ "BearerToken": [] }],
    });
    document.to_string()
}

/// Kubernetes: v2 has neither defaults nor alternatives, and no siblings of `$ref`.
fn definition(schema: Value) -> Value {
    match schema {
        Value::Array(items) => items.into_iter().map(definition).collect(),
        Value::Object(mut members) => {
            if let Some(Value::String(name)) = members.get("$ref") {
                return json!({ "$ref": name.replace(SCHEMAS, DEFINITIONS) });
            }
            if let Some(Value::Array(all_of)) = members.remove("allOf")
                && let Some(Value::Object(reference)) = all_of.into_iter().next().map(definition)
            {
                members.extend(reference);
            }
            let is_either = members.remove("oneOf").is_some();
            if is_either && !members.contains_key("type") {
                members.insert("type".to_owned(), Value::from("string"));
            }
            for alternative in ["anyOf", "not", "nullable"] {
                members.remove(alternative);
            }
            members.into_iter().filter(|(name, _)| name != "default").map(in_definition).collect()
        }
        scalar => scalar,
    }
}

/// A field named `default` is not a default.
fn in_definition((name, member): (String, Value)) -> (String, Value) {
    match (name.as_str(), member) {
        ("properties", Value::Object(fields)) => {
            let fields: Map<_, _> = fields.into_iter().map(|(field, it)| (field, definition(it))).collect();
            (name, Value::from(fields))
        }
        ("$ref", reference) => (name, reference),
        (_, member) => (name, definition(member)),
    }
}

fn path_item(item: Value) -> Value {
    let Value::Object(members) = item else { return item };
    let members = members.into_iter().map(|(method, member)| match member {
        Value::Array(parameters) => (method, parameters.into_iter().map(parameter).collect()),
        operation => (method, operation_of(operation)),
    });
    Value::Object(members.collect())
}

fn parameter(mut parameter: Value) -> Value {
    let schema = parameter["schema"].take();
    if let (Value::Object(members), Value::Object(schema)) = (&mut parameter, schema) {
        members.remove("schema");
        members.extend(schema);
    }
    parameter
}

fn operation_of(mut operation: Value) -> Value {
    let parameters = match operation["parameters"].take() {
        Value::Array(parameters) => parameters,
        _ => Vec::new(),
    };
    let mut parameters: Vec<_> = parameters.into_iter().map(parameter).collect();
    let body = operation["requestBody"].take();
    let consumes = media_types(&body["content"]);
    if let Some(schema) = first_schema(&body["content"]) {
        let mut parameter = json!({ "in": "body", "name": "body", "schema": schema });
        if body["required"] == true {
            parameter["required"] = Value::from(true);
        }
        parameters.insert(0, parameter);
    }
    let responses = operation["responses"].take();
    let mut produces = Vec::new();
    let mut answers = Map::new();
    for (code, response) in responses.as_object().into_iter().flatten() {
        let mut answer = json!({ "description": response["description"] });
        if let Some(schema) = first_schema(&response["content"]) {
            answer["schema"] = schema;
            produces = media_types(&response["content"]);
        }
        answers.insert(code.clone(), answer);
    }
    operation["responses"] = Value::from(answers);
    operation["produces"] = json!(produces);
    operation["consumes"] = if consumes.is_empty() { json!(["*/*"]) } else { json!(consumes) };
    operation["schemes"] = json!(["https"]);
    if let Value::Object(members) = &mut operation {
        members.remove("requestBody");
        members.remove("parameters");
        if !parameters.is_empty() {
            members.insert("parameters".to_owned(), Value::from(parameters));
        }
    }
    operation
}

fn media_types(content: &Value) -> Vec<String> {
    content.as_object().into_iter().flat_map(Map::keys).cloned().collect()
}

fn first_schema(content: &Value) -> Option<Value> {
    let first = content.as_object()?.values().next()?;
    Some(definition(first["schema"].clone()))
}
