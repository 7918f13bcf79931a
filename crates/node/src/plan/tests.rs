//! Stories of pods, told second by second.

mod extremes;
mod readiness;

use super::*;
use crate::{budget::FULL, script::SCRIPT};
use jiff::SignedDuration;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::{Value, json};

/// A pod on a node, and the time.
struct Story {
    pod: Pod,
    start: Timestamp,
    now: Timestamp,
    memory: Memory,
    obstacles: Vec<Obstacle>,
    events: Vec<String>,
    wake: Option<Timestamp>,
    is_gone: bool,
}

impl Story {
    fn new(spec: Value, script: &str) -> Story {
        let start: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        let pod = json!({
            "metadata": {"name": "web", "namespace": "default", "uid": "u", "generation": 1,
                         "annotations": {SCRIPT: script}},
            "spec": spec});
        let mut pod: Pod = serde_json::from_value(pod).unwrap();
        if script.is_empty() {
            pod.metadata.annotations = None;
        }
        let (memory, obstacles, events) = (Memory::default(), Vec::new(), Vec::new());
        // A kubelet sees the pod at once.
        Story { pod, start, now: start, memory, obstacles, events, wake: Some(start), is_gone: false }
    }

    /// Plans at this second, after everything that was due before, and returns what `kubectl` would show.
    fn at(&mut self, second: i64) -> String {
        let end = self.start + SignedDuration::from_secs(second);
        while let Some(wake) = self.wake.filter(|wake| *wake < end) {
            self.now = wake;
            self.plan();
        }
        self.now = end;
        self.plan();
        let settled = self.pod.status.clone();
        self.plan();
        assert_eq!(self.pod.status, settled, "a second plan at the same moment changes nothing");
        self.summary()
    }

    fn plan(&mut self) {
        let place = Place {
            host_ip: "172.18.0.2".into(),
            pod_ip: "10.244.0.2".into(),
            images: BTreeSet::default(),
            files: Arc::default(),
        };
        let simulation = Simulation::new(&self.pod, FULL);
        let input = Input {
            simulation: &simulation,
            place: &place,
            obstacles: &self.obstacles,
            pending_resize: None,
            memory: std::mem::take(&mut self.memory),
            now: self.now,
        };
        let plan = plan(input);
        assert!(
            plan.wake.is_none_or(|wake| wake > self.now),
            "{:?} is not later than {}",
            plan.wake,
            self.now
        );
        let told = plan.events.iter().map(|it| format!("{} {}", it.reason, it.message));
        self.events.extend(told);
        (self.memory, self.wake, self.is_gone) = (plan.memory, plan.wake, plan.is_gone);
        // As it comes back from a server.
        let status = serde_json::to_value(plan.status).unwrap();
        self.pod.status = Some(serde_json::from_value(status).unwrap());
    }

    fn delete(&mut self, second: i64, grace: i64) {
        let at = self.start + SignedDuration::from_secs(second + grace);
        self.pod.metadata.deletion_timestamp = Some(Time(at));
        self.pod.metadata.deletion_grace_period_seconds = Some(grace);
    }

    fn summary(&self) -> String {
        let status = self.pod.status.as_ref().unwrap();
        let all = status.init_container_statuses.iter().chain(&status.container_statuses).flatten();
        let containers = all.map(|it| {
            let state = it.state.as_ref().unwrap();
            let text = match (&state.waiting, &state.running, &state.terminated) {
                (Some(waiting), _, _) => waiting.reason.clone().unwrap(),
                (_, Some(_), _) if it.ready => "ready".to_owned(),
                (_, Some(_), _) => "runs".to_owned(),
                (_, _, Some(end)) => format!("{}({})", end.reason.as_deref().unwrap(), end.exit_code),
                _ => "none".to_owned(),
            };
            let restarts =
                if it.restart_count > 0 { format!("/{}", it.restart_count) } else { String::new() };
            format!(" {}={text}{restarts}", it.name)
        });
        let gone = if self.is_gone { " gone" } else { "" };
        let reason = status.reason.as_ref().map(|reason| format!(" {reason}")).unwrap_or_default();
        format!("{}{reason}{}{gone}", status.phase.as_deref().unwrap(), containers.collect::<String>())
    }

