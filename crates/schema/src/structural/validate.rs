//! Whether an object is what its schema asks for: every check in the order of the real server, in its words.

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
use finding::Trail;
use keywords::Walk;

/// A write that is to be checked.
#[derive(Clone, Copy, Debug)]
pub struct Change<'a> {
    pub new: &'a Value,
    /// On update, the object before.
    pub old: Option<&'a Value>,
    pub through: Through,
    /// Where the definition keeps replicas, if it has a scale.
    pub scale: Option<&'a ScalePaths>,
}

/// What is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Through {
    /// The object itself.
    Object,
    /// Its status alone.
    Status,
    /// Nothing: it holds a default of the schema.
    // Kubernetes: of which it is not asked what lists that are sets or maps may hold.
    Default,
}

/// `subresources.scale` of a definition, paths as it writes them: `.spec.replicas`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScalePaths {
    pub spec_replicas: String,
    pub status_replicas: String,
    pub label_selector: Option<String>,
}

/// Kubernetes: after such an error the rules could trip over what is not as they expect it.
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
        let says = "some validation rules were not checked because the object was invalid; correct the existing \
                    errors to complete validation";
        errors.push(Error::invalid(&Path::ROOT, &Value::Null, says));
        return ErrorList::new();
    }
    let verdict = rules.check(schema, new, old);
    errors.extend(verdict.errors);
    verdict.forgiven
}

fn check_status(schema: &Structural, new: &Value, old: Option<&Value>, errors: &mut ErrorList) {
    let Some(id) = schema.property(schema.shape(schema.root), "status") else { return };
    let Some(status) = new.get("status") else { return };
    // Kubernetes: what is no change is forgiven, and where there is no status, null is none.
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
    let outcome = Walk { schema }.value(id, &Trail::ROOT, value, before);
    outcome.into_findings().into_iter().map(|finding| finding.into_error(under)).collect()
}
