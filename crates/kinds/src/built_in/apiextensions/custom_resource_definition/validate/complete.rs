//! Whatever `allOf` and the like speak of must be told outside of them too.

use api::field::{Error, ErrorList, Path};
use serde_json::Value;

use crate::validate::at::At;

/// A part of the schema that may be missing.
#[derive(Clone, Copy)]
struct Place<'v, 'p> {
    schema: Option<&'v Value>,
    path: Path<'p>,
}

pub(super) fn check(schema: &At<'_, '_>, errors: &mut ErrorList) {
    let told = Place { schema: Some(schema.value()), path: *schema.path() };
    junctors(schema, &told, errors);
}

fn junctors(schema: &At<'_, '_>, told: &Place<'_, '_>, errors: &mut ErrorList) {
    let not = schema.field("not");
    if not.is_set() {
        inside(&not, told, errors);
    }
    for junctor in ["allOf", "anyOf", "oneOf"] {
        for part in schema.field(junctor).items() {
            inside(&part, told, errors);
        }
    }
}

fn inside(schema: &At<'_, '_>, told: &Place<'_, '_>, errors: &mut ErrorList) {
    let Some(structure) = told.schema else {
        errors.push(Error::required(&told.path, format!("because it is defined in {}", schema.path())));
        return;
    };
    junctors(schema, told, errors);
    let items = schema.field("items");
    if items.is_set() {
        let told = Place {
            schema: structure.get("items").filter(|it| !it.is_null()),
            path: told.path.child("items"),
        };
        inside(&items, &told, errors);
    }
    let path = told.path.child("properties");
    for (name, property) in schema.field("properties").entries() {
        let told =
            Place { schema: structure.get("properties").and_then(|it| it.get(name)), path: path.key(name) };
        inside(&property, &told, errors);
    }
}
