//! One version of a definition, but for its schema: subresources, columns and selectable fields.

use api::field::{Error, ErrorList};
use serde_json::Value;

use super::field_path;
use super::hoisted::Layout;
use super::printable::is_printable;
use super::schema::{self, Asks};
use crate::validate::at::At;
use crate::validate::taken::Taken;

const COLUMN_TYPES: [&str; 5] = ["boolean", "date", "integer", "number", "string"];
const COLUMN_FORMATS: [&str; 8] =
    ["byte", "date", "date-time", "double", "float", "int32", "int64", "password"];
/// Of what the JSON says, only these can be matched.
const SELECTABLE_TYPES: [&str; 3] = ["string", "boolean", "integer"];
/// Kubernetes' limit; each one is read from every object that is listed.
const MAX_SELECTABLE_FIELDS: usize = 8;
const MAX_WARNING: usize = 256;

pub(super) fn check_version(
    version: &At<'_, '_>,
    layout: &Layout<'_>,
    asks: &Asks<'_, '_>,
    errors: &mut ErrorList,
) {
    check_deprecation(version, errors);
    let own = |value, field| At::new(value, version.path().child(field));
    let value = version.value();
    let schema = own(layout.schema.of_version(value), "schema");
    let has_status = layout.subresources.for_version(value).get("status").is_some();
    schema::check(&schema, has_status, asks.leniency.is_unchanged(value), asks, errors);
    check_subresources(&own(layout.subresources.of_version(value), "subresources"), errors);
    check_columns(&own(layout.columns.of_version(value), "additionalPrinterColumns"), errors);
    let selectable = own(layout.selectable.of_version(value), "selectableFields");
    if selectable.is_empty() {
        return;
    }
    if schema.has("openAPIV3Schema") {
        let may_be_many = asks.leniency.many_selectable(value);
        check_readable(version, &schema, errors);
        check_selectable(&selectable, &schema, may_be_many, errors);
    } else {
        let problem = "may only be set when `version.schema.openAPIV3Schema` is not included";
        selectable.invalid_as(errors, "", problem);
    }
}

fn check_deprecation(version: &At<'_, '_>, errors: &mut ErrorList) {
    let warning = version.field("deprecationWarning");
    if !warning.is_set() {
        return;
    }
    if !version.flag_of("deprecated") {
        return warning.invalid(errors, "can only be set for deprecated versions");
    }
    if warning.text().len() > MAX_WARNING {
        warning.invalid(errors, format!("must be <= {MAX_WARNING} characters long"));
    }
    if warning.text().is_empty() {
        warning.invalid(errors, "must not be an empty string");
    }
    if let Some((index, _)) = warning.text().char_indices().find(|(_, c)| !is_printable(*c)) {
        let problem = format!(
            "must only contain printable UTF-8 characters; non-printable character found at index {index}"
        );
        warning.invalid(errors, problem);
    }
}

pub(super) fn check_subresources(subresources: &At<'_, '_>, errors: &mut ErrorList) {
    let scale = subresources.field("scale");
    if !scale.is_set() {
        return;
    }
    let replicas = [
        ("specReplicasPath", ".spec.", "should be a json path under .spec"),
        ("statusReplicasPath", ".status.", "should be a json path under .status"),
    ];
    for (field, prefix, problem) in replicas {
        let path = scale.field(field);
        if path.text().is_empty() {
            path.required(errors, "");
        } else if check_path(&path, errors) && !path.text().starts_with(prefix) {
            path.invalid_text(errors, problem);
        }
    }
    let selector = scale.field("labelSelectorPath");
    let is_inside = |text: &str| text.starts_with(".spec.") || text.starts_with(".status.");
    if !selector.text().is_empty() && check_path(&selector, errors) && !is_inside(selector.text()) {
        selector.invalid_text(errors, "should be a json path under either .spec or .status");
    }
}

/// Whether it begins as a JSON path must.
fn check_path(path: &At<'_, '_>, errors: &mut ErrorList) -> bool {
    let is_path = path.text().starts_with('.');
    if !is_path {
        path.invalid_text(errors, "must be a simple json path starting with .");
    }
    is_path
}

