//! ReplicationControllers, whose selector is a plain map.

use api::field::ErrorList;
use api::label_selector::Selector;

use super::at::At;
use super::template;

pub(super) fn body(controller: &At<'_, '_>, errors: &mut ErrorList) {
    let spec = controller.field("spec");
    spec.field("minReadySeconds").not_negative(errors);
    let wanted = spec.field("selector");
    if wanted.is_empty() {
        wanted.required(errors, "");
    }
    match spec.field("replicas") {
        missing if !missing.is_set() => missing.required(errors, ""),
        replicas => replicas.not_negative(errors),
    }
    let pods = spec.field("template");
    if !pods.is_set() {
        pods.required(errors, "");
        return;
    }
    let labels = wanted.entries().map(|(key, value)| (key, value.text()));
    template::matches(&pods, &Selector::from_labels(labels), errors);
    template::check(&pods, errors);
    template::runs_forever(&pods, "ReplicationController", errors);
}

/// A template that stands alone.
pub(super) fn pod_template(object: &At<'_, '_>, errors: &mut ErrorList) {
    template::check(&object.field("template"), errors);
}
