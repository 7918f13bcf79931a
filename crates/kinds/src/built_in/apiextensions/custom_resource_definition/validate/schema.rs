//! The schema of a version, in the order of its checks: each relies on what those before have found sound.

use api::field::{Error, ErrorList};

use super::keywords::{self, Found, Standing};
use super::leniency::Leniency;
use super::{default_value, rule, shown, structural, unsupported};
use crate::validate::at::At;

/// What is asked of all schemas of a definition.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asks<'l, 'v> {
    pub(super) must_be_structural: bool,
    pub(super) leniency: &'l Leniency<'v>,
}

/// Fields of the root that stay true when the status is looked at by itself, in Go's names.
const AT_ROOT: [&str; 22] = [
    "Description",
    "Type",
    "Format",
    "Title",
    "Maximum",
    "ExclusiveMaximum",
    "Minimum",
    "ExclusiveMinimum",
    "MaxLength",
    "MinLength",
    "Pattern",
    "MaxItems",
    "MinItems",
    "UniqueItems",
    "MultipleOf",
    "Required",
    "Items",
    "Properties",
    "ExternalDocs",
    "Example",
    "XPreserveUnknownFields",
    "XValidations",
];

/// `validation` holds `openAPIV3Schema`. An unchanged schema may have rules that cost more than is allowed today.
pub(super) fn check(
    validation: &At<'_, '_>,
    has_status: bool,
    is_unchanged: bool,
    asks: &Asks<'_, '_>,
    errors: &mut ErrorList,
) {
    let schema = validation.field("openAPIV3Schema");
    if !schema.is_set() {
        return;
    }
    let mut found = ErrorList::new();
    if has_status {
        check_root(validation, &schema, &mut found);
    }
    if schema.flag_of("nullable") {
        let nullable = validation.path().child("openAPIV3Schema.nullable");
        found.push(Error::forbidden(&nullable, "nullable cannot be true at the root"));
    }
    let unsupported = unsupported::find(schema.value()).filter(|_| asks.must_be_structural);
    let is_sound = asks.must_be_structural && unsupported.is_none() && is_structural(&schema, &mut found);
    let mut in_keywords = Found::default();
    keywords::check(&schema, Standing::ROOT, asks.leniency, &mut in_keywords);
    found.extend(in_keywords.errors);
    if is_sound {
        rule::check_all(&schema, &in_keywords.unsound, is_unchanged, &mut found);
    }
    // These repeat what the keywords say, so they are told only where those are silent.
    if let Some(problem) = unsupported.filter(|_| found.is_empty()) {
        found.push(Error::invalid(schema.path(), "", problem));
    }
    errors.extend(found);
}

/// And every default of it is valid.
fn is_structural(schema: &At<'_, '_>, found: &mut ErrorList) -> bool {
    let mut wrong = ErrorList::new();
    structural::check(schema, &mut wrong);
    if wrong.is_empty() {
        default_value::check(schema, &mut wrong);
    }
    let is_sound = wrong.is_empty();
    found.extend(wrong);
    is_sound
}

fn check_root(validation: &At<'_, '_>, schema: &At<'_, '_>, errors: &mut ErrorList) {
    const SUFFIX: &str = "allowed at the root of the schema if the status subresource is enabled";
    for name in shown::fields_of_schema(schema.value()) {
        if name == "Type" {
            if schema.text_of("type") != "object" {
                let path = validation.path().child("openAPIV3Schema.type");
                let problem = "only \"object\" is allowed as the type at the root of the schema if the status \
                    subresource is enabled";
                errors.push(Error::invalid(&path, schema.text_of("type"), problem));
                return;
            }
        } else if !AT_ROOT.contains(&name) {
            let problem = format!("only [{}] fields are {SUFFIX}", AT_ROOT.join(" "));
            return schema.invalid_as(errors, shown::schema(schema.value()), problem);
        }
    }
}
