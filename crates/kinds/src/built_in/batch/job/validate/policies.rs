//! When a job's failed pods count, and when a part of it is enough.

use api::field::{BadValue, Error, ErrorList};
use api::name::Format;

use super::indexes;
use crate::validate::at::At;
use crate::validate::taken::Taken;

const ACTIONS: &[&str] = &["Count", "FailIndex", "FailJob", "Ignore"];
const STATUSES: &[&str] = &["False", "True", "Unknown"];
const OPERATORS: &[&str] = &["In", "NotIn"];
const MAX_RULES: usize = 20;
const MAX_CODES: usize = 255;
const MAX_PATTERNS: usize = 20;
const MAX_INDEXES_BYTES: usize = 64 << 10;

/// Missing or unknown: Kubernetes lists what it knows either way.
fn word(at: &At<'_, '_>, known: &[&str], errors: &mut ErrorList) {
    if at.text().is_empty() {
        let known = known.iter().map(|word| api::go::quote(word)).collect::<Vec<_>>().join(" ");
        at.required(errors, &format!("valid values: [{known}]"));
    } else {
        at.one_of(errors, known);
    }
}

fn limited(list: &At<'_, '_>, most: usize, errors: &mut ErrorList) {
    if list.list().len() > most {
        errors.push(Error::too_many(list.path(), list.list().len(), most));
    }
}

pub(super) fn failure(spec: &At<'_, '_>, errors: &mut ErrorList) {
    let policy = spec.field("podFailurePolicy");
    let rules = policy.field("rules");
    limited(&rules, MAX_RULES, errors);
    let pods = spec.field("template");
    let pods = pods.field("spec");
    let lists = ["containers", "initContainers"].map(|list| pods.field(list).list());
    let containers: Taken<&str> =
        lists.iter().copied().flatten().map(|it| it["name"].as_str().unwrap_or_default()).collect();
    for rule in rules.items() {
        let action = rule.field("action");
        if action.text() == "FailIndex" {
            if !spec.has("backoffLimitPerIndex") {
                action.invalid_text(errors, "requires the backoffLimitPerIndex to be set");
            }
        } else {
            word(&action, ACTIONS, errors);
        }
        let (codes, conditions) = (rule.field("onExitCodes"), rule.field("onPodConditions"));
        if codes.is_set() {
            exit_codes(&containers, &codes, errors);
        }
        limited(&conditions, MAX_PATTERNS, errors);
        for pattern in conditions.items() {
            pattern.field("type").is_format(errors, Format::QualifiedName);
            word(&pattern.field("status"), STATUSES, errors);
        }
        match (codes.is_set(), conditions.is_empty()) {
            (true, false) => {
                let problem = "specifying both OnExitCodes and OnPodConditions is not supported";
                rule.invalid_as(errors, BadValue::OMITTED, problem);
            }
            (false, true) => {
                let problem = "specifying one of OnExitCodes and OnPodConditions is required";
                rule.invalid_as(errors, BadValue::OMITTED, problem);
            }
            _ => {}
        }
    }
}

fn exit_codes(containers: &Taken<&str>, codes: &At<'_, '_>, errors: &mut ErrorList) {
    word(&codes.field("operator"), OPERATORS, errors);
    let name = codes.field("containerName");
    if name.is_set() && !containers.contains(name.text()) {
        let problem = "must be one of the container or initContainer names in the pod template";
        name.invalid_text(errors, problem);
    }
    let values = codes.field("values");
    if values.is_empty() {
        values.invalid(errors, "at least one value is required");
    }
    limited(&values, MAX_CODES, errors);
    let mut taken = Taken::default();
    for value in values.items() {
        if codes.text_of("operator") == "In" && value.int() == 0 {
            value.invalid_int(errors, "must not be 0 for the In operator");
        }
        if !taken.add(value.value()) {
            value.duplicate(errors);
        }
    }
    if !values.list().is_sorted_by_key(|value| value.as_i64()) {
        values.invalid(errors, "must be ordered");
    }
}

pub(super) fn success(spec: &At<'_, '_>, policy: &At<'_, '_>, errors: &mut ErrorList) {
    let rules = policy.field("rules");
    if rules.is_empty() {
        let problem = "at least one rules must be specified when the successPolicy is specified";
        rules.required(errors, problem);
    }
    limited(&rules, MAX_RULES, errors);
    let completions = spec.int_of("completions");
    for rule in rules.items() {
        let (wanted, indexes) = (rule.field("succeededCount"), rule.field("succeededIndexes"));
        if !wanted.is_set() && !indexes.is_set() {
            let problem = "at least one of succeededCount or succeededIndexes must be specified";
            rule.required(errors, problem);
        }
        if indexes.text().len() > MAX_INDEXES_BYTES {
            errors.push(Error::too_long(indexes.path(), MAX_INDEXES_BYTES));
        }
        let total = indexes::count(indexes.text(), completions);
        if let Err(problem) = &total {
            indexes.invalid_text(errors, format!("error parsing succeededIndexes: {problem}"));
        }
        if !wanted.is_set() {
            continue;
        }
        wanted.not_negative(errors);
        let total = total.unwrap_or(0);
        for (limit, what) in [
            (Some(completions), "specified completions"),
            (indexes.is_set().then_some(total), "indexes in the specified succeededIndexes field"),
        ] {
            if let Some(limit) = limit.filter(|limit| wanted.int() > *limit) {
                let problem = format!("must be less than or equal to {limit} (the number of {what})");
                wanted.invalid_int(errors, problem);
            }
        }
    }
}
