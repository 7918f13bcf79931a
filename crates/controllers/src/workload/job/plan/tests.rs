//! Jobs and their pods in, the plan in words out.

use super::*;
use k8s_openapi::api::batch::v1::Job;
use kube::ResourceExt;
use serde_json::{Value, json};

const NOW: &str = "2026-01-01T01:00:00Z";

/// A Job with these fields of the spec beside the defaults.
pub(in super::super) fn job(spec: &Value, status: &Value) -> Job {
    let mut job = json!({
        "metadata": {"name": "job", "namespace": "a", "uid": "j"},
        "spec": {"parallelism": 2, "completions": 4, "backoffLimit": 6, "completionMode": "NonIndexed",
            "podReplacementPolicy": "TerminatingOrFailed",
            "template": {"spec": {"containers": [], "restartPolicy": "Never"}}},
        "status": {"startTime": "2026-01-01T00:00:00Z"},
    });
    for (part, fields) in [("spec", spec), ("status", status)] {
        for (name, value) in fields.as_object().into_iter().flatten() {
            job[part][name] = value.clone();
        }
    }
    serde_json::from_value(job).unwrap()
}

/// A pod from words: its name and phase; then its index as `#1`, `deleting`, `counted` (without the finalizer),
/// `ready`, `exit=3`, `at=00:59:50`, `failures=2`.
pub(in super::super) fn pod(words: &str) -> Arc<Pod> {
    let words: Vec<&str> = words.split(' ').collect();
    let has = |word: &str| words.contains(&word);
    let value = |prefix: &str| words.iter().find_map(|word| word.strip_prefix(prefix));
    let mut pod = json!({
        "metadata": {"name": words[0], "namespace": "a", "uid": words[0], "annotations": {},
            "creationTimestamp": "2026-01-01T00:00:00Z"},
        "status": {"phase": words[1]},
    });
    if !has("counted") {
        pod["metadata"]["finalizers"] = json!(["batch.kubernetes.io/job-tracking"]);
    }
    if has("deleting") {
        pod["metadata"]["deletionTimestamp"] = json!(NOW);
    }
    if has("ready") {
        pod["status"]["conditions"] = json!([{"type": "Ready", "status": "True"}]);
    }
    if let Some(index) = value("#") {
        pod["metadata"]["annotations"]["batch.kubernetes.io/job-completion-index"] = json!(index);
    }
    if let Some(failures) = value("failures=") {
        pod["metadata"]["annotations"]["batch.kubernetes.io/job-index-failure-count"] = json!(failures);
    }
    if let Some(at) = value("at=") {
        let code: i32 = value("exit=").map_or(1, |code| code.parse().unwrap());
        let at = format!("2026-01-01T{at}Z");
        pod["status"]["containerStatuses"] = json!([{"name": "c", "image": "i", "imageID": "", "ready": false,
            "restartCount": 0, "state": {"terminated": {"exitCode": code, "finishedAt": at}}}]);
    }
    Arc::new(serde_json::from_value(pod).unwrap())
}

fn names(pods: &[Arc<Pod>]) -> String {
    pods.iter().map(|pod| pod.name_any()).collect::<Vec<_>>().join(",")
}

fn described(spec: &Value, status: &Value, pods: &[&str]) -> String {
    let job = job(spec, status);
    let pods: Vec<_> = pods.iter().map(|words| pod(words)).collect();
    let plan = plan(&Desired::read(&job).unwrap(), &pods, None, NOW.parse().unwrap());
    let new = |new: &NewPod| match (new.index, new.failures) {
        (None, _) => "x".to_owned(),
        (Some(index), None) => index.to_string(),
        (Some(index), Some(failures)) => format!("{index}({},{})", failures.counted, failures.ignored),
    };
    let action = match &plan.action {
        Action::Nothing => "nothing".to_owned(),
        Action::EndActive(pods) => format!("end {}", names(pods)),
        Action::Remove(pods) => format!("remove {}", names(pods)),
        Action::Create(pods) => format!("create {}", pods.iter().map(new).collect::<Vec<_>>().join(" ")),
    };
    let end = plan.end.map(|end| format!("; {}: {}", end.reason, end.message)).unwrap_or_default();
    let wait = plan.check_after.map(|wait| format!("; wait {wait:?}")).unwrap_or_default();
    format!("{action}{end}{wait}")
}

fn check(spec: Value, status: Value, pods: &[&str], expected: &str) {
    assert_eq!(described(&spec, &status, pods), expected, "{spec} {status} {pods:?}");
}

#[test]
fn pods_are_created_and_removed_up_to_the_parallelism() {
    let none = || json!({});
    check(none(), none(), &[], "create x x");
    check(none(), none(), &["p Running"], "create x");
    check(none(), none(), &["p Running", "q Pending"], "nothing");
    check(none(), json!({"succeeded": 3}), &[], "create x");
    check(none(), json!({"succeeded": 2}), &["p Succeeded counted", "q Succeeded"], "create x");
    check(none(), json!({"succeeded": 4}), &[], "nothing");
    check(none(), none(), &["p Running", "q Pending", "r Running"], "remove q");
    check(json!({"parallelism": 0}), none(), &["p Running"], "remove p");
    check(json!({"parallelism": 0}), none(), &[], "nothing");
    // Without a number of completions, no pod is added after the first success.
    check(json!({"completions": null}), none(), &["p Running"], "create x");
    check(json!({"completions": null}), none(), &["p Running", "q Succeeded"], "nothing");
    check(json!({"suspend": true}), none(), &["p Running", "q Failed"], "remove p");
    check(json!({"suspend": true}), none(), &[], "nothing");
}

