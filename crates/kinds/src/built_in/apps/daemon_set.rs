//! DaemonSet: a pod on every node.

use api::field::{Error, ErrorList};
use serde_json::Value;

use super::GROUP;
use super::deployment::check_same_selector;
use crate::built_in::BuiltIn;
use crate::built_in::core::pod::warnings as pod_warnings;
use crate::built_in::workload::{
    CONTAINERS, IMAGES, ROLLING_UPDATE, SELECTOR, is_new_generation, template_at_spec,
};
use crate::cells::column::{AGE, Cell, NAME, integer, string};
use crate::cells::selector::labels;
use crate::defaults::member::{self, Members};
use crate::defaults::type_defaults::{DefaultValue, TypeDefaults};
use crate::strategy::builder::{SPEC, TEMPLATE};
use crate::strategy::prepare::same;
use crate::strategy::{Circumstances, Strategy};
use crate::validate::at::At;
use crate::validate::validation::{UpdateChecks, Validation};
use crate::validate::{internal, rollout, selector, template};

/// Kubernetes: the generation of the template is a field of its internal type, and an annotation outside.
const TEMPLATE_GENERATION: &str = "deprecated.daemonset.template.generation";

pub(crate) static DAEMON_SET: BuiltIn = BuiltIn::new(GROUP, "DaemonSet", "daemonsets")
    .older_versions(&["v1beta2"])
    .strategy(
        Strategy::PLAIN
            .counts_generation_of(SPEC)
            .status()
            .on_create(prepare_create)
            .on_update(prepare_update)
            .on_status(prepare_status)
            .pod_spec_at(TEMPLATE),
    )
    .validation(
        Validation::new(check)
            .update(UpdateChecks::BODY.compare(check_same_selector))
            .subresources(&[("status", check_status)]),
    )
    .warnings(warn)
    .defaults(&[TypeDefaults::of("apps.v1.DaemonSet")
        .rule(default_strategy)
        .values(&[("spec.revisionHistoryLimit", DefaultValue::Number(10))])])
    .columns(&[
        NAME,
        integer("Desired", Cell::Number("/status/desiredNumberScheduled")),
        integer("Current", Cell::Number("/status/currentNumberScheduled")),
        integer("Ready", Cell::Number("/status/numberReady")),
        integer("Up-to-date", Cell::Number("/status/updatedNumberScheduled")),
        integer("Available", Cell::Number("/status/numberAvailable")),
        string(
            "Node Selector",
            Cell::Computed(|it| labels(it.at("/spec/template/spec/nodeSelector")).into()),
        ),
        AGE,
        CONTAINERS,
        IMAGES,
        SELECTOR,
    ])
    .annotations_for_fields(&[TEMPLATE_GENERATION]);

fn prepare_create(set: &mut Members, _: &Circumstances<'_>) {
    let generation = template_generation(set).max(1);
    set_template_generation(set, generation);
}

fn prepare_update(set: &mut Members, old: &Members, _: &Circumstances<'_>) {
    let changed = i64::from(!same(template_of(set), template_of(old)));
    set_template_generation(set, template_generation(old) + changed);
}

/// Kubernetes holds the count in the spec, which a write to the status leaves alone, and shows it as an annotation.
fn prepare_status(set: &mut Members, old: &Members, _: &Circumstances<'_>) {
    set_template_generation(set, template_generation(old));
}

fn template_of(set: &Members) -> Option<&Value> {
    set.get("spec")?.get("template")
}

fn template_generation(set: &Members) -> i64 {
    let annotations = set.get("metadata").and_then(|metadata| metadata.get("annotations"));
    let text = annotations.and_then(|annotations| annotations.get(TEMPLATE_GENERATION)?.as_str());
    text.and_then(|text| text.parse().ok()).unwrap_or_default()
}

fn set_template_generation(set: &mut Members, generation: i64) {
    let annotations = member::made(member::made(set, "metadata"), "annotations");
    annotations.insert(TEMPLATE_GENERATION.to_owned(), generation.to_string().into());
}

fn check(set: &At<'_, '_>, errors: &mut ErrorList) {
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
    check_strategy(&spec.field("updateStrategy"), errors);
    spec.field("revisionHistoryLimit").not_negative(errors);
}

fn check_strategy(strategy: &At<'_, '_>, errors: &mut ErrorList) {
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

fn check_status(new: &At<'_, '_>, old: &At<'_, '_>, errors: &mut ErrorList) {
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

fn default_strategy(set: &mut Members) {
    let annotations = member::made(member::made(set, "metadata"), "annotations");
    annotations.entry(TEMPLATE_GENERATION).or_insert_with(|| "0".into());
    let strategy = member::made(member::made(set, "spec"), "updateStrategy");
    member::default_to(strategy, "type", ROLLING_UPDATE);
    if member::text(strategy, "type") == ROLLING_UPDATE {
        let rolling = member::made(strategy, "rollingUpdate");
        member::default_to(rolling, "maxUnavailable", 1);
        member::default_to(rolling, "maxSurge", 0);
    }
}

fn warn(set: &At<'_, '_>, old: Option<&Value>, warnings: &mut Vec<String>) {
    if is_new_generation(set, old) {
        pod_warnings::check(&template_at_spec(set), warnings);
    }
}
