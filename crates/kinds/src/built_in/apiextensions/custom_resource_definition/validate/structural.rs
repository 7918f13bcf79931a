//! Whether a schema is structural: it tells the type of every field, once and outside of `allOf`, `anyOf` and the like.

use api::field::{Error, ErrorList};
use serde_json::{Value, json};

use super::{complete, junctor, walk};
use crate::validate::at::At;

/// Where in the schema a part of it lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Level {
    Root,
    Item,
    Field,
}

/// The errors come sorted: Kubernetes walks its maps in no order.
pub(super) fn check(schema: &At<'_, '_>, errors: &mut ErrorList) {
    let mut found = ErrorList::new();
    check_part(schema, Level::Root, &mut found);
    complete::check(schema, &mut found);
    let mut found: Vec<_> = found.into_iter().map(|error| (error.to_string(), error)).collect();
    found.sort_by(|one, other| one.0.cmp(&other.0));
    errors.extend(found.into_iter().map(|(_, error)| error));
}

fn check_part(schema: &At<'_, '_>, level: Level, errors: &mut ErrorList) {
    if level != Level::Root && walk::is_plain_scalar(schema.value()) {
        return;
    }
    if let Some(holder) = walk::plain_holder(schema.value()).filter(|_| level != Level::Root) {
        let level = if holder == "items" { Level::Item } else { Level::Field };
        return walk::each_behind(holder, schema, |part| check_part(part, level, errors));
    }
    let items = schema.field("items");
    if schema.text_of("type") == "array" && !items.is_set() {
        items.required(errors, "must be specified");
    }
    if items.is_set() {
        check_part(&items, Level::Item, errors);
    }
    for (_, property) in schema.field("properties").entries() {
        check_part(&property, Level::Field, errors);
    }
    let additional = schema.field("additionalProperties");
    if additional.is_set() {
        if level == Level::Root {
            additional.forbidden(errors, "must not be used at the root");
        }
        if additional.value().is_object() {
            check_part(&additional, Level::Field, errors);
        }
    }
    check_extensions(schema, errors);
    let (skip_any_of, skip_first) =
        (is_int_or_string(schema.value().get("anyOf")), is_first_of_all(schema.value()));
    junctor::check_validations(schema, skip_any_of, skip_first, errors);
    check_type(schema, level, errors);
    check_metadata(schema, level, errors);
}

fn check_extensions(schema: &At<'_, '_>, errors: &mut ErrorList) {
    if schema.flag_of("x-kubernetes-int-or-string") {
        for field in ["x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource"] {
            if schema.flag_of(field) {
                schema.field(field).invalid(errors, "must be false if x-kubernetes-int-or-string is true");
            }
        }
    }
}

fn check_type(schema: &At<'_, '_>, level: Level, errors: &mut ErrorList) {
    let kind = schema.field("type");
    let is_embedded = schema.flag_of("x-kubernetes-embedded-resource");
    let preserves = schema.flag_of("x-kubernetes-preserve-unknown-fields");
    if is_embedded && kind.text() != "object" {
        let problem = "must be object if x-kubernetes-embedded-resource is true";
        if kind.text().is_empty() {
            kind.required(errors, problem);
        } else {
            kind.invalid_text(errors, problem);
        }
    } else if kind.text().is_empty() && !schema.flag_of("x-kubernetes-int-or-string") && !preserves {
        let problem = match level {
            Level::Root => "must not be empty at the root",
            Level::Item => "must not be empty for specified array items",
            Level::Field => "must not be empty for specified object fields",
        };
        kind.required(errors, problem);
    }
    let additional = schema.field("additionalProperties");
    if is_embedded && additional.is_set() {
        additional.forbidden(errors, "must not be used if x-kubernetes-embedded-resource is set");
    }
    if level == Level::Root && !kind.text().is_empty() && kind.text() != "object" {
        kind.invalid_text(errors, "must be object at the root");
    }
    let properties = schema.field("properties");
    if is_embedded && !preserves && properties.is_empty() {
        let problem = "must not be empty if x-kubernetes-embedded-resource is true without \
            x-kubernetes-preserve-unknown-fields";
        properties.required(errors, problem);
    }
}

/// Of its own kind and metadata a schema may say little: they are the same for all objects.
fn check_metadata(schema: &At<'_, '_>, level: Level, errors: &mut ErrorList) {
    let is_object = level == Level::Root || schema.flag_of("x-kubernetes-embedded-resource");
    let must_be = |name: &str, kind: &str, errors: &mut ErrorList| {
        let properties = schema.field("properties");
        let Some(property) = properties.value().get(name) else { return };
        let given = property.get("type").and_then(Value::as_str).unwrap_or_default();
        if given != kind {
            let path = properties.path().key(name);
            errors.push(Error::invalid(&path.child("type"), given, format!("must be {kind}")));
        }
    };
    if is_object {
        must_be("kind", "string", errors);
        must_be("apiVersion", "string", errors);
        must_be("metadata", "object", errors);
    }
    let properties = schema.field("properties");
    if level == Level::Root && properties.value().get("metadata").is_some_and(says_more_than_names) {
        let problem = "must not specify anything other than name and generateName, but metadata is implicitly specified";
        errors.push(Error::forbidden(&properties.path().key("metadata"), problem));
    }
}

fn says_more_than_names(metadata: &Value) -> bool {
    let is_nothing = |value: &Value| match value {
        Value::Null | Value::Bool(false) => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        _ => false,
    };
    let names_only = |value: &Value| {
        value.as_object().is_some_and(|it| it.keys().all(|name| matches!(&**name, "name" | "generateName")))
    };
    metadata.as_object().into_iter().flatten().any(|(keyword, value)| match &**keyword {
        "type" | "default" => false,
        "properties" => !names_only(value),
        _ => !is_nothing(value),
    })
}

/// The one way in which `anyOf` may name types.
fn is_int_or_string(any_of: Option<&Value>) -> bool {
    any_of.is_some_and(|any_of| *any_of == json!([{ "type": "integer" }, { "type": "string" }]))
}

fn is_first_of_all(schema: &Value) -> bool {
    is_int_or_string(schema.pointer("/allOf/0/anyOf"))
}