#[test]
fn terminating_pods_are_replaced_as_the_policy_says() {
    let pods = ["p Running deleting", "q Running"];
    // Terminating counts as failed: there is a back-off from its deletion on.
    check(json!({}), json!({}), &pods, "nothing; wait 10s");
    check(json!({"podReplacementPolicy": "Failed"}), json!({}), &pods, "nothing");
    check(json!({"podReplacementPolicy": "Failed"}), json!({}), &["q Running"], "create x");
}

#[test]
fn failures_delay_the_next_pod() {
    check(json!({}), json!({}), &["p Failed at=00:59:58"], "nothing; wait 8s");
    check(json!({}), json!({}), &["p Failed at=00:59:40"], "create x x");
    check(json!({}), json!({}), &["p Failed at=00:59:58", "q Failed at=00:59:50"], "nothing; wait 18s");
    // After a restart, pods that were counted before still delay.
    check(json!({}), json!({"failed": 1}), &["p Failed at=00:59:58 counted"], "nothing; wait 8s");
    check(json!({}), json!({}), &["p Failed at=00:59:50", "q Succeeded at=00:59:55"], "create x x");
}

#[test]
fn a_job_fails_for_too_many_failures_or_too_much_time() {
    let too_many = "end q; BackoffLimitExceeded: Job has reached the specified backoff limit";
    let failed = ["p Failed", "q Running"];
    check(json!({"backoffLimit": 0}), json!({}), &failed, too_many);
    check(json!({"backoffLimit": 1}), json!({"failed": 1}), &failed, too_many);
    check(json!({"backoffLimit": 1}), json!({"failed": 1}), &["p Failed counted", "q Running"], "create x");
    let uncounted = json!({"failed": 1, "uncountedTerminatedPods": {"failed": ["p"]}});
    check(json!({"backoffLimit": 1}), uncounted, &failed, too_many);
    let too_long = "end q; DeadlineExceeded: Job was active longer than specified deadline";
    check(json!({"activeDeadlineSeconds": 3600}), json!({}), &["q Running"], too_long);
    let not_yet = json!({"activeDeadlineSeconds": 3700, "parallelism": 1});
    check(not_yet, json!({}), &["q Running"], "nothing; wait 100s");
    check(json!({"activeDeadlineSeconds": 9, "suspend": true}), json!({}), &[], "nothing");
    // What was decided before stays.
    let target = json!({"conditions": [
        {"type": "FailureTarget", "status": "True", "reason": "Why", "message": "because"}]});
    check(json!({}), target, &["q Running"], "end q; Why: because");
}

#[test]
fn the_failure_policy_decides_about_failed_pods() {
    let rule = |action: &str| {
        json!({"podFailurePolicy": {"rules": [
            {"action": action, "onExitCodes": {"operator": "In", "values": [3]}}]},
            "backoffLimit": 0, "parallelism": 1})
    };
    let pods = ["p Failed at=00:50:00 exit=3"];
    check(rule("Ignore"), json!({}), &pods, "create x");
    let message = "Container c for pod a/p failed with exit code 3 matching FailJob rule at index 0";
    check(rule("FailJob"), json!({}), &pods, &format!("end ; PodFailurePolicy: {message}"));
    let limit = "end ; BackoffLimitExceeded: Job has reached the specified backoff limit";
    check(rule("Count"), json!({}), &pods, limit);
}

#[test]
fn an_indexed_job_has_one_pod_for_each_index() {
    let indexed = || json!({"completionMode": "Indexed", "parallelism": 3});
    check(indexed(), json!({}), &[], "create 0 1 2");
    check(indexed(), json!({"completedIndexes": "0,2"}), &["p Running #1"], "create 3");
    check(indexed(), json!({}), &["p Succeeded #0", "q Running #2"], "create 1 3");
    check(indexed(), json!({}), &["p Running #0", "q Running #0 ready", "r Running #1"], "remove p");
    check(indexed(), json!({}), &["p Running", "q Running #9", "r Running #1"], "remove p,q");
    // Scaled down: indexes beyond the end do not count.
    let scaled = json!({"completionMode": "Indexed", "parallelism": 2, "completions": 2});
    check(scaled, json!({"completedIndexes": "1-3"}), &[], "create 0");
}

#[test]
fn each_index_may_have_a_limit_and_a_back_off_of_its_own() {
    let spec = || {
        json!({"completionMode": "Indexed", "parallelism": 3, "completions": 3, "backoffLimitPerIndex": 1,
            "backoffLimit": 2147483647})
    };
    check(spec(), json!({}), &[], "create 0(0,0) 1(0,0) 2(0,0)");
    let failed = ["p Failed #0 at=00:59:55", "q Running #1", "r Running #2"];
    check(spec(), json!({}), &failed, "nothing; wait 5s");
    let failed = ["p Failed #0 at=00:59:45", "q Running #1", "r Running #2"];
    check(spec(), json!({}), &failed, "create 0(1,0)");
    let last = ["p Failed #0 at=00:59:45 failures=1", "q Running #1", "r Running #2"];
    check(spec(), json!({}), &last, "nothing");
    let over = json!({"completedIndexes": "1,2"});
    check(spec(), over, &last[..1], "end ; FailedIndexes: Job has failed indexes");
    let mut limited = spec();
    limited["maxFailedIndexes"] = json!(0);
    let message = "Job has exceeded the specified maximal number of failed indexes";
    check(limited, json!({}), &last, &format!("end q,r; MaxFailedIndexesExceeded: {message}"));
}

#[test]
fn a_success_policy_ends_the_job_early() {
    let spec = json!({"completionMode": "Indexed", "successPolicy": {"rules": [{"succeededIndexes": "0"}]}});
    let pods = ["p Succeeded #0", "q Running #1"];
    check(spec, json!({}), &pods, "end q; SuccessPolicy: Matched rules at index 0");
}
