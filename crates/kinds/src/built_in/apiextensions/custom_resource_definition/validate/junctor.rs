//! What may stand inside `allOf`, `anyOf`, `oneOf` and `not`: conditions on values, but nothing of what they are.

use api::field::ErrorList;
use expression::pattern;
use serde_json::Value;

use crate::validate::at::At;

/// Keywords that may not be there, and the detail of the error about each.
const BANNED: [(&str, &str); 11] = [
    ("type", "must be empty to be structural"),
    ("default", "must be undefined to be structural"),
    ("title", "must be empty to be structural"),
    ("description", "must be empty to be structural"),
    ("nullable", "must be false to be structural"),
    ("x-kubernetes-preserve-unknown-fields", "must be false to be structural"),
    ("x-kubernetes-embedded-resource", "must be false to be structural"),
    ("x-kubernetes-int-or-string", "must be false to be structural"),
    ("x-kubernetes-list-map-keys", "must be empty to be structural"),
    ("x-kubernetes-list-type", "must be undefined to be structural"),
    ("x-kubernetes-map-type", "must be undefined to be structural"),
];

/// A number or a text may be told by its types, `anyOf` or the first of `allOf`: these are skipped.
pub(super) fn check_validations(
    schema: &At<'_, '_>,
    skip_any_of: bool,
    skip_first_all_of: bool,
    errors: &mut ErrorList,
) {
    if !skip_any_of {
        for alternative in schema.field("anyOf").items() {
            check(&alternative, false, errors);
        }
    }
    for (index, part) in schema.field("allOf").items().enumerate() {
        check(&part, skip_first_all_of && index == 0, errors);
    }
    for alternative in schema.field("oneOf").items() {
        check(&alternative, false, errors);
    }
    let not = schema.field("not");
    if not.is_set() {
        check(&not, false, errors);
    }
    let given = schema.field("pattern");
    if !given.text().is_empty()
        && let Err(problem) = pattern::measure(given.text())
    {
        given.invalid_text(errors, format!("must be a valid regular expression, but isn't: {problem}"));
    }
}

fn check(schema: &At<'_, '_>, skip_any_of: bool, errors: &mut ErrorList) {
    check_validations(schema, skip_any_of, false, errors);
    let items = schema.field("items");
    if items.is_set() {
        check(&items, false, errors);
    }
    let properties = schema.field("properties");
    for (name, property) in properties.entries() {
        check(&property, false, errors);
        if name == "metadata" {
            property.forbidden(errors, "must not be specified in a nested context");
        }
    }
    let additional = schema.field("additionalProperties");
    if additional.value().is_object() || additional.value() == true {
        additional.forbidden(errors, "must be undefined to be structural");
    }
    for (keyword, problem) in BANNED {
        let at = schema.field(keyword);
        let says_nothing = match at.value() {
            Value::Bool(says) => !says,
            Value::String(says) => says.is_empty(),
            Value::Array(says) => says.is_empty(),
            _ => false,
        };
        // Any value at all is a default.
        if at.is_set() && (keyword == "default" || !says_nothing) {
            at.forbidden(errors, problem);
        }
    }
    let rules = schema.field("x-kubernetes-validations");
    if !rules.is_empty() {
        rules.forbidden(errors, "must be empty to be structural");
    }
}