    fn condition(&self, name: &str) -> String {
        let all = self.pod.status.as_ref().unwrap().conditions.as_ref().unwrap();
        let found = all.iter().find(|it| it.type_ == name).unwrap();
        let [reason, message] = [&found.reason, &found.message].map(|it| it.as_deref().unwrap_or_default());
        format!("{} {reason} {message}", found.status).trim_end().to_owned()
    }
}

fn check(spec: Value, script: &str, expected: &[(i64, &str)]) -> Story {
    let mut story = Story::new(spec, script);
    for (second, summary) in expected {
        assert_eq!(story.at(*second), *summary, "after {second} seconds");
    }
    story
}

fn one(container: Value) -> Value {
    let mut container = container;
    container["name"] = json!("app");
    container["image"] = container.get("image").cloned().unwrap_or(json!("nginx"));
    json!({"containers": [container], "restartPolicy": "Always"})
}

fn job(command: &[&str], policy: &str) -> Value {
    json!({"containers": [{"name": "app", "image": "busybox", "command": command}], "restartPolicy": policy})
}

#[test]
fn a_server_runs_and_is_ready_at_once() {
    let story = check(one(json!({})), "", &[(0, "Running app=ready"), (3600, "Running app=ready")]);
    assert_eq!(story.wake, None);
    let status = story.pod.status.as_ref().unwrap();
    assert_eq!(status.pod_ip.as_deref(), Some("10.244.0.2"));
    assert_eq!(status.host_ip.as_deref(), Some("172.18.0.2"));
    assert_eq!(status.start_time.as_ref().unwrap().0, story.start);
    let conditions = status.conditions.as_ref().unwrap();
    let names: Vec<_> = conditions.iter().map(|it| format!("{}={}", it.type_, it.status)).collect();
    let expected = ["PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled"];
    assert_eq!(names, expected.map(|name| format!("{name}=True")));
    let container = &status.container_statuses.as_ref().unwrap()[0];
    assert_eq!(container.image, "docker.io/library/nginx:latest");
    assert!(container.container_id.as_ref().unwrap().starts_with("containerd://"));
    let bytes = crate::image::bytes("nginx");
    assert_eq!(
        story.events,
        [
            "Pulling Pulling image \"nginx\"".to_owned(),
            format!(
                "Pulled Successfully pulled image \"nginx\" in 0s (0s including waiting). Image size: {bytes} bytes."
            ),
            "Created Container created".to_owned(),
            "Started Container started".to_owned(),
        ]
    );
}

#[test]
fn a_job_ends_as_its_command_does() {
    let never = |command: &[&str]| job(command, "Never");
    let story = check(never(&["true"]), "", &[(0, "Succeeded app=Completed(0)")]);
    assert_eq!(story.condition("Ready"), "False PodCompleted");
    assert_eq!(story.condition("Initialized"), "True PodCompleted");
    assert_eq!(story.condition("PodReadyToStartContainers"), "False");
    let story = check(never(&["sh", "-c", "exit 3"]), "", &[(0, "Failed app=Error(3)")]);
    assert_eq!(story.condition("ContainersReady"), "False PodFailed");
    check(
        never(&["sleep", "5"]),
        "",
        &[(0, "Running app=ready"), (4, "Running app=ready"), (5, "Succeeded app=Completed(0)")],
    );
    check(
        job(&["false"], "OnFailure"),
        "",
        &[(0, "Running app=CrashLoopBackOff/1"), (10, "Running app=CrashLoopBackOff/2")],
    );
}

