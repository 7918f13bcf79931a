//! ReplicaSet: a number of pods of one template.

use api::field::ErrorList;

use super::GROUP;
use super::deployment::{check_same_selector, check_template};
use crate::built_in::BuiltIn;
use crate::built_in::workload::{CONTAINERS, IMAGES, SELECTOR, warn_of_name_and_template};
use crate::cells::column::{AGE, Cell, NAME, TableColumn, integer};
use crate::defaults::type_defaults::{DefaultValue, TypeDefaults};
use crate::strategy::Strategy;
use crate::strategy::builder::{SPEC, TEMPLATE};
use crate::validate::at::At;
use crate::validate::rollout;
use crate::validate::validation::{UpdateChecks, Validation};

pub(crate) static REPLICA_SET: BuiltIn = BuiltIn::new(GROUP, "ReplicaSet", "replicasets")
    .older_versions(&["v1beta2"])
    .strategy(Strategy::PLAIN.counts_generation_of(SPEC).status().pod_spec_at(TEMPLATE))
    .validation(
        Validation::new(check)
            .update(UpdateChecks::BODY.compare(check_same_selector))
            .subresources(&[("status", check_status)]),
    )
    .warnings(warn_of_name_and_template)
    .defaults(&[TypeDefaults::of("apps.v1.ReplicaSet").values(&[("spec.replicas", DefaultValue::Number(1))])])
    .columns(&[NAME, DESIRED, CURRENT, READY, AGE, CONTAINERS, IMAGES, SELECTOR]);

pub(crate) const DESIRED: TableColumn = integer("Desired", Cell::Number("/spec/replicas"));
pub(crate) const CURRENT: TableColumn = integer("Current", Cell::Number("/status/replicas"));
pub(crate) const READY: TableColumn = integer("Ready", Cell::Number("/status/readyReplicas"));

fn check(set: &At<'_, '_>, errors: &mut ErrorList) {
    let spec = set.field("spec");
    spec.field("replicas").not_negative(errors);
    spec.field("minReadySeconds").not_negative(errors);
    check_template(&spec, errors);
}

/// Of a ReplicaSet or a ReplicationController.
pub(crate) fn check_status(new: &At<'_, '_>, _: &At<'_, '_>, errors: &mut ErrorList) {
    const ALL: [&str; 6] = [
        "replicas",
        "fullyLabeledReplicas",
        "readyReplicas",
        "availableReplicas",
        "observedGeneration",
        "terminatingReplicas",
    ];
    let status = new.field("status");
    let limited = ["fullyLabeledReplicas", "readyReplicas", "availableReplicas"];
    rollout::counters(&status, &ALL, &limited, errors);
    rollout::available_at_most_ready(&status, "readyReplicas", errors);
}
