//! Deployments and the ReplicaSets that they are made of.

use api::field::{Error, ErrorList};

use super::at::At;
use super::{internal, rollout, selector, template};

pub(super) fn body(deployment: &At<'_, '_>, errors: &mut ErrorList) {
    let spec = deployment.field("spec");
    spec.field("replicas").not_negative(errors);
    template_of_replicas(&spec, errors);
    strategy(&spec.field("strategy"), errors);
    spec.field("minReadySeconds").not_negative(errors);
    spec.field("revisionHistoryLimit").not_negative(errors);
    let deadline = spec.field("progressDeadlineSeconds");
    if deadline.is_set() {
        deadline.not_negative(errors);
        if deadline.int() <= spec.int_of("minReadySeconds") {
            deadline.invalid_int(errors, "must be greater than minReadySeconds");
        }
    }
}

pub(super) fn replica_set(set: &At<'_, '_>, errors: &mut ErrorList) {
    let spec = set.field("spec");
    spec.field("replicas").not_negative(errors);
    spec.field("minReadySeconds").not_negative(errors);
    template_of_replicas(&spec, errors);
}

fn template_of_replicas(spec: &At<'_, '_>, errors: &mut ErrorList) {
    let wanted =
        template::required_selector(&spec.field("selector"), "deployment", "invalid label selector", errors);
    if let Some(wanted) = wanted {
        let pods = spec.field("template");
        template::matches(&pods, &wanted, errors);
        template::check(&pods, errors);
        template::runs_forever(&pods, "ReplicaSet", errors);
    }
}

fn strategy(strategy: &At<'_, '_>, errors: &mut ErrorList) {
    let rolling = strategy.field("rollingUpdate");
    match strategy.text_of("type") {
        "Recreate" if rolling.is_set() => {
            rolling.forbidden(errors, "may not be specified when strategy `type` is 'Recreate'");
        }
        "Recreate" => {}
        "RollingUpdate" if !rolling.is_set() => {
            rolling.required(errors, "this should be defaulted and never be nil");
        }
        "RollingUpdate" => {
            let (unavailable, surge) = (rolling.field("maxUnavailable"), rolling.field("maxSurge"));
            rollout::count_or_percent(&unavailable, errors);
            rollout::count_or_percent(&surge, errors);
            if rollout::amount(&unavailable) == 0 && rollout::amount(&surge) == 0 {
                let problem = "may not be 0 when `maxSurge` is 0";
                unavailable.invalid_as(errors, rollout::shown(&unavailable), problem);
            }
            rollout::at_most_all(&unavailable, errors);
        }
        _ => {
            let shown = internal::shown("io.k8s.api.apps.v1.DeploymentStrategy", strategy.value());
            errors.push(Error::not_supported(strategy.path(), shown, ["Recreate", "RollingUpdate"]));
        }
    }
}

/// Of every workload: what it selects stays.
pub(super) fn same_selector(new: &At<'_, '_>, old: &At<'_, '_>, errors: &mut ErrorList) {
    selector::immutable(&new.field("spec").field("selector"), &old.field("spec").field("selector"), errors);
}

pub(super) fn status(new: &At<'_, '_>, old: &At<'_, '_>, errors: &mut ErrorList) {
    const ALL: [&str; 8] = [
        "observedGeneration",
        "replicas",
        "updatedReplicas",
        "readyReplicas",
        "availableReplicas",
        "unavailableReplicas",
        "terminatingReplicas",
        "collisionCount",
    ];
    let status = new.field("status");
    let limited = ["updatedReplicas", "readyReplicas", "availableReplicas"];
    rollout::counters(&status, &ALL, &limited, errors);
    rollout::available_at_most_ready(&status, "readyReplicas", errors);
    rollout::collisions_only_grow(&status, &old.field("status"), errors);
}

/// Of a ReplicaSet or a ReplicationController.
pub(super) fn replica_status(new: &At<'_, '_>, _: &At<'_, '_>, errors: &mut ErrorList) {
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
