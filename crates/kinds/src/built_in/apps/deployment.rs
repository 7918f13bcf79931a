//! Deployment: replicas of a pod, and how they are replaced by new ones.

use api::field::{Error, ErrorList};

use super::GROUP;
use crate::built_in::BuiltIn;
use crate::built_in::workload::{CONTAINERS, IMAGES, ROLLING_UPDATE, warn_of_name_and_template};
use crate::cells::column::{AGE, Cell, NAME, TableColumn, string};
use crate::cells::row::Row;
use crate::cells::selector::label_selector;
use crate::defaults::member::{self, Members};
use crate::defaults::type_defaults::{DefaultValue, TypeDefaults};
use crate::strategy::builder::TEMPLATE;
use crate::strategy::{StatusMetadata, Strategy};
use crate::validate::at::At;
use crate::validate::validation::{UpdateChecks, Validation};
use crate::validate::{internal, rollout, selector, template};

pub(crate) static DEPLOYMENT: BuiltIn = BuiltIn::new(GROUP, "Deployment", "deployments")
    .older_versions(&["v1beta1", "v1beta2"])
    .strategy(
        Strategy::PLAIN
            .counts_generation_of(&[&["spec"], &["metadata", "annotations"]])
            .status()
            .status_metadata(StatusMetadata::AllBut(&["labels"]))
            .status_resets(&[&["spec"], &["metadata", "labels"]])
            .pod_spec_at(TEMPLATE),
    )
    .validation(
        Validation::new(check)
            .update(UpdateChecks::BODY.compare(check_same_selector))
            .subresources(&[("status", check_status)]),
    )
    .warnings(warn_of_name_and_template)
    .defaults(&[TypeDefaults::of("apps.v1.Deployment").rule(default_strategy).values(&[
        ("spec.replicas", DefaultValue::Number(1)),
        ("spec.revisionHistoryLimit", DefaultValue::Number(10)),
        ("spec.progressDeadlineSeconds", DefaultValue::Number(600)),
    ])])
    .columns(&[
        NAME,
        READY_OF_DESIRED,
        string("Up-to-date", Cell::Number("/status/updatedReplicas")),
        string("Available", Cell::Number("/status/availableReplicas")),
        AGE,
        CONTAINERS,
        IMAGES,
        string("Selector", Cell::Computed(|it| selector_text(it).into())).wide(),
    ]);

/// How many replicas are ready, and how many there should be.
pub(super) const READY_OF_DESIRED: TableColumn = string(
    "Ready",
    Cell::Computed(|it| {
        format!("{}/{}", it.number("/status/readyReplicas"), it.number("/spec/replicas")).into()
    }),
);

fn check(deployment: &At<'_, '_>, errors: &mut ErrorList) {
    let spec = deployment.field("spec");
    spec.field("replicas").not_negative(errors);
    check_template(&spec, errors);
    check_strategy(&spec.field("strategy"), errors);
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

pub(crate) fn check_template(spec: &At<'_, '_>, errors: &mut ErrorList) {
    let wanted =
        template::required_selector(&spec.field("selector"), "deployment", "invalid label selector", errors);
    if let Some(wanted) = wanted {
        let pods = spec.field("template");
        template::matches(&pods, &wanted, errors);
        template::check(&pods, errors);
        template::runs_forever(&pods, "ReplicaSet", errors);
    }
}

fn check_strategy(strategy: &At<'_, '_>, errors: &mut ErrorList) {
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
pub(crate) fn check_same_selector(new: &At<'_, '_>, old: &At<'_, '_>, errors: &mut ErrorList) {
    selector::immutable(&new.field("spec").field("selector"), &old.field("spec").field("selector"), errors);
}

fn check_status(new: &At<'_, '_>, old: &At<'_, '_>, errors: &mut ErrorList) {
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

fn default_strategy(deployment: &mut Members) {
    let strategy = member::made(member::made(deployment, "spec"), "strategy");
    member::default_to(strategy, "type", ROLLING_UPDATE);
    if member::text(strategy, "type") == ROLLING_UPDATE {
        let rolling = member::made(strategy, "rollingUpdate");
        member::default_to(rolling, "maxUnavailable", "25%");
        member::default_to(rolling, "maxSurge", "25%");
    }
}

fn selector_text(deployment: &Row<'_>) -> String {
    label_selector(deployment.at("/spec/selector")).unwrap_or_else(|| "<invalid>".to_owned())
}
