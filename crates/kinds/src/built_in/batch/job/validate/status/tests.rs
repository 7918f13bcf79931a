//! Writes to the status of a Job: allowed and refused ones, with the errors of kube-apiserver.

use super::*;
use serde_json::Value;

fn errors(spec: &Value, before: &Value, status: &Value) -> Vec<String> {
    let [new, old] = [status, before].map(|status| json!({"spec": spec, "status": status}));
    let mut errors = ErrorList::new();
    check_status(&At::root(&new), &At::root(&old), &mut errors);
    errors.iter().map(ToString::to_string).collect()
}

fn conditions_of(names: &[&str]) -> Value {
    names.iter().map(|name| json!({"type": name, "status": "True"})).collect()
}

const START: &str = "2026-01-01T00:00:00Z";
const END: &str = "2026-01-01T00:01:00Z";

#[test]
fn indexes_are_read_only_where_a_job_has_them() {
    let plain = json!({"completions": 3});
    let indexed = json!({"completions": 3, "completionMode": "Indexed", "backoffLimitPerIndex": 1});
    for (spec, status, expected) in [
        (
            &plain,
            json!({"failedIndexes": "1Gi"}),
            vec![
                "status.failedIndexes: Invalid value: \"1Gi\": cannot set non-null failedIndexes when \
                 backoffLimitPerIndex is null",
            ],
        ),
        (
            &plain,
            json!({"completedIndexes": "0"}),
            vec![
                "status.completedIndexes: Invalid value: \"0\": cannot set non-empty completedIndexes when \
                 non-indexed completion mode",
            ],
        ),
        (
            &indexed,
            json!({"failedIndexes": "1Gi"}),
            vec![
                "status.failedIndexes: Invalid value: \"1Gi\": error parsing failedIndexes: cannot convert string \
                 to integer for index: \"1Gi\"",
            ],
        ),
        (&indexed, json!({"completedIndexes": "0", "failedIndexes": "1-2"}), vec![]),
        (
            &indexed,
            json!({"completedIndexes": "0,1-2", "failedIndexes": "2"}),
            vec![
                "status.failedIndexes: Invalid value: \"2\": failedIndexes and completedIndexes overlap at index: 2",
            ],
        ),
        // What cannot be read overlaps with nothing.
        (
            &indexed,
            json!({"completedIndexes": "x,1", "failedIndexes": "1"}),
            vec![
                "status.completedIndexes: Invalid value: \"x,1\": error parsing completedIndexes: cannot convert \
                 string to integer for index: \"x\"",
                "status.failedIndexes: Invalid value: \"1\": failedIndexes and completedIndexes overlap at index: 1",
            ],
        ),
    ] {
        assert_eq!(errors(spec, &json!({}), &status), expected, "{spec} {status}");
    }
}

#[test]
fn a_status_that_breaks_a_rule_can_be_written_elsewhere() {
    let spec = json!({"completions": 3, "completionMode": "Indexed", "backoffLimitPerIndex": 1});
    for before in [
        json!({"completedIndexes": "0-7", "failedIndexes": "3"}),
        json!({"conditions": conditions_of(&["Failed"]), "startTime": START}),
        json!({"conditions": conditions_of(&["Complete"]), "startTime": START, "completionTime": END}),
        json!({"completionTime": END}),
        json!({"startTime": END, "completionTime": START}),
        json!({"conditions": conditions_of(&["Failed", "FailureTarget"]), "active": 1, "terminating": 1}),
        json!({"ready": 2, "active": 1}),
    ] {
        assert_eq!(errors(&spec, &json!({}), &before).len().min(1), 1, "{before}");
        let mut next = before.clone();
        next["conditions"] = match &before["conditions"] {
            Value::Array(list) => {
                let more = json!({"type": "Checked", "status": "True"});
                list.iter().cloned().chain([more]).collect()
            }
            _ => conditions_of(&["Checked"]),
        };
        assert_eq!(errors(&spec, &before, &next), Vec::<String>::new(), "{before}");
    }
}

#[test]
fn a_finished_job_has_no_pods_left() {
    let finished = |more: Value| {
        let mut status =
            json!({"conditions": conditions_of(&["Failed", "FailureTarget"]), "startTime": START});
        status.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        status
    };
    for (status, expected) in [
        (finished(json!({})), vec![]),
        (
            finished(json!({"active": 1})),
            vec!["status.active: Invalid value: 1: active>0 is invalid for finished job"],
        ),
        (
            finished(json!({"terminating": 2})),
            vec!["status.terminating: Invalid value: 2: terminating>0 is invalid for finished job"],
        ),
        (
            finished(json!({"uncountedTerminatedPods": {"failed": ["a"]}})),
            vec![
                "status.uncountedTerminatedPods: Invalid value: {\"Succeeded\":null,\"Failed\":[\"a\"]}: must be \
                 empty for finished job",
            ],
        ),
        (
            json!({"conditions": conditions_of(&["Failed", "FailureTarget"])}),
            vec!["status.startTime: Required value: startTime is required for finished job"],
        ),
    ] {
        assert_eq!(errors(&json!({}), &json!({}), &status), expected, "{status}");
    }
    let suspended = json!({"suspend": true, "completions": 0});
    let never_started = json!({"conditions": conditions_of(&["Failed", "FailureTarget"])});
    assert_eq!(errors(&suspended, &json!({}), &never_started), Vec::<String>::new());
}

#[test]
fn success_criteria_are_met_before_the_end_and_stay_met() {
    let policy = json!({"successPolicy": {"rules": []}});
    let complete =
        json!({"conditions": conditions_of(&["Complete"]), "startTime": START, "completionTime": END});
    assert_eq!(
        errors(&policy, &complete, &complete),
        ["status.conditions: Invalid value: cannot set Complete=True for Job with SuccessPolicy unless \
             SuccessCriteriaMet=True",]
    );
    let met = json!({
        "conditions": conditions_of(&["Complete", "SuccessCriteriaMet"]), "startTime": START, "completionTime": END,
    });
    assert_eq!(
        errors(&json!({}), &complete, &met),
        [
            "status.conditions: Invalid value: cannot set SuccessCriteriaMet=True for Job already has Complete=true \
             conditions",
        ]
    );
    assert_eq!(
        errors(&json!({}), &met, &complete),
        [
            "status.conditions: Invalid value: cannot set Complete=True condition without the \
             SuccessCriteriaMet=true condition",
            "status.conditions: Invalid value: cannot disable the SuccessCriteriaMet=True condition",
        ]
    );
}

#[test]
fn times_and_counters_do_not_go_back() {
    let done = json!({
        "conditions": conditions_of(&["Complete", "SuccessCriteriaMet"]), "startTime": START, "completionTime": START,
        "succeeded": 3, "failed": 1,
    });
    let mut next = done.clone();
    next["completionTime"] = END.into();
    next["startTime"] = END.into();
    next["succeeded"] = 2.into();
    next["failed"] = 0.into();
    assert_eq!(
        errors(&json!({"completions": 3, "parallelism": 3}), &done, &next),
        [
            "status.failed: Invalid value: 0: cannot decrease the failed counter",
            "status.succeeded: Invalid value: 2: cannot decrease the succeeded counter",
            "status.completionTime: Invalid value: \"2026-01-01T00:01:00Z\": field is immutable",
            "status.startTime: Invalid value: \"2026-01-01T00:01:00Z\": field is immutable for unsuspended job once \
             set",
        ]
    );
}
