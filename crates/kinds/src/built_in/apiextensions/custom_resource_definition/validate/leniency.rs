//! What an update need not mend: what was stored when less was asked stays acceptable.

use std::collections::HashMap;

use serde_json::Value;

use super::{ca_bundle, conversion, structural, unsupported, walk};
use crate::definition::condition;
use crate::validate::at::At;
use api::field::ErrorList;

/// What was so before, and so may stay.
#[derive(Debug)]
pub(super) struct Leniency<'v> {
    pub(super) any_review_version: bool,
    pub(super) no_schema: bool,
    pub(super) any_type: bool,
    pub(super) non_structural: bool,
    pub(super) any_set: bool,
    pub(super) any_list_keys: bool,
    /// A version that is not served has no clients that rely on it.
    pub(super) invalid_ca_bundle: bool,
    /// Its versions by their names.
    old: HashMap<Option<&'v Value>, &'v Value>,
}

impl<'v> Leniency<'v> {
    /// A new definition.
    pub(super) fn none() -> Self {
        Leniency {
            any_review_version: false,
            no_schema: false,
            any_type: false,
            non_structural: false,
            any_set: false,
            any_list_keys: false,
            invalid_ca_bundle: true,
            old: HashMap::new(),
        }
    }

    pub(super) fn of(old: &'v Value) -> Self {
        let spec = &old["spec"];
        let versions = || spec["versions"].as_array().into_iter().flatten();
        let schemas =
            || versions().filter_map(|it| it.pointer("/schema/openAPIV3Schema")).filter(|it| it.is_object());
        let reviews = spec.pointer("/conversion/webhook/conversionReviewVersions").unwrap_or(&Value::Null);
        let has_reviews = reviews.as_array().is_some_and(|it| !it.is_empty());
        let bundle = spec.pointer("/conversion/webhook/clientConfig/caBundle").and_then(Value::as_str);
        let is_established = condition::is_true(&old["status"], condition::ESTABLISHED);
        Leniency {
            any_review_version: has_reviews && !conversion::is_recognized(reviews),
            no_schema: schemas().count() < versions().count(),
            any_type: schemas().any(walk::has_unknown_type),
            non_structural: schemas().any(is_non_structural),
            any_set: schemas().any(walk::has_unatomic_set),
            any_list_keys: schemas().any(walk::has_bad_keys),
            invalid_ca_bundle: !is_established || bundle.is_some_and(|it| ca_bundle::problem(it).is_some()),
            // Of several with the same name, the first.
            old: versions().rev().map(|version| (version.get("name"), version)).collect(),
        }
    }

    /// The version has the schema that it had before.
    pub(super) fn is_unchanged(&self, version: &Value) -> bool {
        self.old_version(version).is_some_and(|old| old.get("schema") == version.get("schema"))
    }

    /// There were too many selectable fields before, and they are the same.
    pub(super) fn many_selectable(&self, version: &Value) -> bool {
        self.old_version(version)
            .is_some_and(|old| old.get("selectableFields") == version.get("selectableFields"))
    }

    fn old_version(&self, version: &Value) -> Option<&'v Value> {
        self.old.get(&version.get("name")).copied()
    }
}

fn is_non_structural(schema: &Value) -> bool {
    let mut errors = ErrorList::new();
    structural::check(&At::root(schema), &mut errors);
    unsupported::find(schema).is_some() || !errors.is_empty()
}
