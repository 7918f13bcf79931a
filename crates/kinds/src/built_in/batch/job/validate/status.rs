//! What a controller may write into the status of a Job: the status before and the new one in, errors out.
//!
//! Kubernetes: most rules look only at what a write changes, so that a status that breaks one can still be written
//! elsewhere. The errors come in its order.

use api::field::{BadValue, ErrorList};
use serde_json::json;

use super::indexes;
use crate::validate::at::At;
use crate::validate::taken::Taken;

/// The conditions of a status that are true.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Phase {
    complete: bool,
    failed: bool,
    failure_target: bool,
    success_criteria_met: bool,
}

impl Phase {
    fn of(status: &At<'_, '_>) -> Phase {
        Phase {
            complete: has(status, "Complete", "True"),
            failed: has(status, "Failed", "True"),
            failure_target: has(status, "FailureTarget", "True"),
            success_criteria_met: has(status, "SuccessCriteriaMet", "True"),
        }
    }

    fn finished(self) -> bool {
        self.complete || self.failed
    }
}

fn has(status: &At<'_, '_>, condition: &str, value: &str) -> bool {
    let conditions = status.field("conditions");
    conditions.items().any(|it| it.text_of("type") == condition && it.text_of("status") == value)
}

/// A write to the status.
struct Write<'v, 'p> {
    spec: At<'v, 'p>,
    status: At<'v, 'p>,
    before: At<'v, 'p>,
    is: Phase,
    was: Phase,
}

impl Write<'_, '_> {
    /// A field that is a pointer or a list in Go: set and unset differ.
    fn changes(&self, field: &str) -> bool {
        let (new, old) = (self.status.field(field), self.before.field(field));
        new.is_set() != old.is_set() || !new.is_same(&old)
    }

    fn changes_active(&self) -> bool {
        self.status.int_of("active") != self.before.int_of("active")
    }

    fn changes_completed_indexes(&self) -> bool {
        self.status.text_of("completedIndexes") != self.before.text_of("completedIndexes")
    }

    /// Whether it makes the Job finished, or the contrary.
    fn finishes(&self) -> bool {
        self.is.finished() != self.was.finished()
    }

    fn completes(&self) -> bool {
        self.is.complete != self.was.complete
    }

    fn is_indexed(&self) -> bool {
        self.spec.text_of("completionMode") == "Indexed"
    }
}

pub(crate) fn check_status(new: &At<'_, '_>, old: &At<'_, '_>, errors: &mut ErrorList) {
    let (status, before, spec) = (new.field("status"), old.field("status"), new.field("spec"));
    let write = Write { spec, status, before, is: Phase::of(&status), was: Phase::of(&before) };
    counters(&write, errors);
    uncounted(&status.field("uncountedTerminatedPods"), errors);
    completion(&write, errors);
    ending(&write, errors);
    listed_indexes(&write, errors);
    pods_that_are_left(&write, errors);
    success_criteria(&write, errors);
    kept_from_before(&write, errors);
}

fn conditions(write: &Write<'_, '_>, problem: &str, errors: &mut ErrorList) {
    write.status.field("conditions").invalid_as(errors, BadValue::OMITTED, problem);
}

fn counters(write: &Write<'_, '_>, errors: &mut ErrorList) {
    for field in ["active", "succeeded", "failed", "ready", "terminating"] {
        write.status.field(field).not_negative(errors);
    }
}

/// Pods that are over, each once in each list.
fn uncounted(pods: &At<'_, '_>, errors: &mut ErrorList) {
    // Kubernetes: both lists are one set.
    let mut taken = Taken::default();
    for list in ["succeeded", "failed"] {
        for uid in pods.field(list).items() {
            match uid.text() {
                "" => uid.invalid_text(errors, "must not be empty"),
                known if taken.contains(&known) => uid.duplicate(errors),
                new => taken.push(new),
            }
        }
    }
}