#[test]
fn a_container_that_crashes_is_restarted_ever_later() {
    let mut story = check(
        one(json!({})),
        "app: {crashLoop: true}",
        &[
            (0, "Running app=ready"),
            (1, "Running app=ready/1"),
            (2, "Running app=CrashLoopBackOff/1"),
            (11, "Running app=CrashLoopBackOff/1"),
            (12, "Running app=ready/2"),
            (13, "Running app=CrashLoopBackOff/2"),
            (33, "Running app=ready/3"),
            (34, "Running app=CrashLoopBackOff/3"),
        ],
    );
    let status = story.pod.status.clone().unwrap().container_statuses.unwrap().remove(0);
    let waiting = status.state.unwrap().waiting.unwrap();
    let message = "back-off 40s restarting failed container=app pod=web_default(u)";
    assert_eq!(waiting.message.as_deref(), Some(message));
    assert_eq!(status.last_state.unwrap().terminated.unwrap().exit_code, 1);
    assert_eq!(story.condition("Ready"), "False ContainersNotReady containers with unready status: [app]");
    let back_off = "BackOff Back-off restarting failed container app in pod web_default(u)";
    assert!(story.events.iter().any(|it| it == back_off), "{:?}", story.events);
    // 40 s, 80 s, 160 s, then always 300 s.
    assert_eq!(story.at(74), "Running app=ready/4");
    assert_eq!(story.at(75 + 80 + 1 + 160 + 1 + 300), "Running app=ready/7");
}

#[test]
fn the_back_off_starts_anew_after_ten_minutes_without_a_crash() {
    check(
        one(json!({})),
        "app: {exitCode: 1, after: 15m}",
        &[(900, "Running app=ready/1"), (1800, "Running app=ready/2"), (2700, "Running app=ready/3")],
    );
}

#[test]
fn init_containers_run_in_order_and_sidecars_stay() {
    let spec = json!({
        "restartPolicy": "Always",
        "initContainers": [
            {"name": "first", "image": "busybox", "command": ["sleep", "2"]},
            {"name": "proxy", "image": "envoy", "restartPolicy": "Always",
             "startupProbe": {"initialDelaySeconds": 3}},
            {"name": "last", "image": "busybox", "command": ["sleep", "1"]}],
        "containers": [{"name": "app", "image": "nginx"}]});
    let waits = "PodInitializing";
    let mut story = check(
        spec,
        "",
        &[
            (
                0,
                &format!("Pending first=ready proxy={waits} last={waits} app={waits}")
                    .replace("first=ready", "first=runs"),
            ),
            (2, &format!("Pending first=Completed(0) proxy=runs last={waits} app={waits}")),
            (5, &format!("Pending first=Completed(0) proxy=ready last=runs app={waits}")),
            (6, "Running first=Completed(0) proxy=ready last=Completed(0) app=ready"),
        ],
    );
    assert_eq!(story.condition("Initialized"), "True");
    story.delete(10, 30);
    assert_eq!(
        story.at(10),
        "Succeeded first=Completed(0) proxy=Completed(0) last=Completed(0) app=Completed(0) gone"
    );
}

#[test]
fn an_init_container_that_fails_blocks_or_fails_the_pod() {
    let spec = |policy: &str| {
        json!({
            "restartPolicy": policy,
            "initContainers": [{"name": "init", "image": "busybox", "command": ["false"]}],
            "containers": [{"name": "app", "image": "nginx"}]})
    };
    check(spec("Never"), "", &[(0, "Failed init=Error(1) app=PodInitializing")]);
    let story = check(spec("Always"), "", &[(0, "Pending init=CrashLoopBackOff/1 app=PodInitializing")]);
    let expected = "False ContainersNotInitialized containers with incomplete status: [init]";
    assert_eq!(story.condition("Initialized"), expected);
}

