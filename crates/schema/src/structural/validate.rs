//! Validates an object against its schema: every check in the order of kube-apiserver, with its messages.

use api::field::{Error, ErrorList, ErrorType, Path};
use serde_json::Value;

use super::shape::{ShapeId, Structural};

pub(super) mod before;
mod embedded;
mod finding;
pub(super) mod format;
mod keywords;
mod list_types;
mod number;
mod scale;

use before::Before;
use finding::ValuePath;
use keywords::Validator;

/// A write to validate.
#[derive(Clone, Copy, Debug)]
pub struct Change<'a> {
    pub new: &'a Value,
    /// On update, the object before.
    pub old: Option<&'a Value>,
    pub through: Through,
    /// The replica paths of the definition, if it has a scale.
    pub scale: Option<&'a ScalePaths>,
}

/// What is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Through {
    /// The object itself.
    Object,
    /// Its status alone.
    Status,
    /// Nothing is written: the object contains a default of the schema.
    // Kubernetes: lists of defaults are not checked for duplicates.
    Default,
}

/// `subresources.scale` of a definition, paths as it writes them: `.spec.replicas`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScalePaths {
    pub spec_replicas: String,
    pub status_replicas: String,
    pub label_selector: Option<String>,
}

/// Kubernetes: after such an error rules do not run, since they rely on a valid object.
const GRAVE: [ErrorType; 5] = [
    ErrorType::NotSupported,
    ErrorType::Required,
    ErrorType::TooLong,
    ErrorType::TooMany,
    ErrorType::TypeInvalid,
];

pub(super) fn check(schema: &Structural, change: &Change<'_>, errors: &mut ErrorList) -> ErrorList {
    let Change { new, old, through, scale } = *change;
    match through {
        Through::Object | Through::Default => {
            let before = old.map(|old| Before::new(schema, schema.root, old));
            errors.extend(keywords(schema, schema.root, "", new, before));
            if let Some(scale) = scale {
                scale.check_spec(new, errors);
                scale.check_status(new, errors);
            }
            errors.extend(embedded::check(schema, new));
        }
        Through::Status => {
            check_status(schema, new, old, errors);
            if let Some(scale) = scale {
                scale.check_status(new, errors);
            }
        }
    }
    if through != Through::Default && old.is_none_or(|old| list_types::check(schema, old).is_empty()) {
        errors.extend(list_types::check(schema, new));
    }
    let Some(rules) = schema.rules() else { return ErrorList::new() };
    if errors.iter().any(|error| GRAVE.contains(&error.error_type)) {
        let message = "some validation rules were not checked because the object was invalid; correct the existing \
                    errors to complete validation";
        errors.push(Error::invalid(&Path::ROOT, &Value::Null, message));
        return ErrorList::new();
    }
    let verdict = rules.check(schema, new, old);
    errors.extend(verdict.errors);
    verdict.ratcheted
}

fn check_status(schema: &Structural, new: &Value, old: Option<&Value>, errors: &mut ErrorList) {
    let Some(id) = schema.property(schema.shape(schema.root), "status") else { return };
    let Some(status) = new.get("status") else { return };
    // Kubernetes: an unchanged status is ratcheted; without a status, null counts as unchanged.
    if status.is_null() && old.is_none_or(|old| old["status"].is_null()) {
        return;
    }
    let before = old.and_then(|old| Before::new(schema, schema.root, old).member("status"));
    errors.extend(keywords(schema, id, "status", status, before));
}

pub(super) fn check_value(schema: &Structural, at: &str, value: &Value) -> ErrorList {
    keywords(schema, schema.root, at, value, None)
}

fn keywords(
    schema: &Structural,
    id: ShapeId,
    under: &str,
    value: &Value,
    before: Option<Before<'_, '_>>,
) -> ErrorList {
    let outcome = Validator { schema }.value(id, &ValuePath::ROOT, value, before);
    outcome.into_findings().into_iter().map(|finding| finding.into_error(under)).collect()
}
