//! Job: pods that run until enough of them have succeeded.

pub(super) mod validate;

use serde_json::{Value, json};

use super::GROUP;
use crate::built_in::BuiltIn;
use crate::built_in::workload::{
    CONTAINERS, IMAGES, SELECTOR, label_like_template, warn_of_name_and_template,
};
use crate::cells::age::span;
use crate::cells::column::{AGE, Cell, NAME, string};
use crate::cells::row::{Row, holds, instant};
use crate::defaults::member::{self, Members};
use crate::defaults::type_defaults::{DefaultValue, TypeDefaults};
use crate::selectable::{Refusal, Selectable, SelectableField};
use crate::strategy::builder::{SPEC, TEMPLATE};
use crate::strategy::{Circumstances, GcPolicy, Strategy};
use crate::validate::validation::{UpdateChecks, Validation};

const NAME_LABELS: [&str; 2] = ["job-name", "batch.kubernetes.io/job-name"];
const UID_LABEL: &str = "batch.kubernetes.io/controller-uid";
const UID_LABELS: [&str; 2] = ["controller-uid", UID_LABEL];

pub(crate) static JOB: BuiltIn = BuiltIn::new(GROUP, "Job", "jobs")
    .strategy(
        Strategy::PLAIN
            .counts_generation_of(SPEC)
            .status()
            .gc_policy(GcPolicy::Orphan)
            .on_create(prepare_create)
            .on_status(|job, _, _| label_like_template(job))
            // Kubernetes: the labels default again when the object is read back, from the template that the
            // creation has completed.
            .after_validation(label_like_template)
            .pod_spec_at(TEMPLATE),
    )
    .validation(
        Validation::new(validate::check)
            .update(UpdateChecks::AS_NEW.compare(validate::check_change))
            .subresources(&[("status", validate::check_status)]),
    )
    .warnings(warn_of_name_and_template)
    .defaults(&[
        TypeDefaults::of("batch.v1.Job").rule(default_job).values(&[
            ("spec.parallelism", DefaultValue::Number(1)),
            ("spec.completionMode", DefaultValue::Text("NonIndexed")),
            ("spec.suspend", DefaultValue::Flag(false)),
            ("spec.manualSelector", DefaultValue::Flag(false)),
        ]),
        TypeDefaults::of("batch.v1.PodFailurePolicyOnPodConditionsPattern")
            .values(&[("status", DefaultValue::Text("True"))]),
    ])
    .columns(&[
        NAME,
        string("Status", Cell::Computed(|it| status(it).into())),
        string("Completions", Cell::Computed(|it| completions(it).into())),
        string("Duration", Cell::Computed(|it| duration(it).into())),
        AGE,
        CONTAINERS,
        IMAGES,
        SELECTOR,
    ])
    .selectable(
        Selectable::new(&[
            SelectableField::NAME,
            SelectableField::NAMESPACE,
            SelectableField::count("status.successful", "status.succeeded"),
        ])
        .refusing(Refusal::Job),
    );

/// A job selects its pods by its own uid, unless it sets `manualSelector`.
fn prepare_create(job: &mut Members, _: &Circumstances<'_>) {
    let metadata = job.get("metadata").and_then(Value::as_object);
    let word = |name| metadata.map(|metadata| member::text(metadata, name).to_owned()).unwrap_or_default();
    let (name, uid) = (word("name"), word("uid"));
    let spec = member::made(job, "spec");
    if member::flag(spec, "manualSelector") {
        return;
    }
    let labels = member::made(member::made(member::made(spec, "template"), "metadata"), "labels");
    for label in NAME_LABELS {
        labels.entry(label).or_insert_with(|| name.clone().into());
    }
    for label in UID_LABELS {
        labels.entry(label).or_insert_with(|| uid.clone().into());
    }
    let selector = member::made(member::made(spec, "selector"), "matchLabels");
    selector.entry(UID_LABEL).or_insert_with(|| uid.into());
}

fn default_job(job: &mut Members) {
    let spec = member::made(job, "spec");
    if !member::is_set(spec, "completions") && !member::is_set(spec, "parallelism") {
        spec.insert("completions".to_owned(), json!(1));
    }
    let tries = if member::is_set(spec, "backoffLimitPerIndex") { i32::MAX } else { 6 };
    member::default_to(spec, "backoffLimit", tries);
    let replace = if spec.contains_key("podFailurePolicy") { "Failed" } else { "TerminatingOrFailed" };
    // Kubernetes: an empty one was said, and is refused.
    spec.entry("podReplacementPolicy").or_insert_with(|| replace.into());
    label_like_template(job);
}

fn status(it: &Row<'_>) -> &'static str {
    let conditions = it.at("/status/conditions");
    match () {
        () if holds(conditions, "Complete") => "Complete",
        () if holds(conditions, "Failed") => "Failed",
        () if it.is_deleting() => "Terminating",
        () if holds(conditions, "Suspended") => "Suspended",
        () if holds(conditions, "FailureTarget") => "FailureTarget",
        () if holds(conditions, "SuccessCriteriaMet") => "SuccessCriteriaMet",
        () => "Running",
    }
}

fn completions(it: &Row<'_>) -> String {
    let succeeded = it.number("/status/succeeded");
    match (it.at("/spec/completions").as_i64(), it.number("/spec/parallelism")) {
        (Some(wanted), _) => format!("{succeeded}/{wanted}"),
        (None, parallel @ 2..) => format!("{succeeded}/1 of {parallel}"),
        (None, _) => format!("{succeeded}/1"),
    }
}

fn duration(it: &Row<'_>) -> String {
    let Some(start) = instant(it.at("/status/startTime")) else { return String::new() };
    let end = instant(it.at("/status/completionTime")).unwrap_or(it.now);
    span(end.duration_since(start).as_secs())
}