#[test]
fn a_job_with_a_sidecar_ends_when_its_own_containers_have() {
    let spec = json!({
        "restartPolicy": "Never",
        "initContainers": [{"name": "proxy", "image": "envoy", "restartPolicy": "Always"}],
        "containers": [{"name": "app", "image": "busybox", "command": ["sleep", "5"]}]});
    check(
        spec,
        "proxy: {stopAfter: 2s}",
        &[
            (0, "Running proxy=ready app=ready"),
            (5, "Running proxy=ready app=Completed(0)"),
            (7, "Succeeded proxy=Completed(0) app=Completed(0)"),
        ],
    );
}

#[test]
fn an_image_that_cannot_be_pulled_is_tried_again() {
    let mut story = check(
        one(json!({"image": "nginx:404"})),
        "",
        &[
            (0, "Pending app=ErrImagePull"),
            (1, "Pending app=ImagePullBackOff"),
            (10, "Pending app=ErrImagePull"),
            (29, "Pending app=ImagePullBackOff"),
            (30, "Pending app=ErrImagePull"),
        ],
    );
    let name = "docker.io/library/nginx:404";
    let cause = format!(
        "rpc error: code = NotFound desc = failed to pull and unpack image \"{name}\": failed to resolve reference \
         \"{name}\": {name}: not found"
    );
    assert_eq!(
        story.events[..5],
        [
            "Pulling Pulling image \"nginx:404\"".to_owned(),
            format!("Failed Failed to pull image \"nginx:404\": {cause}"),
            "Failed Error: ErrImagePull".to_owned(),
            "BackOff Back-off pulling image \"nginx:404\"".to_owned(),
            "Failed Error: ImagePullBackOff".to_owned(),
        ]
    );
    assert_eq!(story.at(39), "Pending app=ImagePullBackOff");
    story.delete(40, 30);
    assert_eq!(story.at(40), "Failed app=ImagePullBackOff gone");
    check(one(json!({"image": "Nginx"})), "", &[(0, "Pending app=InvalidImageName")]);
}

#[test]
fn a_deleted_pod_stops_gracefully_and_then_goes() {
    let mut quick = check(one(json!({})), "", &[(0, "Running app=ready")]);
    quick.delete(5, 30);
    assert_eq!(quick.at(5), "Succeeded app=Completed(0) gone");
    assert_eq!(quick.events.last().map(String::as_str), Some("Killing Stopping container app"));

    let hook = json!({"lifecycle": {"preStop": {"sleep": {"seconds": 4}}}});
    let mut slow = check(one(hook), "app: {stopAfter: 3s, stopCode: 2}", &[(0, "Running app=ready")]);
    slow.delete(5, 30);
    assert_eq!(slow.at(5), "Running app=ready");
    assert_eq!(slow.at(11), "Running app=ready");
    assert_eq!(slow.at(12), "Failed app=Error(2) gone");

    let mut stubborn = check(one(json!({})), "app: {stopAfter: 1h}", &[(0, "Running app=ready")]);
    stubborn.delete(5, 30);
    assert_eq!(stubborn.at(34), "Running app=ready");
    assert_eq!(stubborn.at(35), "Failed app=Error(137) gone");

    let mut crashing = check(one(json!({})), "app: {exitCode: 1}", &[(0, "Running app=CrashLoopBackOff/1")]);
    crashing.delete(5, 30);
    assert_eq!(crashing.at(5), "Failed app=Error(1)/1 gone");
}

#[test]
fn a_pod_has_a_deadline() {
    let mut spec = one(json!({}));
    spec["activeDeadlineSeconds"] = json!(60);
    let story =
        check(spec, "", &[(59, "Running app=ready"), (60, "Failed DeadlineExceeded app=Completed(0)")]);
    let status = story.pod.status.as_ref().unwrap();
    let message = "Pod was active on the node longer than the specified deadline";
    assert_eq!(status.message.as_deref(), Some(message));
    assert!(story.events.contains(&format!("DeadlineExceeded {message}")));
}
