//! Whether the defaults of a schema are valid by the schema that they stand in.

use api::field::{Error, ErrorList};
use schema::structural::Structural;
use serde_json::json;

use super::walk;
use crate::validate::at::At;

/// `apiVersion` and the like describe the object itself.
const META: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// Not followed: `additionalProperties`, whose defaults are checked where they come to lie.
pub(super) fn check(schema: &At<'_, '_>, errors: &mut ErrorList) {
    check_part(schema, true, false, errors);
}

fn check_part(schema: &At<'_, '_>, is_root: bool, in_metadata: bool, errors: &mut ErrorList) {
    if walk::is_plain_scalar(schema.value()) {
        return;
    }
    let is_object = is_root || schema.flag_of("x-kubernetes-embedded-resource");
    let in_metadata = in_metadata && !is_object;
    let default = schema.field("default");
    if default.is_set() {
        let place = match (is_root, in_metadata) {
            (true, _) => DefaultPlace::Root,
            (false, true) => DefaultPlace::Metadata,
            (false, false) => DefaultPlace::Below,
        };
        check_default(schema, &default, place, errors);
    }
    let items = schema.field("items");
    if items.is_set() {
        check_part(&items, false, in_metadata, errors);
    }
    for (name, property) in schema.field("properties").entries() {
        check_part(&property, false, in_metadata || is_object && META.contains(&name), errors);
    }
}

/// Where a default stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum DefaultPlace {
    /// It is a whole object, which says what it is.
    Root,
    Metadata,
    Below,
}

fn check_default(schema: &At<'_, '_>, default: &At<'_, '_>, place: DefaultPlace, errors: &mut ErrorList) {
    let is_scalar = !default.value().is_object() && !default.value().is_array();
    let in_metadata = place == DefaultPlace::Metadata;
    let member = "default";
    let around = || {
        let mut own = schema.value().clone();
        if place == DefaultPlace::Root {
            own["x-kubernetes-embedded-resource"] = true.into();
        }
        // Alone it would be taken for a whole object, with metadata of its own.
        Structural::compile(&json!({"type": "object", "properties": {member: own}}))
    };
    if !is_scalar && !in_metadata {
        let mut pruned = json!({ member: default.value() });
        around().prune(&mut pruned);
        if pruned[member] != *default.value() {
            default.invalid(errors, "must not have unknown fields");
        }
    }
    // Kubernetes: an object that does not say what it is is not looked at any further.
    let object = json!({ "metadata": {"name": "default"}, member: default.value() });
    let of_object = |errors: ErrorList| errors.into_iter().filter_map(|error| below(schema, member, error));
    if place == DefaultPlace::Root && META[..2].iter().any(|name| !default.has(name)) {
        let is_missing =
            |error: &Error| error.field.ends_with(".apiVersion") || error.field.ends_with(".kind");
        return errors.extend(of_object(around().validate_default(&object)).filter(is_missing));
    }
    let wrong = Structural::compile(schema.value()).check_value(&default.path().to_string(), default.value());
    if !wrong.is_empty() {
        return errors.extend(wrong);
    }
    let has_rules = schema.has("x-kubernetes-validations");
    if (!is_scalar || has_rules) && !in_metadata {
        errors.extend(of_object(around().validate_default(&object)));
    }
}

/// The same error with the path of the schema before it; nothing where it is about what was put around the value.
fn below(schema: &At<'_, '_>, member: &str, error: Error) -> Option<Error> {
    let is_inside = |rest: &str| rest.is_empty() || rest.starts_with(['.', '[']);
    error.field.strip_prefix(member).filter(|rest| is_inside(rest))?;
    Some(Error { field: format!("{}.{}", schema.path(), error.field), ..error })
}
