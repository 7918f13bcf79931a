//! Plans in, statuses out: before finalizers are removed, and after.

use super::*;
use crate::workload::job::plan::{
    plan,
    tests::{job, pod},
};
use serde_json::{Value, json};

const NOW: &str = "2026-01-01T01:00:00Z";

/// The status before and after the finalizers of all released pods are removed, without times and the counts of
/// live pods; and the names of the released pods.
fn tracked(spec: &Value, status: &Value, pods: &[&str]) -> (Value, Value, String) {
    let (job, now) = (job(spec, status), NOW.parse().unwrap());
    let desired = Desired::read(&job).unwrap();
    let pods: Vec<_> = pods.iter().map(|words| pod(words)).collect();
    let plan = plan(&desired, &pods, None, now);
    let tracking = record(&desired, &pods, &plan, Done { counts: plan.counts, is_all_deleted: true }, now);
    let released: Vec<String> = tracking.released.iter().filter_map(|pod| pod.metadata.uid.clone()).collect();
    let first = tracking.status.clone();
    let (last, _) = tracking.finish(first.clone(), &released, now);
    (shown(first), shown(last), released.join(","))
}

fn shown(status: JobStatus) -> Value {
    let mut status = serde_json::to_value(status).unwrap();
    let fields = status.as_object_mut().unwrap();
    for name in ["startTime", "completionTime", "active", "ready", "terminating"] {
        fields.remove(name);
    }
    if let Some(conditions) = fields.get_mut("conditions") {
        let types = conditions.as_array().unwrap().iter();
        let types: Vec<_> = types.map(|it| json!([it["type"], it["status"], it["reason"]])).collect();
        *conditions = types.into();
    }
    status
}

fn check(spec: Value, status: Value, pods: &[&str], released: &str, first: Value, last: Value) {
    let found = tracked(&spec, &status, pods);
    assert_eq!(found, (first, last, released.to_owned()), "{spec} {status} {pods:?}");
}

#[test]
fn a_pod_is_uncounted_before_it_loses_its_finalizer_and_counted_after() {
    let pods = ["p Succeeded", "q Failed", "r Running"];
    check(
        json!({}),
        json!({"succeeded": 1}),
        &pods,
        "p,q",
        json!({"succeeded": 1, "uncountedTerminatedPods": {"succeeded": ["p"], "failed": ["q"]}}),
        json!({"succeeded": 2, "failed": 1, "uncountedTerminatedPods": {}}),
    );
    // A crash after the status was written, and before the finalizers went.
    check(
        json!({}),
        json!({"succeeded": 1, "uncountedTerminatedPods": {"succeeded": ["p"], "failed": ["q"]}}),
        &pods,
        "p,q",
        json!({"succeeded": 1, "uncountedTerminatedPods": {"succeeded": ["p"], "failed": ["q"]}}),
        json!({"succeeded": 2, "failed": 1, "uncountedTerminatedPods": {}}),
    );
    // A crash after the finalizers went; one of the pods is deleted.
    check(
        json!({}),
        json!({"succeeded": 1, "uncountedTerminatedPods": {"succeeded": ["p"], "failed": ["q"]}}),
        &["q Failed counted", "r Running"],
        "",
        json!({"succeeded": 2, "failed": 1, "uncountedTerminatedPods": {}}),
        json!({"succeeded": 2, "failed": 1, "uncountedTerminatedPods": {}}),
    );
}

#[test]
fn a_job_is_complete_when_its_last_pod_is_counted() {
    let met = json!(["SuccessCriteriaMet", "True", "CompletionsReached"]);
    check(
        json!({"completions": 1}),
        json!({}),
        &["p Succeeded"],
        "p",
        json!({"uncountedTerminatedPods": {"succeeded": ["p"]}, "conditions": [met]}),
        json!({"succeeded": 1, "uncountedTerminatedPods": {},
            "conditions": [met, ["Complete", "True", "CompletionsReached"]]}),
    );
    // Not while pods are terminating.
    let (_, last, _) = tracked(
        &json!({"completions": 1, "podReplacementPolicy": "Failed"}),
        &json!({}),
        &["p Succeeded", "q Running deleting"],
    );
    assert_eq!(last["conditions"], json!([met]));
}

