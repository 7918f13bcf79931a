//! The specs of Jobs and CronJobs.

use super::{Behaviour, Template};
use crate::draw::Draw;
use serde_json::{Value, json};

/// A controller of Jobs that no cluster of a story has.
const OTHER_MANAGER: &str = "example.com/other";

pub(super) fn spec(draw: &mut Draw, name: &str, template: Template) -> Value {
    let (completions, parallelism) = (1 + draw.below(5), 1 + draw.below(3));
    let mut spec = json!({"completions": completions, "parallelism": parallelism,
        "backoffLimit": draw.below(4), "template": template.job_object(name)});
    if template.behaviour == Behaviour::FailsForGood {
        fail_by_policy(&mut spec, 42, "FailJob");
    }
    match draw.below(9) {
        0..=2 => index(draw, &mut spec),
        3 => index_with_success_policy(draw, &mut spec, name),
        4 => index_with_failures(draw, &mut spec, name),
        // A queue of work: it is complete when one pod has succeeded and all have ended.
        5 => drop(spec.as_object_mut().map(|spec| spec.remove("completions"))),
        _ => {}
    }
    if draw.one_in(6) {
        spec["suspend"] = json!(true);
    }
    if draw.one_in(6) {
        spec["activeDeadlineSeconds"] = json!(5 + draw.below(30));
    }
    if draw.one_in(6) {
        spec["ttlSecondsAfterFinished"] = json!(draw.below(30));
    }
    if draw.one_in(5) {
        spec["podReplacementPolicy"] = json!("Failed");
    }
    if draw.one_in(16) {
        spec["managedBy"] = json!(OTHER_MANAGER);
    }
    spec
}

fn index(draw: &mut Draw, spec: &mut Value) {
    spec["completionMode"] = json!("Indexed");
    if draw.one_in(3) {
        spec["backoffLimitPerIndex"] = json!(draw.below(2));
    }
}

/// The first indexes are enough.
fn index_with_success_policy(draw: &mut Draw, spec: &mut Value, name: &str) {
    spec["completionMode"] = json!("Indexed");
    spec.as_object_mut().map(|spec| spec.remove("podFailurePolicy"));
    let rule = if draw.one_in(2) {
        let template = Template { image: draw.below(4), behaviour: Behaviour::LingersByIndex };
        spec["template"] = template.job_object(name);
        draw.pick(&[r#"{"succeededIndexes": "0"}"#, r#"{"succeededCount": 1}"#])
    } else {
        // One after the other: which of several pods end before the others are deleted depends on who is faster.
        spec["parallelism"] = json!(1);
        r#"{"succeededIndexes": "0,1", "succeededCount": 1}"#
    };
    let rule: Value = serde_json::from_str(rule).unwrap_or_default();
    spec["successPolicy"] = json!({"rules": [rule]});
    if spec["completions"] == 1 {
        spec["completions"] = json!(2);
    }
}

/// All indexes but the first fail.
fn index_with_failures(draw: &mut Draw, spec: &mut Value, name: &str) {
    let template = Template { image: draw.below(4), behaviour: Behaviour::FailsByIndex };
    spec["completionMode"] = json!("Indexed");
    spec["template"] = template.job_object(name);
    spec["completions"] = json!(2 + draw.below(3));
    spec.as_object_mut().map(|spec| spec.remove("podFailurePolicy"));
    if draw.one_in(4) {
        return;
    }
    spec["backoffLimitPerIndex"] = json!(draw.below(2));
    // The limit of each index counts, not that of all together.
    spec["backoffLimit"] = json!(50);
    if draw.one_in(3) {
        spec["maxFailedIndexes"] = json!(draw.below(3));
    }
    if draw.one_in(3) {
        fail_by_policy(spec, 1, "FailIndex");
    }
}

fn fail_by_policy(spec: &mut Value, exit_code: i32, action: &str) {
    let on_exit = json!({"operator": "In", "values": [exit_code]});
    spec["podFailurePolicy"] = json!({"rules": [{"action": action, "onExitCodes": on_exit}]});
}

pub(super) fn cron_spec(draw: &mut Draw, name: &str, template: Template) -> Value {
    let mut job = spec(draw, name, template);
    // A finished Job of a CronJob goes by the history limits.
    for field in ["ttlSecondsAfterFinished", "suspend", "managedBy"] {
        job.as_object_mut().map(|job| job.remove(field));
    }
    if job["completionMode"] != "Indexed" {
        job["completions"] = json!(1);
    }
    let mut spec = json!({"schedule": "* * * * *", "concurrencyPolicy": draw.pick(&["Allow", "Forbid", "Replace"]),
        "jobTemplate": {"spec": job}});
    if draw.one_in(2) {
        spec["successfulJobsHistoryLimit"] = json!(draw.below(3));
        spec["failedJobsHistoryLimit"] = json!(draw.below(3));
    }
    spec
}
