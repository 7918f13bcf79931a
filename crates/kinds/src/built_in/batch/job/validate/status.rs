//! What the job controller may write into a job's status.

use api::field::{BadValue, ErrorList};

use super::indexes;
use crate::validate::at::At;
use crate::validate::taken::Taken;

fn is_true(status: &At<'_, '_>, condition: &str) -> bool {
    has(status, condition, "True")
}

fn has(status: &At<'_, '_>, condition: &str, value: &str) -> bool {
    let conditions = status.field("conditions");
    conditions.items().any(|it| it.text_of("type") == condition && it.text_of("status") == value)
}

pub(crate) fn check_status(new: &At<'_, '_>, old: &At<'_, '_>, errors: &mut ErrorList) {
    let (status, before, spec) = (new.field("status"), old.field("status"), new.field("spec"));
    for field in ["active", "succeeded", "failed", "ready", "terminating"] {
        status.field(field).not_negative(errors);
    }
    uncounted(&status.field("uncountedTerminatedPods"), errors);
    conditions(&status, &before, errors);
    finished(&status, &spec, errors);
    for field in ["completedIndexes", "failedIndexes"] {
        let listed = status.field(field);
        if spec.has("completions")
            && let Err(problem) = indexes::count(listed.text(), spec.int_of("completions"))
        {
            listed.invalid_text(errors, format!("error parsing {field}: {problem}"));
        }
    }
    if !status.text_of("completedIndexes").is_empty() && spec.text_of("completionMode") != "Indexed" {
        let problem = "cannot set non-empty completedIndexes when non-indexed completion mode";
        status.field("completedIndexes").invalid_text(errors, problem);
    }
    if status.has("failedIndexes") && !spec.has("backoffLimitPerIndex") {
        let problem = "cannot set non-null failedIndexes when backoffLimitPerIndex is null";
        status.field("failedIndexes").invalid_text(errors, problem);
    }
    // Kubernetes: an indexed Job can be scaled down, and with it the number of its indexes that have succeeded.
    let is_elastic = spec.text_of("completionMode") == "Indexed"
        && spec.field("completions").value() == spec.field("parallelism").value();
    for field in ["failed", "succeeded"] {
        let counter = status.field(field);
        let may_decrease = field == "succeeded" && is_elastic;
        if counter.int() < before.int_of(field) && !may_decrease {
            counter.invalid_int(errors, format!("cannot decrease the {field} counter"));
        }
    }
    let started = status.field("startTime");
    let is_resumed = is_true(&before, "Suspended") && has(&status, "Suspended", "False");
    if before.has("startTime")
        && !is_resumed
        && started.value() != before.field("startTime").value()
        && !spec.flag_of("suspend")
        && !old.field("spec").flag_of("suspend")
    {
        started.invalid(errors, "field is immutable for unsuspended job once set");
    }
}

/// Pods that are over, each once.
fn uncounted(pods: &At<'_, '_>, errors: &mut ErrorList) {
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

fn conditions(status: &At<'_, '_>, before: &At<'_, '_>, errors: &mut ErrorList) {
    let list = status.field("conditions");
    let [complete, failed, target, met] =
        ["Complete", "Failed", "FailureTarget", "SuccessCriteriaMet"].map(|it| is_true(status, it));
    for (is_wrong, problem) in [
        (complete && failed, "cannot set Complete=True and Failed=true conditions"),
        (complete && target, "cannot set Complete=True and FailureTarget=true conditions"),
        (failed && !target, "cannot set Failed=True condition without the FailureTarget=true condition"),
        (
            complete && !met,
            "cannot set Complete=True condition without the SuccessCriteriaMet=true condition",
        ),
        (met && failed, "cannot set SuccessCriteriaMet=True and Failed=true conditions"),
        (met && target, "cannot set SuccessCriteriaMet=True and FailureTarget=true conditions"),
    ] {
        if is_wrong {
            list.invalid_as(errors, BadValue::OMITTED, problem);
        }
    }
    for condition in ["Failed", "Complete", "FailureTarget"] {
        if is_true(before, condition) && !is_true(status, condition) {
            let problem = format!("cannot disable the terminal {condition}=True condition");
            list.invalid_as(errors, BadValue::OMITTED, problem);
        }
    }
    if is_true(before, "SuccessCriteriaMet") && !met {
        list.invalid_as(errors, BadValue::OMITTED, "cannot disable the SuccessCriteriaMet=True condition");
    }
}

fn finished(status: &At<'_, '_>, spec: &At<'_, '_>, errors: &mut ErrorList) {
    let is_complete = is_true(status, "Complete");
    let is_finished = is_complete || is_true(status, "Failed");
    let (completed, started) = (status.field("completionTime"), status.field("startTime"));
    match (completed.is_set(), is_complete) {
        (true, false) => {
            completed.invalid(errors, "cannot set completionTime when there is no Complete=True condition");
        }
        (false, true) => completed.required(errors, "completionTime is required for Complete jobs"),
        _ => {}
    }
    if completed.is_set() && started.is_set() && completed.text() < started.text() {
        completed.invalid(errors, "must be equal to or after `startTime`");
    }
    if is_finished {
        for field in ["active", "terminating"] {
            if status.int_of(field) > 0 {
                status.field(field).invalid_int(errors, format!("{field}>0 is invalid for finished job"));
            }
        }
        // Kubernetes: a Job that wants nothing ends even if it is suspended, and so has never started.
        let wants_nothing =
            spec.flag_of("suspend") && spec.has("completions") && spec.int_of("completions") == 0;
        if !started.is_set() && !wants_nothing {
            started.required(errors, "startTime is required for finished job");
        }
    }
    let ready = status.field("ready");
    if ready.is_set() && ready.int() > status.int_of("active") {
        ready.invalid_int(errors, "cannot set more ready pods than active");
    }
}
