//! PodTemplate: a template of pods that stands alone.

use api::field::ErrorList;
use serde_json::Value;

use super::{GROUP, pod};
use crate::built_in::BuiltIn;
use crate::built_in::workload::is_new_generation;
use crate::cells::column::{Cell, NAME, string};
use crate::cells::row::joined;
use crate::cells::selector::labels;
use crate::strategy::Strategy;
use crate::validate::at::At;
use crate::validate::template;
use crate::validate::validation::{UpdateChecks, Validation};

pub(crate) static POD_TEMPLATE: BuiltIn = BuiltIn::new(GROUP, "PodTemplate", "podtemplates")
    .strategy(
        Strategy::PLAIN
            .return_deleted_object()
            .counts_generation_of(&[&["template"]])
            .pod_spec_at(&["template", "spec"]),
    )
    .validation(Validation::new(check).update(UpdateChecks::BODY))
    .warnings(warn)
    .columns(&[
        NAME,
        string("Containers", Cell::Computed(|it| joined(it.at("/template/spec/containers"), "name").into())),
        string("Images", Cell::Computed(|it| joined(it.at("/template/spec/containers"), "image").into())),
        string("Pod Labels", Cell::Computed(|it| labels(it.at("/template/metadata/labels")).into())),
    ]);

fn check(object: &At<'_, '_>, errors: &mut ErrorList) {
    template::check(&object.field("template"), errors);
}

fn warn(object: &At<'_, '_>, old: Option<&Value>, warnings: &mut Vec<String>) {
    if is_new_generation(object, old) {
        pod::warnings::check(&object.field("template"), warnings);
    }
}