/// What belongs to the conditions and the time of a Job that is complete.
fn completion(write: &Write<'_, '_>, errors: &mut ErrorList) {
    let (is, was) = (write.is, write.was);
    let (completed, started) = (write.status.field("completionTime"), write.status.field("startTime"));
    let changes_completion_time = write.completes() || write.changes("completionTime");
    if (write.completes() || is.failed != was.failed) && is.complete && is.failed {
        conditions(write, "cannot set Complete=True and Failed=true conditions", errors);
    }
    let changes_target = is.failure_target != was.failure_target;
    if (write.completes() || changes_target) && is.complete && is.failure_target {
        conditions(write, "cannot set Complete=True and FailureTarget=true conditions", errors);
    }
    if changes_completion_time && completed.is_set() && !is.complete {
        completed.invalid(errors, "cannot set completionTime when there is no Complete=True condition");
    }
    if changes_completion_time && !completed.is_set() && is.complete {
        completed.required(errors, "completionTime is required for Complete jobs");
    }
    let changes_times = write.changes("startTime") || write.changes("completionTime");
    if changes_times && completed.is_set() && started.is_set() && completed.text() < started.text() {
        completed.invalid(errors, "must be equal to or after `startTime`");
    }
}

/// What a Job needs before it may be failed or complete.
fn ending(write: &Write<'_, '_>, errors: &mut ErrorList) {
    let (is, was, status) = (write.is, write.was, &write.status);
    let fails = is.failed != was.failed || write.changes("failedIndexes");
    if fails && is.failed && !is.failure_target {
        let problem = "cannot set Failed=True condition without the FailureTarget=true condition";
        conditions(write, problem, errors);
    }
    let meets = is.success_criteria_met != was.success_criteria_met;
    if (write.completes() || meets) && is.complete && !is.success_criteria_met {
        let problem = "cannot set Complete=True condition without the SuccessCriteriaMet=true condition";
        conditions(write, problem, errors);
    }
    if !is.finished() {
        return;
    }
    if (write.finishes() || write.changes_active()) && status.int_of("active") > 0 {
        status.field("active").invalid_int(errors, "active>0 is invalid for finished job");
    }
    // Kubernetes: a Job that wants nothing ends even if it is suspended, and so has never started.
    let wants_nothing = write.spec.flag_of("suspend")
        && write.spec.has("completions")
        && write.spec.int_of("completions") == 0;
    let starts = write.finishes() || write.changes("startTime");
    if starts && !wants_nothing && !status.has("startTime") {
        status.field("startTime").required(errors, "startTime is required for finished job");
    }
    let pods = status.field("uncountedTerminatedPods");
    let has_uncounted = ["succeeded", "failed"].iter().any(|list| !pods.field(list).list().is_empty());
    if (write.finishes() || write.changes("uncountedTerminatedPods")) && has_uncounted {
        // Kubernetes prints its internal type, whose fields begin with capital letters.
        let [succeeded, failed] = ["succeeded", "failed"].map(|list| {
            let uids = pods.field(list).list();
            if uids.is_empty() { "null".to_owned() } else { json!(uids).to_string() }
        });
        let shown = BadValue::verbatim(format!("{{\"Succeeded\":{succeeded},\"Failed\":{failed}}}"));
        pods.invalid_as(errors, shown, "must be empty for finished job");
    }
}

fn listed_indexes(write: &Write<'_, '_>, errors: &mut ErrorList) {
    let (spec, status) = (&write.spec, &write.status);
    let [completed, failed] = ["completedIndexes", "failedIndexes"].map(|field| status.field(field).text());
    let (completes, fails) = (write.changes_completed_indexes(), write.changes("failedIndexes"));
    let completions = spec.has("completions").then(|| spec.int_of("completions"));
    let has_failed = status.has("failedIndexes");
    let has_backoff = spec.has("backoffLimitPerIndex");
    for (field, text, is_checked) in [
        ("completedIndexes", completed, completes),
        ("failedIndexes", failed, fails && has_backoff && has_failed),
    ] {
        if let Some(completions) = completions.filter(|_| is_checked)
            && let Err(problem) = indexes::count(text, completions)
        {
            status.field(field).invalid_text(errors, format!("error parsing {field}: {problem}"));
        }
    }
    if completes && !completed.is_empty() && !write.is_indexed() {
        let problem = "cannot set non-empty completedIndexes when non-indexed completion mode";
        status.field("completedIndexes").invalid_text(errors, problem);
    }
    if fails && has_failed && !has_backoff {
        let problem = "cannot set non-null failedIndexes when backoffLimitPerIndex is null";
        status.field("failedIndexes").invalid_text(errors, problem);
    }
    if let Some(completions) = completions.filter(|_| (completes || fails) && has_failed)
        && let Some(index) = indexes::overlap(completed, failed, completions)
    {
        let problem = format!("failedIndexes and completedIndexes overlap at index: {index}");
        status.field("failedIndexes").invalid_text(errors, problem);
    }
}

