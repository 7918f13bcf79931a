//! Counts and percentages of replicas, and the replica counters of a status.

use api::field::{BadValue, ErrorList};
use api::name::Format;

use super::at::At;

/// A number from zero on, or a percentage.
pub(crate) fn count_or_percent(at: &At<'_, '_>, errors: &mut ErrorList) {
    if at.value().is_string() {
        for problem in Format::Percent.problems(at.text()) {
            at.invalid_text(errors, problem);
        }
    } else {
        at.not_negative(errors);
    }
}

pub(crate) fn at_most_all(at: &At<'_, '_>, errors: &mut ErrorList) {
    if percent(at).is_some_and(|percent| percent > 100) {
        at.invalid(errors, "must not be greater than 100%");
    }
}

fn percent(at: &At<'_, '_>) -> Option<i64> {
    let text = at.value().as_str().filter(|text| Format::Percent.fits(text))?;
    text.strip_suffix('%')?.parse().ok()
}

/// The number before the sign, where there is one.
pub(crate) fn amount(at: &At<'_, '_>) -> i64 {
    percent(at).unwrap_or_else(|| at.value().as_str().map_or(at.int(), |text| text.parse().unwrap_or(0)))
}

/// As Kubernetes shows it, also where nothing stands.
pub(crate) fn shown(at: &At<'_, '_>) -> BadValue {
    if at.is_set() { at.value().into() } else { BadValue::from(0_i64) }
}

/// Counters of a status: none below zero, and those that count replicas not above their number.
pub(crate) fn counters(status: &At<'_, '_>, all: &[&str], limited: &[&str], errors: &mut ErrorList) {
    for field in all {
        status.field(field).not_negative(errors);
    }
    for field in limited {
        let counter = status.field(field);
        if counter.int() > status.int_of("replicas") {
            counter.invalid_int(errors, "cannot be greater than status.replicas");
        }
    }
}

pub(crate) fn available_at_most_ready(status: &At<'_, '_>, ready: &str, errors: &mut ErrorList) {
    let available = status.field("availableReplicas");
    if available.int() > status.int_of("readyReplicas") {
        available.invalid_int(errors, format!("cannot be greater than {ready}"));
    }
}

pub(crate) fn collisions_only_grow(new: &At<'_, '_>, old: &At<'_, '_>, errors: &mut ErrorList) {
    let (now, before) = (new.field("collisionCount"), old.field("collisionCount"));
    if before.is_set() && (!now.is_set() || now.int() < before.int()) {
        now.invalid_int(errors, "cannot be decremented");
    }
}
