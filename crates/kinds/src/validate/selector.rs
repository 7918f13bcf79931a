//! Label selectors inside objects: whether they are valid, and whether they select a template's labels.

use api::field::{BadValue, ErrorList};
use api::label_selector::{LabelSelector, Selector, Tolerance};

use super::at::At;

/// Nothing where there is none.
fn typed(selector: &At<'_, '_>) -> Option<LabelSelector> {
    serde_json::from_value(selector.value().clone()).ok().filter(|_| selector.is_set())
}

pub(crate) fn check(selector: &At<'_, '_>, errors: &mut ErrorList) {
    if let Some(typed) = typed(selector) {
        errors.extend(typed.check(selector.path(), Tolerance::None));
    }
}

/// As Kubernetes shows it.
pub(crate) fn shown(selector: &At<'_, '_>) -> BadValue {
    BadValue::json(&typed(selector))
}

/// Selects everything, though it stands there.
pub(crate) fn is_blank(selector: &At<'_, '_>) -> bool {
    selector.is_set()
        && selector.field("matchLabels").is_empty()
        && selector.field("matchExpressions").is_empty()
}

/// What it selects, or nothing if that cannot be said. A missing selector selects no object.
pub(crate) fn compiled(selector: &At<'_, '_>) -> Option<Selector> {
    LabelSelector::selector_of(typed(selector).as_ref()).ok()
}

/// Whether it selects these labels.
pub(crate) fn matches(selector: &Selector, labels: &At<'_, '_>) -> bool {
    match labels.value().as_object() {
        Some(labels) => selector.matches(labels),
        None => selector.matches(&serde_json::Map::new()),
    }
}

/// The labels of a template against the selector above it.
pub(crate) fn mismatch(template: &At<'_, '_>, errors: &mut ErrorList) {
    let metadata = template.field("metadata");
    let labels = metadata.field("labels");
    let shown = if labels.is_set() { BadValue::json(labels.value()) } else { BadValue::verbatim("null") };
    labels.invalid_as(errors, shown, "`selector` does not match template `labels`");
}

pub(crate) fn immutable(new: &At<'_, '_>, old: &At<'_, '_>, errors: &mut ErrorList) {
    if new.value() != old.value() {
        new.invalid_as(errors, shown(new), super::at::IMMUTABLE);
    }
}
