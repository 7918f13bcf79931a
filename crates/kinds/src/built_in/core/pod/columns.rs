//! What `kubectl get` shows of a pod: how many containers are ready, how often they were restarted, and the one word that says how it goes.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::cells::age::age;
use crate::cells::column::{AGE, Cell, NAME, TableColumn, string};
use crate::cells::row::{NONE, Row, holds, instant, items, number, or, text};

pub(super) const COLUMNS: &[TableColumn] = &[
    NAME,
    string("Ready", Cell::Computed(|it| format!("{}/{}", Story::of(it).ready, total(it)).into())),
    string("Status", Cell::Computed(|it| status(it).into())),
    string("Restarts", Cell::Computed(|it| restarts(it).into())),
    AGE,
    string("IP", Cell::Computed(|it| it.text_or("/status/podIPs/0/ip", NONE).into())).wide(),
    string("Node", Cell::Computed(|it| it.text_or("/spec/nodeName", NONE).into())).wide(),
    string("Nominated Node", Cell::Computed(|it| it.text_or("/status/nominatedNodeName", NONE).into()))
        .wide(),
    string("Readiness Gates", Cell::Computed(|it| readiness_gates(it).into())).wide(),
];

/// A pod that has run to its end is hidden by some clients.
pub(super) fn row_conditions(pod: &Value) -> Vec<Value> {
    let (reason, message) = match pod["status"]["phase"].as_str() {
        Some("Succeeded") => ("Succeeded", "The pod has completed successfully."),
        Some("Failed") => ("Failed", "The pod failed."),
        _ => return Vec::new(),
    };
    vec![json!({ "type": "Completed", "status": "True", "reason": reason, "message": message })]
}

/// What the container statuses add up to.
#[derive(Default)]
struct Story {
    reason: String,
    ready: usize,
    restarts: i64,
    last_restart: Option<Timestamp>,
}

impl Story {
    fn of(pod: &Row<'_>) -> Self {
        let reason = or(pod.text("/status/reason"), pod.text("/status/phase"));
        let scheduling = items(pod.at("/status/conditions")).iter().find(|condition| {
            condition["type"] == "PodScheduled" && condition["reason"] == "SchedulingGated"
        });
        let reason = if scheduling.is_some() { "SchedulingGated" } else { reason };
        let mut story = Story { reason: reason.to_owned(), ..Story::default() };
        let mut sidecars = Story::default();
        let initializing = story.initialize(pod, &mut sidecars);
        if !initializing || holds(pod.at("/status/conditions"), "Initialized") {
            (story.restarts, story.last_restart) = (sidecars.restarts, sidecars.last_restart);
            story.run(pod);
        }
        story
    }

    /// Goes through the init containers up to the one that holds the pod up, and says whether there is one.
    fn initialize(&mut self, pod: &Row<'_>, sidecars: &mut Story) -> bool {
        for (index, container) in pod.items("/status/initContainerStatuses").iter().enumerate() {
            self.count_restarts(container);
            let is_sidecar = is_sidecar(pod, text(&container["name"]));
            if is_sidecar {
                sidecars.count_restarts(container);
            }
            let terminated = &container["state"]["terminated"];
            let waiting = text(&container["state"]["waiting"]["reason"]);
            if terminated.is_object() && number(&terminated["exitCode"]) == 0 {
                continue;
            }
            if is_sidecar && container["started"] == true {
                self.ready += usize::from(container["ready"] == true);
                continue;
            }
            self.reason = if terminated.is_object() {
                format!("Init:{}", end_of(terminated))
            } else if !waiting.is_empty() && waiting != "PodInitializing" {
                format!("Init:{waiting}")
            } else {
                format!("Init:{index}/{}", pod.count("/spec/initContainers"))
            };
            return true;
        }
        false
    }

    /// Goes through the containers from the last to the first, which has the last word.
    fn run(&mut self, pod: &Row<'_>) {
        let (mut is_running, mut failure) = (false, None);
        for container in pod.items("/status/containerStatuses").iter().rev() {
            self.count_restarts(container);
            let state = &container["state"];
            let waiting = text(&state["waiting"]["reason"]);
            if !waiting.is_empty() {
                self.reason = waiting.to_owned();
            } else if state["terminated"].is_object() {
                self.reason = end_of(&state["terminated"]);
                if number(&state["terminated"]["exitCode"]) != 0 {
                    failure = Some(self.reason.clone());
                }
            } else if container["ready"] == true && state["running"].is_object() {
                is_running = true;
                self.ready += 1;
            }
        }
        if self.reason == "Completed" {
            if is_running && holds(pod.at("/status/conditions"), "Ready") {
                self.reason = "Running".to_owned();
            } else if let Some(failure) = failure {
                self.reason = failure;
            } else if is_running {
                self.reason = "NotReady".to_owned();
            }
        }
    }

    fn count_restarts(&mut self, container: &Value) {
        self.restarts += number(&container["restartCount"]);
        let last = instant(&container["lastState"]["terminated"]["finishedAt"]);
        self.last_restart = self.last_restart.max(last);
    }
}

/// `Error`, or whatever else the container's end is known by.
fn end_of(terminated: &Value) -> String {
    let (reason, signal) = (text(&terminated["reason"]), number(&terminated["signal"]));
    match reason {
        "" if signal != 0 => format!("Signal:{signal}"),
        "" => format!("ExitCode:{}", number(&terminated["exitCode"])),
        reason => reason.to_owned(),
    }
}

fn restarts(pod: &Row<'_>) -> String {
    let story = Story::of(pod);
    match story.last_restart {
        Some(last) if story.restarts != 0 => format!("{} ({} ago)", story.restarts, age(last, pod.now)),
        _ => story.restarts.to_string(),
    }
}

fn status(pod: &Row<'_>) -> String {
    let has_ended = matches!(pod.text("/status/phase"), "Succeeded" | "Failed");
    match pod.is_deleting() {
        true if pod.text("/status/reason") == "NodeLost" => "Unknown".to_owned(),
        true if !has_ended => "Terminating".to_owned(),
        _ => Story::of(pod).reason,
    }
}

/// Containers, and init containers that keep running beside them.
fn total(pod: &Row<'_>) -> usize {
    let sidecars = pod.items("/spec/initContainers").iter().filter(|it| it["restartPolicy"] == "Always");
    pod.count("/spec/containers") + sidecars.count()
}

fn is_sidecar(pod: &Row<'_>, name: &str) -> bool {
    let mut containers = pod.items("/spec/initContainers").iter();
    containers.any(|container| container["name"] == name && container["restartPolicy"] == "Always")
}

fn readiness_gates(pod: &Row<'_>) -> String {
    let gates = pod.items("/spec/readinessGates");
    if gates.is_empty() {
        return NONE.to_owned();
    }
    let conditions = pod.at("/status/conditions");
    let open = gates.iter().filter(|gate| holds(conditions, text(&gate["conditionType"])));
    format!("{}/{}", open.count(), gates.len())
}
