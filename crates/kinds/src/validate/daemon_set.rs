//! DaemonSets, and the revisions that they and StatefulSets keep.

use api::field::{Error, ErrorList};

use super::at::At;
use super::{internal, rollout, selector, template};

pub(super) fn body(set: &At<'_, '_>, errors: &mut ErrorList) {
    let spec = set.field("spec");
    let (wanted, pods) = (spec.field("selector"), spec.field("template"));
    selector::check(&wanted, errors);
    let metadata = pods.field("metadata");
    if let Some(compiled) = selector::compiled(&wanted)
        && !selector::matches(&compiled, &metadata.field("labels"))
    {
        selector::mismatch(&pods, errors);
    }
    if selector::is_blank(&wanted) {
        let problem = "empty selector is invalid for daemonset";
        wanted.invalid_as(errors, selector::shown(&wanted), problem);
    }
    template::check(&pods, errors);
    template::runs_forever(&pods, "DaemonSet", errors);
    spec.field("minReadySeconds").not_negative(errors);
    strategy(&spec.field("updateStrategy"), errors);
    spec.field("revisionHistoryLimit").not_negative(errors);
}

fn strategy(strategy: &At<'_, '_>, errors: &mut ErrorList) {
    let rolling = strategy.field("rollingUpdate");
    match strategy.text_of("type") {
        "OnDelete" => {}
        "RollingUpdate" if !rolling.is_set() => rolling.required(errors, ""),
        "RollingUpdate" => {
            let (unavailable, surge) = (rolling.field("maxUnavailable"), rolling.field("maxSurge"));
            rollout::count_or_percent(&unavailable, errors);
            rollout::count_or_percent(&surge, errors);
            rollout::at_most_all(&unavailable, errors);
            rollout::at_most_all(&surge, errors);
            match (rollout::amount(&unavailable) != 0, rollout::amount(&surge) != 0) {
                (true, true) => surge.invalid(errors, "may not be set when maxUnavailable is non-zero"),
                (false, false) => unavailable.required(errors, "cannot be 0 when maxSurge is 0"),
                _ => {}
            }
        }
        _ => {
            let shown = internal::shown("io.k8s.api.apps.v1.DaemonSetUpdateStrategy", strategy.value());
            errors.push(Error::not_supported(strategy.path(), shown, ["RollingUpdate", "OnDelete"]));
        }
    }
}

pub(super) fn status(new: &At<'_, '_>, old: &At<'_, '_>, errors: &mut ErrorList) {
    const ALL: [&str; 9] = [
        "currentNumberScheduled",
        "numberMisscheduled",
        "desiredNumberScheduled",
        "numberReady",
        "observedGeneration",
        "updatedNumberScheduled",
        "numberAvailable",
        "numberUnavailable",
        "collisionCount",
    ];
    let status = new.field("status");
    rollout::counters(&status, &ALL, &[], errors);
    rollout::collisions_only_grow(&status, &old.field("status"), errors);
}

pub(super) fn new_revision(revision: &At<'_, '_>, errors: &mut ErrorList) {
    revision.field("revision").not_negative(errors);
    let data = revision.field("data");
    if !data.is_set() {
        data.required(errors, "data is mandatory");
    } else if !data.value().is_object() {
        data.required(errors, "data must be a valid JSON object");
    }
}

pub(super) fn revision_change(new: &At<'_, '_>, old: &At<'_, '_>, errors: &mut ErrorList) {
    new.field("revision").not_negative(errors);
    new.field("data").immutable(errors, &old.field("data"));
}
