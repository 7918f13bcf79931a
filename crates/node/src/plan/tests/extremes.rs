//! Numbers of seconds and of restarts beyond any clock.

use super::*;

#[test]
fn a_pod_with_the_longest_grace_period_is_deleted() {
    for (script, is_gone) in [("", true), ("app: {stopAfter: 20s}", false)] {
        let mut story = Story::new(one(json!({})), script);
        assert_eq!(story.at(10), "Running app=ready");
        story.pod.metadata.deletion_timestamp = Some(Time(Timestamp::MAX));
        story.pod.metadata.deletion_grace_period_seconds = Some(i64::MAX);
        let summary = story.at(11);
        assert_eq!(summary.ends_with("gone"), is_gone, "{summary}");
        assert!(story.at(40).ends_with("gone"));
        let status = story.pod.status.clone().unwrap().container_statuses.unwrap().remove(0);
        let end = status.state.unwrap().terminated.unwrap();
        assert!(end.finished_at >= end.started_at, "{end:?}");
    }
}

#[test]
fn probes_with_the_largest_numbers_are_planned() {
    let probe = json!({
        "initialDelaySeconds": i32::MAX, "periodSeconds": i32::MAX, "failureThreshold": i32::MAX,
        "successThreshold": i32::MAX, "terminationGracePeriodSeconds": i64::MAX, "exec": {"command": ["a"]}});
    for (probes, script) in [
        (json!({"livenessProbe": probe, "readinessProbe": probe}), "app: {unhealthyAfter: 1s}"),
        (
            json!({"startupProbe": probe, "readinessProbe": probe}),
            "app: {neverStarted: true, readyAfter: 99999999999}",
        ),
        (json!({"startupProbe": probe, "livenessProbe": probe}), "app: {unhealthyAfter: 4294967295h}"),
    ] {
        check(one(probes), script, &[(0, "Running app=runs"), (1000, "Running app=runs")]);
    }
}

#[test]
fn statuses_with_the_last_times_and_most_restarts_are_planned() {
    for (policy, finished, restarts) in [
        ("Always", "9999-12-30T22:00:00Z", i32::MAX),
        ("Always", "0000-01-01T00:00:00Z", i32::MIN),
        ("OnFailure", "9999-12-30T22:00:00Z", i32::MIN),
        ("OnFailure", "0000-01-01T00:00:00Z", i32::MAX),
    ] {
        let mut spec = one(json!({"command": ["false"]}));
        spec["restartPolicy"] = json!(policy);
        spec["activeDeadlineSeconds"] = json!(i64::MAX);
        let mut story = Story::new(spec, "");
        let end = json!({"terminated": {"exitCode": 1, "startedAt": "0000-01-01T00:00:00Z", "finishedAt": finished}});
        story.pod.status = serde_json::from_value(json!({
            "startTime": "9999-12-30T22:00:00Z",
            "containerStatuses": [{"name": "app", "image": "", "imageID": "", "ready": false, "state": end,
                "lastState": end, "restartCount": restarts}]}))
        .unwrap();
        for second in [0, 10, 1000] {
            let summary = story.at(second);
            assert!(summary.contains("app="), "{summary}");
        }
    }
}

#[test]
fn hooks_and_starts_may_take_for_ever() {
    let hook = json!({"sleep": {"seconds": i64::MAX}});
    let endless = json!({"exec": {"command": ["sh", "-c", "while true; do sleep 9; done"]}});
    for hook in [hook, endless] {
        let container = json!({"lifecycle": {"postStart": hook, "preStop": hook}});
        check(
            one(container),
            "",
            &[(0, "Pending app=ContainerCreating"), (1000, "Pending app=ContainerCreating")],
        );
        let mut story =
            Story::new(one(json!({"lifecycle": {"preStop": hook}})), "app: {stopAfter: 4294967295h}");
        assert_eq!(story.at(1), "Running app=ready");
        story.delete(2, 30);
        assert_eq!(story.at(31), "Running app=ready");
        assert_eq!(story.at(33), "Failed app=Error(137) gone");
    }
}
