//! OpenAPI documents, from resources and their types.
//!
//! | path | document |
//! |---|---|
//! | `/openapi/v3` | [`index`]: the path of each version's document |
//! | `/openapi/v3/api/v1`, `/openapi/v3/apis/GROUP/VERSION` | [`document`] |
//! | `/openapi/v2` | [`swagger`]: everything in one OpenAPI v2 document |
//!
//! kubectl explains, validates and patches by them. The index names a document by a hash of what it is made
//! from, not of its text. Left out on purpose: enums of fields, which the type table does not hold, and the
//! deprecated paths under `/watch/`.

pub(crate) mod custom;
mod gnostic;
mod leaves;
mod operation;
mod parameters;
mod paths;
mod quoted_yaml;
mod schema_of;
mod swagger;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use schema::types::Types;
use serde_json::{Map, Value, json};

use crate::discovery::{self, Listed};
pub(crate) use custom::{OpenApiVersion, schemas_of};
pub(crate) use gnostic::gnostic;
pub(crate) use swagger::swagger;

/// OpenAPI schemas of custom resources, as [`custom::custom_schemas`] gives them.
pub(crate) type CustomSchemas = BTreeMap<String, Value>;

/// The path of a version's document.
pub(crate) fn path(group: &str, version: &str) -> String {
    format!("/openapi/v3{}", paths::prefix(group, version))
}

/// A hash that changes with the document of a version; `None` if it is not served. `all` may hold that
/// version alone; `customs` identifies the schemas of its custom resources.
pub(crate) fn fingerprint(all: &[Listed<'_>], customs: &str, group: &str, version: &str) -> Option<String> {
    let resources = discovery::resources(all, group, version)?;
    Some(discovery::fingerprint([discovery::GIT_VERSION, &resources, customs].concat().as_bytes()))
}

/// `/openapi/v3`.
pub(crate) fn index(all: &[Listed<'_>], fingerprint: impl Fn(&str, &str) -> Option<String>) -> String {
    let mut paths = Map::new();
    for it in all {
        let path = paths::prefix(it.group, it.version);
        let key = path.trim_start_matches('/');
        if !paths.contains_key(key) {
            let hash = fingerprint(it.group, it.version).unwrap_or_default();
            let url = format!("/openapi/v3{path}?hash={hash}");
            paths.insert(key.to_owned(), json!({ "serverRelativeURL": url }));
        }
    }
    json!({ "paths": paths }).to_string()
}

/// The document of one version; `None` if it is not served.
pub(crate) fn document(
    all: &[Listed<'_>],
    types: &Types,
    custom: &CustomSchemas,
    group: &str,
    version: &str,
) -> Option<String> {
    let listed: Vec<_> = all.iter().filter(|it| (it.group, it.version) == (group, version)).collect();
    if listed.is_empty() {
        return None;
    }
    let mut paths: Map<_, _> = listed.iter().flat_map(|it| paths::of_resource(it, types)).collect();
    let is_custom = listed.iter().all(|it| it.is_custom);
    if !is_custom {
        paths.extend([paths::of_version(group, version)]);
    }
    let mut schemas = schema_of::SchemaCollector::new(types, custom);
    for path in paths.values() {
        schemas.refer(path);
    }
    let mut components = json!({ "schemas": schemas.collect(Some((group, version))) });
    if !is_custom {
        components["securitySchemes"] = json!({ "BearerToken": bearer_token() });
    }
    let document = json!({
        "openapi": "3.0.0",
        "info": info(is_custom),
        "paths": paths,
        "components": components,
    });
    Some(document.to_string())
}

fn info(is_custom: bool) -> Value {
    match is_custom {
        true => json!({ "title": "Kubernetes CRD Swagger", "version": "v0.1.0" }),
        false => json!({ "title": "Kubernetes", "version": discovery::EMULATED }),
    }
}

fn bearer_token() -> Value {
    json!({
        "description": "Bearer Token authentication", "in": "header", "name": "authorization", "type": "apiKey",
    })
}