#[test]
fn every_pod_of_a_job_that_fails_counts_as_failed() {
    let target = json!(["FailureTarget", "True", "BackoffLimitExceeded"]);
    check(
        json!({"backoffLimit": 0}),
        json!({}),
        &["p Failed", "q Running"],
        "p,q",
        json!({"uncountedTerminatedPods": {"failed": ["p", "q"]}, "conditions": [target]}),
        json!({"failed": 2, "uncountedTerminatedPods": {},
            "conditions": [target, ["Failed", "True", "BackoffLimitExceeded"]]}),
    );
}

#[test]
fn indexes_are_recorded_before_finalizers_go() {
    let spec = json!({"completionMode": "Indexed", "completions": 5, "backoffLimitPerIndex": 0});
    check(
        spec,
        json!({"completedIndexes": "0", "succeeded": 1}),
        &["a Succeeded counted #0", "b Failed #3", "c Succeeded #2", "d Succeeded #1", "e Running #4"],
        "d,c,b",
        json!({"succeeded": 3, "completedIndexes": "0-2", "failedIndexes": "3",
            "uncountedTerminatedPods": {"failed": ["b"]}}),
        json!({"succeeded": 3, "completedIndexes": "0-2", "failedIndexes": "3", "failed": 1,
            "uncountedTerminatedPods": {}}),
    );
}

#[test]
fn the_last_failed_pod_of_an_index_waits_for_its_successor() {
    let spec = json!({"completionMode": "Indexed", "completions": 2, "backoffLimitPerIndex": 3});
    let (_, _, released) =
        tracked(&spec, &json!({}), &["a Failed #0", "b Failed #0 failures=1", "c Running #1"]);
    assert_eq!(released, "a");
    let (_, _, released) = tracked(&spec, &json!({}), &["b Failed #0 failures=1", "c Running #0"]);
    assert_eq!(released, "b");
}

#[test]
fn at_most_500_pods_are_counted_at_once() {
    let pods: Vec<_> = (0..600).map(|number| format!("p{number} Failed")).collect();
    let pods: Vec<_> = pods.iter().map(String::as_str).collect();
    let spec = json!({"backoffLimit": 0});
    let (first, last, _) = tracked(&spec, &json!({}), &pods);
    assert_eq!(first["uncountedTerminatedPods"]["failed"].as_array().unwrap().len(), 500);
    assert_eq!((&last["failed"], last["conditions"].as_array().unwrap().len()), (&json!(500), 1));
}

#[test]
fn the_suspended_condition_follows_the_spec() {
    let (first, ..) = tracked(&json!({"suspend": true}), &json!({}), &[]);
    assert_eq!(first["conditions"], json!([["Suspended", "True", "JobSuspended"]]));
    let suspended = json!({"conditions": [{"type": "Suspended", "status": "True"}]});
    let (first, ..) = tracked(&json!({}), &suspended, &[]);
    assert_eq!(first["conditions"], json!([["Suspended", "False", "JobResumed"]]));
    let (first, ..) = tracked(&json!({}), &json!({}), &[]);
    assert_eq!(first["conditions"], json!(null));
}

#[test]
fn pods_of_a_job_that_is_deleted_lose_their_finalizer_uncounted() {
    let mut job = job(&json!({}), &json!({}));
    let now: Timestamp = NOW.parse().unwrap();
    job.metadata.deletion_timestamp = Some(Time(now));
    let desired = Desired::read(&job).unwrap();
    let pods = [pod("p Running")];
    let plan = plan(&desired, &pods, None, now);
    let tracking = record(&desired, &pods, &plan, Done { counts: plan.counts, is_all_deleted: true }, now);
    assert_eq!(tracking.released.len(), 1);
    assert_eq!(shown(tracking.status), json!({"uncountedTerminatedPods": {}}));
}
