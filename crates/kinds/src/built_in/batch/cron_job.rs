//! CronJob: a job at certain times.

use api::cron::Schedule;
use api::field::{Error, ErrorList};
use serde_json::Value;

use super::GROUP;
use super::job::validate as job;
use crate::built_in::BuiltIn;
use crate::built_in::core::pod::warnings as pod_warnings;
use crate::built_in::workload::{is_new_generation, warn_of_name};
use crate::cells::column::{AGE, Cell, NAME, boolean, integer, string};
use crate::cells::row::{NONE, Row, UNSET, joined};
use crate::cells::selector::label_selector_or_none;
use crate::defaults::type_defaults::{DefaultValue, TypeDefaults};
use crate::strategy::Strategy;
use crate::strategy::builder::SPEC;
use crate::validate::at::At;
use crate::validate::selector;
use crate::validate::validation::{UpdateChecks, Validation};

/// What a schedule adds to the name of a job has to fit as well.
const LONGEST_NAME: usize = 52;
const JOB_TEMPLATE: &[&str] = &["spec", "jobTemplate", "spec", "template", "spec"];
const ZONES: &str = include_str!("cron_job/time_zones.txt");

pub(crate) static CRON_JOB: BuiltIn = BuiltIn::new(GROUP, "CronJob", "cronjobs")
    .older_versions(&["v1beta1"])
    .strategy(Strategy::PLAIN.counts_generation_of(SPEC).status().pod_spec_at(JOB_TEMPLATE))
    .validation(
        Validation::new(check)
            .update(UpdateChecks::CHANGE.compare(check_change))
            .without_metadata_of_status(),
    )
    .warnings(warn)
    .defaults(&[TypeDefaults::of("batch.v1.CronJob").values(&[
        ("spec.concurrencyPolicy", DefaultValue::Text("Allow")),
        ("spec.suspend", DefaultValue::Flag(false)),
        ("spec.successfulJobsHistoryLimit", DefaultValue::Number(3)),
        ("spec.failedJobsHistoryLimit", DefaultValue::Number(1)),
    ])])
    .columns(&[
        NAME,
        string("Schedule", Cell::Text("/spec/schedule")),
        string("Timezone", Cell::TextOr("/spec/timeZone", NONE)),
        boolean("Suspend", Cell::Computed(|it| suspend(it).into())),
        integer("Active", Cell::Count("/status/active")),
        string("Last Schedule", Cell::Computed(|it| last_schedule(it).into())),
        AGE,
        string("Containers", Cell::Computed(|it| joined(containers(it), "name").into())).wide(),
        string("Images", Cell::Computed(|it| joined(containers(it), "image").into())).wide(),
        string(
            "Selector",
            Cell::Computed(|it| label_selector_or_none(it.at("/spec/jobTemplate/spec/selector")).into()),
        )
        .wide(),
    ]);

fn check(cron_job: &At<'_, '_>, errors: &mut ErrorList) {
    check_spec(cron_job, None, errors);
    let metadata = cron_job.field("metadata");
    let name = metadata.field("name");
    if name.text().len() > LONGEST_NAME {
        name.invalid_text(errors, format!("must be no more than {LONGEST_NAME} characters"));
    }
}

fn check_change(new: &At<'_, '_>, old: &At<'_, '_>, errors: &mut ErrorList) {
    check_spec(new, Some(&old.field("spec")), errors);
}

fn check_spec(cron_job: &At<'_, '_>, old: Option<&At<'_, '_>>, errors: &mut ErrorList) {
    let spec = cron_job.field("spec");
    let (when, zone) = (spec.field("schedule"), spec.field("timeZone"));
    if when.text().is_empty() {
        when.required(errors, "");
    } else {
        if let Err(problem) = when.text().parse::<Schedule>() {
            when.invalid_text(errors, problem.to_string());
        }
        let had_zone = old.is_some_and(|old| old.text_of("schedule").contains("TZ"));
        let has_zone = when.text().contains("TZ");
        if has_zone && had_zone && zone.is_set() {
            when.invalid_text(errors, "cannot use both timeZone field and TZ or CRON_TZ in schedule");
        } else if has_zone && !had_zone {
            when.invalid_text(errors, "cannot use TZ or CRON_TZ in schedule, use timeZone field instead");
        }
    }
    spec.field("startingDeadlineSeconds").not_negative(errors);
    if old.is_none_or(|old| old.field("timeZone").value() != zone.value()) {
        check_time_zone(&zone, errors);
    }
    spec.field("concurrencyPolicy").required_one_of(errors, &["Allow", "Forbid", "Replace"]);
    let template = spec.field("jobTemplate");
    let template = template.field("spec");
    job::spec(&template, errors);
    let wanted = template.field("selector");
    if wanted.is_set() {
        wanted.invalid_as(errors, selector::shown(&wanted), "`selector` will be auto-generated");
    }
    if template.flag_of("manualSelector") {
        let manual = template.field("manualSelector");
        errors.push(Error::not_supported(manual.path(), true, ["nil", "false"]));
    }
    for limit in ["successfulJobsHistoryLimit", "failedJobsHistoryLimit"] {
        spec.field(limit).not_negative(errors);
    }
}

fn is_zone(name: &str) -> bool {
    ZONES.lines().any(|zone| zone == name)
}

fn check_time_zone(zone: &At<'_, '_>, errors: &mut ErrorList) {
    if !zone.is_set() {
        return;
    }
    if zone.text().is_empty() {
        zone.invalid_text(errors, "timeZone must be nil or non-empty string");
        return;
    }
    let is_part = |part: &str| {
        let is_known = |byte: u8| byte.is_ascii_alphanumeric() || b".-_+".contains(&byte);
        (1..=14).contains(&part.len())
            && !matches!(part, "." | "..")
            && !part.starts_with('-')
            && part.bytes().all(is_known)
    };
    let is_local = zone.text().eq_ignore_ascii_case("Local");
    if is_local {
        let problem = "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones";
        zone.invalid_text(errors, problem);
    }
    // Go itself knows `Local`, in this spelling alone.
    let is_known = zone.text() == "Local" || is_zone(zone.text());
    if !zone.text().split('/').all(is_part) || !is_known {
        zone.invalid_text(errors, format!("unknown time zone {}", zone.text()));
    }
}

fn warn(object: &At<'_, '_>, old: Option<&Value>, warnings: &mut Vec<String>) {
    let spec = object.field("spec");
    if old.is_none() {
        warn_of_name(object, "Pod names and hostnames", warnings);
    }
    if is_new_generation(object, old) {
        let jobs = spec.field("jobTemplate");
        let jobs = jobs.field("spec");
        pod_warnings::check(&jobs.field("template"), warnings);
    }
    if old.is_some() && spec.text_of("schedule").contains("TZ") {
        // Kubernetes: the path has one step too many.
        let warning = "cannot use TZ or CRON_TZ in spec.spec.schedule, use timeZone instead, see \
            https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details";
        warnings.push(warning.to_owned());
    }
}

fn suspend(cron_job: &Row<'_>) -> &'static str {
    match cron_job.at("/spec/suspend").as_bool() {
        Some(true) => "True",
        Some(false) => "False",
        None => UNSET,
    }
}

fn last_schedule(cron_job: &Row<'_>) -> String {
    let last = cron_job.at("/status/lastScheduleTime");
    if last.is_null() { NONE.to_owned() } else { cron_job.since(last) }
}

fn containers<'a>(cron_job: &Row<'a>) -> &'a Value {
    cron_job.at("/spec/jobTemplate/spec/template/spec/containers")
}
