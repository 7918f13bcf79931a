//! What is wrong with an object, or with the deepest of those below it.

use super::story::{Evidence, time};
use crate::{
    client::{
        family::owner_of,
        state::{condition, waiting},
    },
    events::last_seen,
};
use serde_json::Value;
use world::Timestamp;

/// A warning that is older than this has passed.
const MAX_WARNING_AGE: i64 = 3600;
/// Conditions that should be true.
const GOOD: [&str; 12] = [
    "Accepted",
    "Available",
    "ContainersReady",
    "Established",
    "Healthy",
    "Initialized",
    "NamesAccepted",
    "PodScheduled",
    "Programmed",
    "Progressing",
    "Ready",
    "Synced",
];
/// Words in the names of conditions that should not be true.
const BAD: [&str; 9] =
    ["Conflict", "Degraded", "Denied", "Fail", "Invalid", "Pressure", "Remaining", "Stalled", "Unavailable"];

/// How much a problem explains: of two at the same depth the larger is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Weight {
    /// It waits for something else.
    Symptom,
    Warning,
    Cause,
}

#[derive(Clone, Debug)]
pub(super) struct Trouble<'a> {
    pub(super) object: &'a Value,
    pub(super) text: String,
    weight: Weight,
}

/// The problem of the deepest object that has one.
pub(super) fn deepest<'a>(evidence: &'a Evidence, now: Timestamp) -> Option<Trouble<'a>> {
    if is_healthy(&evidence.subject) {
        return None;
    }
    let found = evidence.all().filter_map(|object| {
        let (weight, text) = of(object, evidence, now)?;
        let depth = depth(object, evidence);
        Some((depth, Trouble { object, text, weight }))
    });
    // The first of equals.
    let found: Vec<_> = found.collect();
    let most = found.iter().map(|(depth, trouble)| (*depth, trouble.weight)).max()?;
    found.into_iter().find(|(depth, trouble)| (*depth, trouble.weight) == most).map(|(_, trouble)| trouble)
}

/// A workload that has all that it wants, whatever happened on the way.
fn is_healthy(object: &Value) -> bool {
    let Some(wanted) = object["spec"]["replicas"].as_i64() else { return false };
    let status = &object["status"];
    let is_current = status["observedGeneration"].as_i64() >= object["metadata"]["generation"].as_i64();
    let updated = status["updatedReplicas"].as_i64().unwrap_or(wanted);
    let has_bad = status["conditions"].as_array().into_iter().flatten().any(is_bad);
    is_current && !has_bad && updated == wanted && status["readyReplicas"].as_i64().unwrap_or(0) == wanted
}

/// How many owners stand between an object and the subject.
fn depth(object: &Value, evidence: &Evidence) -> usize {
    let mut depth = 0;
    let mut current = object;
    while current["metadata"]["uid"] != evidence.subject["metadata"]["uid"] && depth <= evidence.below.len() {
        depth += 1;
        let Some(owner) = owner_of(current) else { break };
        let Some(next) = evidence.all().find(|object| object["metadata"]["uid"] == owner["uid"]) else {
            break;
        };
        current = next;
    }
    depth
}

fn of(object: &Value, evidence: &Evidence, now: Timestamp) -> Option<(Weight, String)> {
    if object["kind"] == "Pod" {
        if let Some(text) = pod(object) {
            return Some((Weight::Cause, text));
        }
        // A pod that has run to its end, or is ready, has no problem.
        let ready = condition(&object["status"], "Ready").is_some_and(|ready| ready["status"] == "True");
        if ready || object["status"]["phase"] == "Succeeded" {
            return None;
        }
    }
    if let Some(text) = warning(object, evidence, now) {
        return Some((Weight::Warning, text));
    }
    let mut conditions = object["status"]["conditions"].as_array()?.iter();
    conditions.find(|condition| is_bad(condition)).map(|condition| (Weight::Symptom, tell(condition)))
}

/// Why a pod does not run.
fn pod(object: &Value) -> Option<String> {
    let status = &object["status"];
    if let Some((container, reason, message)) = waiting(status) {
        let name = container["name"].as_str().unwrap_or_default();
        let image = container["image"].as_str().unwrap_or_default();
        let pod = object["metadata"]["name"].as_str().unwrap_or_default();
        let ended = &container["lastState"]["terminated"];
        return Some(match reason {
            "ErrImagePull" | "ImagePullBackOff" | "InvalidImageName" | "ErrImageNeverPull" => {
                format!("cannot pull image \"{image}\": {}", first_of(message, reason))
            }
            "CrashLoopBackOff" => format!(
                "has a container that keeps ending: {name}, {}; see `setpoint logs {pod} -c {name} --previous`",
                exit(ended)
            ),
            _ => format!("has a container that cannot start: {name}: {}", joined(reason, message)),
        });
    }
    let scheduled = condition(status, "PodScheduled").filter(|condition| condition["status"] == "False");
    if let Some(message) = scheduled.and_then(|condition| condition["message"].as_str()) {
        return Some(format!("cannot be scheduled: {message}"));
    }
    if status["phase"] == "Succeeded" {
        return None;
    }
    let mut containers = status["containerStatuses"].as_array().into_iter().flatten();
    let failed = containers.find(|container| {
        container["state"]["terminated"]["exitCode"].as_i64().is_some_and(|code| code != 0)
    });
    if let Some(container) = failed {
        let name = container["name"].as_str().unwrap_or_default();
        return Some(format!(
            "has a container that has ended: {name}, {}",
            exit(&container["state"]["terminated"])
        ));
    }
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    (status["phase"] == "Failed")
        .then(|| format!("has failed: {}", joined(&text(&status["reason"]), &text(&status["message"]))))
}

fn exit(terminated: &Value) -> String {
    let code = terminated["exitCode"].as_i64().unwrap_or(0);
    match terminated["reason"].as_str() {
        Some(reason) => format!("exit code {code} ({reason})"),
        None => format!("exit code {code}"),
    }
}

/// The last warning about an object, if it is recent.
fn warning(object: &Value, evidence: &Evidence, now: Timestamp) -> Option<String> {
    let warnings = evidence.events_of(object).filter(|event| event["type"] == "Warning");
    let last = warnings.max_by_key(|event| last_seen(event).map(str::to_owned))?;
    let age = now.duration_since(time(&last_seen(last)?.into())?).as_secs();
    let text = |value: &Value| value.as_str().unwrap_or_default().trim().to_owned();
    (age <= MAX_WARNING_AGE)
        .then(|| format!("has a warning: {}", joined(&text(&last["reason"]), &text(&last["message"]))))
}

pub(super) fn is_bad(condition: &Value) -> bool {
    let name = condition["type"].as_str().unwrap_or_default();
    match condition["status"].as_str() {
        Some("True") => BAD.iter().any(|word| name.contains(word)),
        // A pod that has run to its end is not ready for a good reason.
        Some("False") => GOOD.contains(&name) && condition["reason"] != "PodCompleted",
        Some("Unknown") => GOOD.contains(&name),
        _ => false,
    }
}

fn tell(condition: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let what = format!("has the condition {}={}", text(&condition["type"]), text(&condition["status"]));
    let why = joined(&text(&condition["reason"]), &text(&condition["message"]));
    if why.is_empty() { what } else { format!("{what}: {why}") }
}

fn joined(reason: &str, message: &str) -> String {
    match (reason, message) {
        ("", text) | (text, "") => text.to_owned(),
        (reason, message) => format!("{reason}: {message}"),
    }
}

fn first_of<'a>(text: &'a str, other: &'a str) -> &'a str {
    if text.is_empty() { other } else { text }
}