fn pods_that_are_left(write: &Write<'_, '_>, errors: &mut ErrorList) {
    let status = &write.status;
    let (ready, terminating) = (status.field("ready"), status.field("terminating"));
    let changes_terminating = write.finishes() || write.changes("terminating");
    if changes_terminating && terminating.int() > 0 && write.is.finished() {
        terminating.invalid_int(errors, "terminating>0 is invalid for finished job");
    }
    let changes_ready = write.changes("ready") || write.changes_active();
    if changes_ready && ready.is_set() && ready.int() > status.int_of("active") {
        ready.invalid_int(errors, "cannot set more ready pods than active");
    }
}

fn success_criteria(write: &Write<'_, '_>, errors: &mut ErrorList) {
    let is = write.is;
    if is.success_criteria_met && is.failed {
        conditions(write, "cannot set SuccessCriteriaMet=True and Failed=true conditions", errors);
    }
    if is.success_criteria_met && is.failure_target {
        conditions(write, "cannot set SuccessCriteriaMet=True and FailureTarget=true conditions", errors);
    }
    if write.spec.has("successPolicy") && !is.success_criteria_met && is.complete {
        let problem = "cannot set Complete=True for Job with SuccessPolicy unless SuccessCriteriaMet=True";
        conditions(write, problem, errors);
    }
}

/// What was reached stays.
fn kept_from_before(write: &Write<'_, '_>, errors: &mut ErrorList) {
    let (is, was, status, before) = (write.is, write.was, &write.status, &write.before);
    for (condition, was_true, is_true) in [
        ("Failed", was.failed, is.failed),
        ("Complete", was.complete, is.complete),
        ("FailureTarget", was.failure_target, is.failure_target),
    ] {
        if was_true && !is_true {
            conditions(write, &format!("cannot disable the terminal {condition}=True condition"), errors);
        }
    }
    // Kubernetes: an indexed Job can be scaled down, and with it the number of its indexes that have succeeded.
    let spec = &write.spec;
    let is_elastic =
        write.is_indexed() && spec.field("completions").value() == spec.field("parallelism").value();
    for field in ["failed", "succeeded"] {
        let counter = status.field(field);
        let may_decrease = field == "succeeded" && is_elastic;
        if counter.int() < before.int_of(field) && !may_decrease {
            counter.invalid_int(errors, format!("cannot decrease the {field} counter"));
        }
    }
    let completed = status.field("completionTime");
    if completed.is_set() && before.has("completionTime") {
        completed.immutable(errors, &before.field("completionTime"));
    }
    let is_resumed = has(before, "Suspended", "True") && has(status, "Suspended", "False");
    if before.has("startTime") && write.changes("startTime") && !is_resumed && !spec.flag_of("suspend") {
        status.field("startTime").invalid(errors, "field is immutable for unsuspended job once set");
    }
    if was.success_criteria_met && !is.success_criteria_met {
        conditions(write, "cannot disable the SuccessCriteriaMet=True condition", errors);
    }
    if was.complete && !was.success_criteria_met && is.success_criteria_met {
        let problem = "cannot set SuccessCriteriaMet=True for Job already has Complete=true conditions";
        conditions(write, problem, errors);
    }
}

#[cfg(test)]
mod tests;
