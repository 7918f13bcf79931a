//! The pod template of a workload.

use api::field::ErrorList;

use super::at::At;
use super::{metadata, selector};
use crate::built_in::core::pod::validate as pod;

pub(crate) fn check(template: &At<'_, '_>, errors: &mut ErrorList) {
    // Kubernetes: the path leaves out `metadata`.
    let metadata = template.field("metadata");
    let labels = metadata.field("labels");
    metadata::labels(&At::new(labels.value(), template.path().child("labels")), errors);
    let annotations = metadata.field("annotations");
    let annotations = At::new(annotations.value(), template.path().child("annotations"));
    metadata::annotations(&annotations, errors);
    let spec = template.field("spec");
    pod::annotations(&annotations, &spec, errors);
    pod::spec(&spec, None, errors);
    pod::profiles_match(&annotations, &spec, errors);
    if !spec.field("ephemeralContainers").is_empty() {
        let problem = "ephemeral containers not allowed in pod template";
        spec.field("ephemeralContainers").forbidden(errors, problem);
    }
}

/// For workloads whose pods run on and on.
pub(crate) fn runs_forever(template: &At<'_, '_>, kind: &str, errors: &mut ErrorList) {
    let spec = template.field("spec");
    let policy = spec.field("restartPolicy");
    if policy.text() != "Always" {
        policy.unsupported(errors, &["Always"]);
    }
    if spec.has("activeDeadlineSeconds") {
        let problem = format!("activeDeadlineSeconds in {kind} is not Supported");
        spec.field("activeDeadlineSeconds").forbidden(errors, problem);
    }
}

/// A selector that is there, selects something, and is of a form that can be understood. `invalid` is what
/// Kubernetes says of one that is not.
pub(crate) fn required_selector(
    at: &At<'_, '_>,
    kind: &str,
    invalid: &str,
    errors: &mut ErrorList,
) -> Option<api::label_selector::Selector> {
    if !at.is_set() {
        at.required(errors, "");
    } else {
        selector::check(at, errors);
        if selector::is_blank(at) {
            let problem = format!("empty selector is invalid for {kind}");
            at.invalid_as(errors, selector::shown(at), problem);
        }
    }
    let compiled = selector::compiled(at);
    if compiled.is_none() {
        at.invalid_as(errors, selector::shown(at), invalid);
    }
    compiled
}

/// The template below a selector. An empty selector asks for nothing.
pub(crate) fn matches(
    template: &At<'_, '_>,
    selector: &api::label_selector::Selector,
    errors: &mut ErrorList,
) {
    let metadata = template.field("metadata");
    let is_empty = selector.is_everything();
    if !is_empty && !selector::matches(selector, &metadata.field("labels")) {
        selector::mismatch(template, errors);
    }
}
