//! What `allOf`, `anyOf`, `oneOf` and `not` specify must also be specified outside of them.

use api::field::{Error, ErrorList, Path};
use serde_json::Value;

use crate::validate::at::At;

/// A part of the schema outside of `allOf` and the like, which may be missing.
#[derive(Clone, Copy)]
struct StructuralPart<'v, 'p> {
    schema: Option<&'v Value>,
    path: Path<'p>,
}

pub(super) fn check(schema: &At<'_, '_>, errors: &mut ErrorList) {
    let outside = StructuralPart { schema: Some(schema.value()), path: *schema.path() };
    junctors(schema, &outside, errors);
}

fn junctors(schema: &At<'_, '_>, outside: &StructuralPart<'_, '_>, errors: &mut ErrorList) {
    let not = schema.field("not");
    if not.is_set() {
        inside(&not, outside, errors);
    }
    for junctor in ["allOf", "anyOf", "oneOf"] {
        for part in schema.field(junctor).items() {
            inside(&part, outside, errors);
        }
    }
}

fn inside(schema: &At<'_, '_>, outside: &StructuralPart<'_, '_>, errors: &mut ErrorList) {
    let Some(structure) = outside.schema else {
        errors.push(Error::required(&outside.path, format!("because it is defined in {}", schema.path())));
        return;
    };
    junctors(schema, outside, errors);
    let items = schema.field("items");
    if items.is_set() {
        let outside = StructuralPart {
            schema: structure.get("items").filter(|it| !it.is_null()),
            path: outside.path.child("items"),
        };
        inside(&items, &outside, errors);
    }
    let path = outside.path.child("properties");
    for (name, property) in schema.field("properties").entries() {
        let outside = StructuralPart {
            schema: structure.get("properties").and_then(|it| it.get(name)),
            path: path.key(name),
        };
        inside(&property, &outside, errors);
    }
}