pub(super) fn check_columns(columns: &At<'_, '_>, errors: &mut ErrorList) {
    for column in columns.items() {
        if column.text_of("name").is_empty() {
            column.field("name").required(errors, "");
        }
        let kind = column.field("type");
        let one_of = format!("must be one of {}", COLUMN_TYPES.join(","));
        if kind.text().is_empty() {
            kind.required(errors, &one_of);
        } else if !COLUMN_TYPES.contains(&kind.text()) {
            kind.invalid_text(errors, one_of);
        }
        let format = column.field("format");
        if !format.text().is_empty() && !COLUMN_FORMATS.contains(&format.text()) {
            format.invalid_text(errors, format!("must be one of {}", COLUMN_FORMATS.join(",")));
        }
        // Kubernetes: old clients spell it so, and errors still do.
        let path = At::new(column.field("jsonPath").value(), column.path().child("JSONPath"));
        if path.text().is_empty() {
            path.required(errors, "");
        } else {
            check_path(&path, errors);
        }
    }
}

/// Whether the schema of `owner`, a version or the spec, can be read by those who look for selectable fields in it.
pub(super) fn check_readable(owner: &At<'_, '_>, validation: &At<'_, '_>, errors: &mut ErrorList) {
    if let Some(keyword) = validation.value().get("openAPIV3Schema").and_then(unsupported) {
        let path = owner.path().child("schema.openAPIV3Schema");
        errors.push(Error::invalid(&path, "", format!("OpenAPIV3Schema '{keyword}' is not supported")));
    }
}

/// A keyword that no structural schema has.
fn unsupported(schema: &Value) -> Option<&'static str> {
    const KEYWORDS: [(&str, &str); 7] = [
        ("id", "id"),
        ("$schema", "schema"),
        ("$ref", "$ref"),
        ("patternProperties", "patternProperties"),
        ("dependencies", "dependencies"),
        ("additionalItems", "additionalItems"),
        ("definitions", "definitions"),
    ];
    let is_said = |value: &Value| match value {
        Value::Null => false,
        Value::String(text) => !text.is_empty(),
        Value::Object(members) => !members.is_empty(),
        _ => true,
    };
    let found = KEYWORDS.iter().find(|(keyword, _)| schema.get(keyword).is_some_and(is_said));
    let inside = || {
        let below = ["items", "additionalProperties"].into_iter().filter_map(|name| schema.get(name));
        let properties = schema.get("properties").and_then(Value::as_object);
        below.chain(properties.into_iter().flat_map(serde_json::Map::values)).find_map(unsupported)
    };
    found.map(|(_, shown)| *shown).or_else(inside)
}

pub(super) fn check_selectable(
    fields: &At<'_, '_>,
    validation: &At<'_, '_>,
    may_be_many: bool,
    errors: &mut ErrorList,
) {
    let schema = validation.value().get("openAPIV3Schema").unwrap_or(&Value::Null);
    let mut known = Taken::default();
    for field in fields.items() {
        let path = field.field("jsonPath");
        if path.text().is_empty() {
            path.required(errors, "");
            continue;
        }
        let (steps, found) = match field_path::find(path.text(), schema, field_path::Notation::Dots) {
            Ok(found) => found,
            Err(problem) => {
                path.invalid_text(errors, format!("is an invalid path: {problem}"));
                continue;
            }
        };
        if steps.first().is_some_and(|step| step == "metadata") {
            path.invalid_text(errors, "must not point to fields in metadata");
        }
        let kind = found.get("type").and_then(Value::as_str).unwrap_or_default();
        if !SELECTABLE_TYPES.contains(&kind) {
            let problem = "must point to a field of type string, boolean or integer. Enum string fields and strings \
                with formats are allowed.";
            path.invalid_text(errors, problem);
        }
        if known.contains(&steps) {
            path.duplicate(errors);
        } else {
            known.push(steps);
        }
    }
    if known.len() > MAX_SELECTABLE_FIELDS && !may_be_many {
        errors.push(Error::too_many(fields.path(), known.len(), MAX_SELECTABLE_FIELDS));
    }
}
