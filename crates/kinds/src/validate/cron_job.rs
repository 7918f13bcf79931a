//! CronJobs: a schedule and a template for jobs.

use api::field::ErrorList;

use super::at::At;
use super::{job, schedule, selector};

/// What remains of a name once a job appends its eleven characters.
const LONGEST_NAME: usize = 52;

pub(super) fn body(cron_job: &At<'_, '_>, errors: &mut ErrorList) {
    spec(cron_job, None, errors);
    let metadata = cron_job.field("metadata");
    let name = metadata.field("name");
    if name.text().len() > LONGEST_NAME {
        name.invalid_text(errors, format!("must be no more than {LONGEST_NAME} characters"));
    }
}

pub(super) fn change(new: &At<'_, '_>, old: &At<'_, '_>, errors: &mut ErrorList) {
    spec(new, Some(&old.field("spec")), errors);
}

fn spec(cron_job: &At<'_, '_>, old: Option<&At<'_, '_>>, errors: &mut ErrorList) {
    let spec = cron_job.field("spec");
    let (when, zone) = (spec.field("schedule"), spec.field("timeZone"));
    if when.text().is_empty() {
        when.required(errors, "");
    } else {
        if let Some(problem) = schedule::problem(when.text()) {
            when.invalid_text(errors, problem);
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
        time_zone(&zone, errors);
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
        errors.push(api::field::Error::not_supported(manual.path(), true, ["nil", "false"]));
    }
    for limit in ["successfulJobsHistoryLimit", "failedJobsHistoryLimit"] {
        spec.field(limit).not_negative(errors);
    }
}

/// The zones of the IANA database, in the order of their names.
const ZONES: &str = include_str!("time_zones.txt");

fn is_zone(name: &str) -> bool {
    ZONES.lines().any(|zone| zone == name)
}

fn time_zone(zone: &At<'_, '_>, errors: &mut ErrorList) {
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
