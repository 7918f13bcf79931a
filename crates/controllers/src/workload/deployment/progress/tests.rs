//! What a Deployment reports in each situation.

use super::*;
use serde_json::{Value, json};

const START: &str = "2026-01-01T00:00:00Z";
const NOW: &str = "2026-01-01T00:05:00Z";

/// A ReplicaSet of (wanted, running, ready, available) pods.
fn set(name: &str, (wanted, running, ready, available): (i32, i32, i32, i32)) -> ReplicaSet {
    let set = json!({"metadata": {"name": name}, "spec": {"replicas": wanted, "selector": {}},
        "status": {"replicas": running, "readyReplicas": ready, "availableReplicas": available,
            "terminatingReplicas": 0, "observedGeneration": 1}});
    serde_json::from_value(set).unwrap()
}

fn deployment(status: &Value) -> Deployment {
    serde_json::from_value(json!({
        "metadata": {"name": "web", "generation": 2},
        "spec": {"replicas": 3, "progressDeadlineSeconds": 60, "selector": {}, "template": {}, "strategy":
            {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}},
        "status": status,
    }))
    .unwrap()
}

/// The status of a rollout; the last set is the new one.
fn rollout(deployment: &Deployment, sets: &[ReplicaSet]) -> (DeploymentStatus, Option<Duration>) {
    let spec = deployment.spec.as_ref().unwrap();
    let situation = Situation {
        deployment,
        spec,
        strategy: Strategy::of(spec),
        sets,
        new_set: sets.last(),
        now: NOW.parse().unwrap(),
    };
    let conditions = deployment.status.as_ref().and_then(|status| status.conditions.clone());
    let status = of_rollout(&situation, conditions.unwrap_or_default());
    let after = check_after(&situation, &status);
    (status, after)
}

fn known(reason: &str, updated: &str) -> Value {
    json!({"type": "Progressing", "status": "True", "reason": reason, "message": "before",
        "lastUpdateTime": updated, "lastTransitionTime": START})
}

#[test]
fn a_rollout_is_complete_goes_on_or_times_out() {
    let cases = [
        // Complete: all pods are new and available.
        (
            known("ReplicaSetUpdated", START),
            json!({"replicas": 3, "updatedReplicas": 3, "readyReplicas": 3, "availableReplicas": 3}),
            (3, 3, 3, 3),
            "True",
            "NewReplicaSetAvailable",
            r#"ReplicaSet "web-2" has successfully progressed."#,
            NOW,
            None,
        ),
        // A complete one stays complete when a pod fails later.
        (
            known("NewReplicaSetAvailable", START),
            json!({"replicas": 3, "updatedReplicas": 3, "readyReplicas": 3, "availableReplicas": 3}),
            (3, 3, 2, 2),
            "True",
            "NewReplicaSetAvailable",
            "before",
            START,
            None,
        ),
        // Progress: more pods than before. The time of the transition stays.
        (
            known("ReplicaSetUpdated", START),
            json!({"replicas": 1, "updatedReplicas": 1}),
            (3, 2, 0, 0),
            "True",
            "ReplicaSetUpdated",
            r#"ReplicaSet "web-2" is progressing."#,
            NOW,
            Some(61),
        ),
        // No progress, and time left.
        (
            known("ReplicaSetUpdated", "2026-01-01T00:04:30Z"),
            json!({"replicas": 2, "updatedReplicas": 2}),
            (3, 2, 0, 0),
            "True",
            "ReplicaSetUpdated",
            "before",
            "2026-01-01T00:04:30Z",
            Some(31),
        ),
        // No progress for longer than the deadline.
        (
            known("NewReplicaSetCreated", START),
            json!({"replicas": 2, "updatedReplicas": 2}),
            (3, 2, 0, 0),
            "False",
            "ProgressDeadlineExceeded",
            r#"ReplicaSet "web-2" has timed out progressing."#,
            NOW,
            None,
        ),
    ];
    for (condition, mut before, sizes, status, reason, message, updated, after) in cases {
        before["conditions"] = json!([condition]);
        let (found, found_after) = rollout(&deployment(&before), &[set("web-2", sizes)]);
        let progressing = find(found.conditions.as_deref().unwrap(), PROGRESSING).unwrap();
        assert_eq!((progressing.status.as_str(), progressing.reason.as_deref()), (status, Some(reason)));
        assert_eq!(progressing.message.as_deref(), Some(message));
        assert_eq!(progressing.last_update_time, Some(Time(updated.parse().unwrap())), "{message}");
        let transition = if status == "False" { NOW } else { START };
        assert_eq!(progressing.last_transition_time, Some(Time(transition.parse().unwrap())), "{message}");
        assert_eq!(found_after, after.map(Duration::from_secs), "{message}");
    }
}

