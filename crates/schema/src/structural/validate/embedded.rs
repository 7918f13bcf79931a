//! Validates embedded objects: each needs apiVersion and kind, and valid metadata.

use api::field::{Error, ErrorList, Path};
use api::kind::GroupVersionKind;
use api::meta::{ObjectMeta, Scope, check_create};
use api::name::{Format, NameRule};
use serde::Deserialize as _;
use serde_json::{Map, Value};

use crate::structural::metadata;
use crate::structural::shape::{Shape, Structural};

pub(super) fn check(schema: &Structural, object: &Value) -> ErrorList {
    let mut errors = ErrorList::new();
    inside(schema, schema.shape(schema.root), &Path::ROOT, object, &mut errors);
    errors
}

fn value(schema: &Structural, shape: &Shape, path: &Path<'_>, found: &Value, errors: &mut ErrorList) {
    if let (true, Value::Object(members)) = (shape.embedded, found) {
        check_embedded(path, members, errors);
    }
    inside(schema, shape, path, found, errors);
}

fn inside(schema: &Structural, shape: &Shape, path: &Path<'_>, found: &Value, errors: &mut ErrorList) {
    match found {
        Value::Object(members) => {
            for (name, member) in members {
                match (schema.property(shape, name), schema.member(shape, name)) {
                    (Some(id), _) => value(schema, schema.shape(id), &path.child(name), member, errors),
                    (None, Some(id)) => value(schema, schema.shape(id), &path.key(name), member, errors),
                    (None, None) => {}
                }
            }
        }
        Value::Array(items) => {
            let Some(id) = shape.items else { return };
            for (nth, item) in items.iter().enumerate() {
                value(schema, schema.shape(id), &path.index(nth), item, errors);
            }
        }
        _ => {}
    }
}

fn check_embedded(path: &Path<'_>, members: &Map<String, Value>, errors: &mut ErrorList) {
    for name in ["apiVersion", "kind"] {
        if !members.contains_key(name) {
            errors.push(Error::required(&path.child(name), ""));
        }
    }
    for (name, value) in members {
        let path = path.child(name);
        match (name.as_str(), value) {
            ("apiVersion" | "kind", Value::String(text)) if text.is_empty() => {
                errors.push(Error::invalid(&path, text, "must not be empty"));
            }
            ("apiVersion", Value::String(text)) => {
                if let Err(problem) = GroupVersionKind::parse(text, "") {
                    errors.push(Error::invalid(&path, text, problem.to_string()));
                }
            }
            ("kind", Value::String(text)) => {
                let problems = Format::Dns1035Label.problems(&text.to_lowercase());
                if !problems.is_empty() {
                    let message = "may have mixed case, but should otherwise match:";
                    errors.push(Error::invalid(&path, text, format!("{message} {}", problems.join(","))));
                }
            }
            ("apiVersion" | "kind", other) => errors.push(Error::invalid(&path, other, "must be a string")),
            ("metadata", value) => check_metadata(&path, value, errors),
            _ => {}
        }
    }
}

fn check_metadata(path: &Path<'_>, value: &Value, errors: &mut ErrorList) {
    match metadata::read(value) {
        Err(problem) => errors.push(Error::invalid(path, value, problem.to_string())),
        Ok(read) => {
            let mut metadata = ObjectMeta::deserialize(&read).expect("`read` gives metadata of this type");
            if metadata.name.is_empty() {
                // Embedded objects need no name.
                metadata.name = "fakename".into();
            }
            let scope = if metadata.namespace.is_empty() { Scope::Cluster } else { Scope::Namespaced };
            errors.extend(check_create(path, &metadata, scope, NameRule::PathSegment));
        }
    }
}
