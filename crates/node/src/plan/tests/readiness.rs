//! Probes, readiness gates, missing objects, restart rules and a new process.

use super::*;

#[test]
fn probes_decide_when_a_container_is_started_ready_and_alive() {
    let probes = json!({
        "startupProbe": {"initialDelaySeconds": 5, "periodSeconds": 1},
        "readinessProbe": {"initialDelaySeconds": 2, "periodSeconds": 3, "successThreshold": 2},
        "livenessProbe": {"periodSeconds": 10, "failureThreshold": 3, "httpGet": {"port": 80}}});
    let story = check(
        one(probes),
        "app: {unhealthyAfter: 60s}",
        &[
            (4, "Running app=runs"),
            (5, "Running app=runs"),
            (8, "Running app=ready"),
            (79, "Running app=ready"),
            (80, "Running app=runs/1"),
        ],
    );
    let texts = [
        "Unhealthy Liveness probe failed: HTTP probe failed with statuscode: 503",
        "Killing Container app failed liveness probe, will be restarted",
    ];
    assert!(texts.iter().all(|text| story.events.iter().any(|it| it == text)), "{:?}", story.events);
    let never_started = json!({"startupProbe": {"periodSeconds": 10, "failureThreshold": 2}});
    check(
        one(never_started),
        "app: {neverStarted: true}",
        &[(9, "Running app=runs"), (10, "Running app=runs/1")],
    );
    let story =
        check(one(json!({"readinessProbe": {}})), "app: {neverReady: true}", &[(99, "Running app=runs")]);
    assert_eq!(story.events.last().map(String::as_str), Some("Unhealthy Readiness probe failed: "));
    check(one(json!({})), "app: {readyAfter: 7}", &[(6, "Running app=runs"), (7, "Running app=ready")]);
    check(
        one(json!({})),
        "app: {startAfter: 7}",
        &[(6, "Pending app=ContainerCreating"), (7, "Running app=ready")],
    );
}

#[test]
fn a_probe_whose_command_can_only_fail_fails() {
    let probe = |kind: &str, command: &[&str]| one(json!({kind: {"exec": {"command": command}}}));
    let story = check(probe("readinessProbe", &["/bin/false"]), "", &[(99, "Running app=runs")]);
    assert_eq!(story.events.last().map(String::as_str), Some("Unhealthy Readiness probe failed: "));
    check(probe("readinessProbe", &["true"]), "", &[(0, "Running app=ready")]);
    // What it depends on is unknown.
    check(probe("readinessProbe", &["cat", "/tmp/healthy"]), "", &[(0, "Running app=ready")]);
    check(probe("readinessProbe", &["sh", "-c", "exit $((RANDOM + 1))"]), "", &[(0, "Running app=ready")]);
    let script = "app: {exec: {cat /tmp/healthy: {exitCode: 1}}}";
    check(probe("readinessProbe", &["cat", "/tmp/healthy"]), script, &[(99, "Running app=runs")]);
    check(
        probe("livenessProbe", &["sh", "-c", "exit 1"]),
        "",
        &[(19, "Running app=ready"), (20, "Running app=ready/1")],
    );
    check(probe("startupProbe", &["false"]), "", &[(19, "Running app=runs"), (20, "Running app=runs/1")]);
}

#[test]
fn readiness_gates_keep_a_pod_unready() {
    let mut spec = one(json!({}));
    spec["readinessGates"] = json!([{"conditionType": "example.com/lb"}]);
    let mut story = check(spec, "", &[(0, "Running app=ready")]);
    let expected = "False ReadinessGatesNotReady corresponding condition of pod readiness gate \"example.com/lb\" does not exist.";
    assert_eq!(story.condition("Ready"), expected);
    let gate =
        PodStatusCondition { type_: "example.com/lb".into(), status: "True".into(), ..Default::default() };
    story.pod.status.as_mut().unwrap().conditions.as_mut().unwrap().push(gate);
    story.at(1);
    assert_eq!(story.condition("Ready"), "True");
    assert_eq!(story.condition("example.com/lb"), "True");
}

use k8s_openapi::api::core::v1::PodCondition as PodStatusCondition;

#[test]
fn what_is_missing_keeps_a_pod_from_starting() {
    let mut story = Story::new(one(json!({})), "");
    let message = "MountVolume.SetUp failed for volume \"v\" : configmap \"c\" not found";
    story.obstacles = vec![Obstacle::Volume { message: message.to_owned() }];
    assert_eq!(story.at(0), "Pending app=ContainerCreating");
    assert_eq!(story.at(9), "Pending app=ContainerCreating");
    assert_eq!(story.condition("PodReadyToStartContainers"), "False");
    assert_eq!(story.pod.status.as_ref().unwrap().pod_ip, None);
    assert_eq!(story.events, [format!("FailedMount {message}")]);
    let message = "secret \"s\" not found".to_owned();
    story.obstacles = vec![Obstacle::Environment { container: "app".to_owned(), message }];
    assert_eq!(story.at(10), "Pending app=CreateContainerConfigError");
    story.obstacles = Vec::new();
    assert_eq!(story.at(11), "Running app=ready");
    check(one(json!({})), "app: {what: 1}", &[(0, "Pending app=CreateContainerConfigError")]);
}

#[test]
fn a_rule_restarts_all_containers() {
    let rules = json!([{"action": "RestartAllContainers", "exitCodes": {"operator": "In", "values": [88]}}]);
    let spec = json!({
        "restartPolicy": "Never",
        "initContainers": [{"name": "init", "image": "busybox", "command": ["sleep", "2"]}],
        "containers": [
            {"name": "app", "image": "x", "restartPolicy": "Never", "restartPolicyRules": rules},
            {"name": "other", "image": "nginx"}]});
    check(
        spec,
        "app: {exitCode: 88, after: 5s, times: 1}",
        &[
            (2, "Running init=Completed(0) app=ready other=ready"),
            (7, "Pending init=runs/1 app=RestartingAllContainers other=RestartingAllContainers"),
            (9, "Running init=Completed(0)/1 app=Completed(0)/1 other=ready/1"),
        ],
    );
}

#[test]
fn a_new_process_goes_on_where_the_old_one_has_ended() {
    let mut story =
        check(one(json!({})), "app: {crashLoop: true}", &[(13, "Running app=CrashLoopBackOff/2")]);
    story.memory = Memory::default();
    assert_eq!(story.at(32), "Running app=CrashLoopBackOff/2");
    assert_eq!(story.at(33), "Running app=ready/3");
}