#[test]
fn the_status_counts_the_pods_of_all_sets() {
    let sets = [set("web-1", (2, 3, 3, 2)), set("web-2", (2, 1, 1, 0))];
    let (status, _) = rollout(&deployment(&json!({"collisionCount": 1})), &sets);
    let mut status = serde_json::to_value(status).unwrap();
    status["conditions"] = json!(null);
    let expected = json!({"observedGeneration": 2, "replicas": 4, "updatedReplicas": 1, "readyReplicas": 4,
        "availableReplicas": 2, "unavailableReplicas": 2, "terminatingReplicas": 0, "collisionCount": 1,
        "conditions": null});
    assert_eq!(status, expected);
}

#[test]
fn terminating_pods_are_unknown_if_one_set_does_not_count_them() {
    let mut silent = set("web-1", (1, 1, 1, 1));
    silent.status.as_mut().unwrap().terminating_replicas = None;
    assert_eq!(terminating(&[silent.clone(), set("web-2", (1, 1, 1, 1))]), None);
    silent.status.as_mut().unwrap().observed_generation = None;
    assert_eq!(terminating(&[silent, set("web-2", (1, 1, 1, 1))]), Some(0), "not seen yet");
}

#[test]
fn enough_pods_must_be_available() {
    for (available, status, reason) in
        [(3, "True", "MinimumReplicasAvailable"), (2, "False", "MinimumReplicasUnavailable")]
    {
        let (found, _) = rollout(&deployment(&json!({})), &[set("web-2", (3, 3, 3, available))]);
        let conditions = found.conditions.unwrap();
        let found = find(&conditions, AVAILABLE).unwrap();
        assert_eq!((found.status.as_str(), found.reason.as_deref()), (status, Some(reason)));
    }
}

#[test]
fn the_failure_of_the_new_set_is_shown_before_that_of_an_old_one() {
    let failing = |name: &str, message: &str| {
        let mut set = set(name, (1, 0, 0, 0));
        let condition = json!([{"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate",
            "message": message, "lastTransitionTime": START}]);
        set.status.as_mut().unwrap().conditions = serde_json::from_value(condition).unwrap();
        set
    };
    for (sets, expected) in [
        (vec![failing("web-1", "old"), failing("web-2", "new")], Some("new")),
        (vec![failing("web-1", "old"), set("web-2", (1, 1, 1, 1))], Some("old")),
        (vec![set("web-1", (1, 1, 1, 1)), set("web-2", (1, 1, 1, 1))], None),
    ] {
        let before = json!({"conditions": [{"type": "ReplicaFailure", "status": "False"}]});
        let conditions = rollout(&deployment(&before), &sets).0.conditions.unwrap();
        let failure = find(&conditions, REPLICA_FAILURE);
        assert_eq!(failure.and_then(|failure| failure.message.as_deref()), expected);
    }
}

#[test]
fn a_pause_stops_the_clock() {
    let now: Timestamp = NOW.parse().unwrap();
    for (paused, before, expected) in [
        (true, "ReplicaSetUpdated", ("DeploymentPaused", "Unknown")),
        (true, "DeploymentPaused", ("DeploymentPaused", "True")),
        (false, "DeploymentPaused", ("DeploymentResumed", "Unknown")),
        (false, "ReplicaSetUpdated", ("ReplicaSetUpdated", "True")),
        (true, "ProgressDeadlineExceeded", ("ProgressDeadlineExceeded", "True")),
    ] {
        let mut deployment = deployment(&json!({}));
        let spec = deployment.spec.as_mut().unwrap();
        spec.paused = Some(paused);
        let mut conditions = vec![serde_json::from_value(known(before, START)).unwrap()];
        note_pause(&mut conditions, spec, now);
        assert_eq!((conditions[0].reason.as_deref().unwrap(), conditions[0].status.as_str()), expected);
    }
}

#[test]
fn without_a_deadline_progress_is_not_reported() {
    let mut deployment = deployment(&json!({"conditions": [known("ReplicaSetUpdated", START)]}));
    deployment.spec.as_mut().unwrap().progress_deadline_seconds = Some(i32::MAX);
    let (status, after) = rollout(&deployment, &[set("web-2", (3, 1, 0, 0))]);
    assert!(find(&status.conditions.unwrap(), PROGRESSING).is_none());
    assert_eq!(after, None);
}
