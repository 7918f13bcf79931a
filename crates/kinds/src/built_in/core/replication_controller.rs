//! ReplicationController: a number of pods of one template, with a plain map as selector.

use api::field::ErrorList;
use api::label_selector::Selector;

use super::GROUP;
use crate::built_in::BuiltIn;
use crate::built_in::apps::replica_set;
use crate::built_in::workload::{
    CONTAINERS, IMAGES, label_like_template, template_labels, warn_of_name_and_template,
};
use crate::cells::column::{AGE, Cell, NAME, string};
use crate::cells::selector::labels;
use crate::defaults::member::{self, Members};
use crate::defaults::type_defaults::TypeDefaults;
use crate::selectable::{Selectable, SelectableField};
use crate::strategy::builder::{SPEC, TEMPLATE};
use crate::strategy::{GcPolicy, Strategy};
use crate::validate::at::At;
use crate::validate::template;
use crate::validate::validation::{UpdateChecks, Validation};

pub(crate) static REPLICATION_CONTROLLER: BuiltIn =
    BuiltIn::new(GROUP, "ReplicationController", "replicationcontrollers")
        .strategy(
            Strategy::PLAIN
                .counts_generation_of(SPEC)
                .status()
                .gc_policy(GcPolicy::Orphan)
                .pod_spec_at(TEMPLATE),
        )
        .validation(
            Validation::new(check)
                .update(UpdateChecks::BODY)
                .subresources(&[("status", replica_set::check_status)]),
        )
        .warnings(warn_of_name_and_template)
        .defaults(&[TypeDefaults::of("core.v1.ReplicationController").rule(default_selector_and_labels)])
        .columns(&[
            NAME,
            replica_set::DESIRED,
            replica_set::CURRENT,
            replica_set::READY,
            AGE,
            CONTAINERS,
            IMAGES,
            string("Selector", Cell::Computed(|it| labels(it.at("/spec/selector")).into())).wide(),
        ])
        .selectable(Selectable::new(&[
            SelectableField::NAME,
            SelectableField::NAMESPACE,
            SelectableField::count("status.replicas", "status.replicas"),
        ]));

fn check(controller: &At<'_, '_>, errors: &mut ErrorList) {
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

fn default_selector_and_labels(controller: &mut Members) {
    if let Some(labels) = template_labels(controller) {
        member::default_to(member::made(controller, "spec"), "selector", labels);
        label_like_template(controller);
    }
}
