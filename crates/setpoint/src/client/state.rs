//! The state of an object in a few words, whatever its kind.

use serde_json::Value;

/// Conditions that tell how an object is, the most telling first.
const TELLING: [&str; 8] =
    ["Failed", "Complete", "Ready", "Available", "Established", "Synced", "Bound", "Accepted"];

/// `Running 1/1`, `Available 2/3`, `ImagePullBackOff`; empty if the object has none.
pub(crate) fn state(object: &Value) -> String {
    if object["metadata"]["deletionTimestamp"].is_string() {
        return "Terminating".to_owned();
    }
    let status = &object["status"];
    match object["kind"].as_str().unwrap_or_default() {
        "Pod" => pod(status),
        "Deployment" | "ReplicaSet" | "StatefulSet" | "ReplicationController" => {
            let wanted = object["spec"]["replicas"].as_i64().unwrap_or(1);
            format!("{}/{wanted} ready", status["readyReplicas"].as_i64().unwrap_or(0))
        }
        "DaemonSet" => {
            let [ready, wanted] =
                ["numberReady", "desiredNumberScheduled"].map(|field| status[field].as_i64().unwrap_or(0));
            format!("{ready}/{wanted} ready")
        }
        "Job" => job(object),
        _ => general(status),
    }
}

fn pod(status: &Value) -> String {
    if let Some((_, reason, _)) = waiting(status) {
        return reason.to_owned();
    }
    let phase = status["phase"].as_str().unwrap_or("Unknown");
    let unscheduled = condition(status, "PodScheduled").filter(|condition| condition["status"] == "False");
    if let Some(reason) = unscheduled.and_then(|condition| condition["reason"].as_str()) {
        return format!("{phase} ({reason})");
    }
    let containers = status["containerStatuses"].as_array().map(Vec::as_slice).unwrap_or_default();
    let ready = containers.iter().filter(|container| container["ready"] == true).count();
    match phase {
        "Running" => format!("Running {ready}/{}", containers.len()),
        _ => status["reason"].as_str().unwrap_or(phase).to_owned(),
    }
}

/// A container that cannot start: its status, the reason and the message.
pub(crate) fn waiting(status: &Value) -> Option<(&Value, &str, &str)> {
    let all = ["initContainerStatuses", "containerStatuses"];
    let mut containers = all.iter().flat_map(|field| status[*field].as_array().into_iter().flatten());
    containers.find_map(|container| {
        let waiting = &container["state"]["waiting"];
        let reason = waiting["reason"].as_str()?;
        // These pass by themselves.
        let is_usual = matches!(reason, "ContainerCreating" | "PodInitializing");
        (!is_usual).then(|| (container, reason, waiting["message"].as_str().unwrap_or_default()))
    })
}

fn job(object: &Value) -> String {
    let status = &object["status"];
    for name in ["Failed", "Complete", "Suspended"] {
        if condition(status, name).is_some_and(|condition| condition["status"] == "True") {
            return name.to_owned();
        }
    }
    let wanted = object["spec"]["completions"].as_i64().unwrap_or(1);
    format!("{}/{wanted} done", status["succeeded"].as_i64().unwrap_or(0))
}

fn general(status: &Value) -> String {
    for name in TELLING {
        let Some(condition) = condition(status, name) else { continue };
        let is_true = condition["status"] == "True";
        // Only a failure that has happened tells something.
        if matches!(name, "Failed" | "Complete") && !is_true {
            continue;
        }
        if is_true {
            return name.to_owned();
        }
        return match condition["reason"].as_str() {
            Some(reason) if !reason.is_empty() => format!("Not{name} ({reason})"),
            _ => format!("Not{name}"),
        };
    }
    status["phase"].as_str().unwrap_or_default().to_owned()
}

pub(crate) fn condition<'a>(status: &'a Value, name: &str) -> Option<&'a Value> {
    status["conditions"].as_array()?.iter().find(|condition| condition["type"] == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_kind_has_a_state_in_a_few_words() {
        for (object, expected) in [
            (
                json!({"kind": "Pod", "status": {"phase": "Running", "containerStatuses": [{"ready": true}, {"ready": false}]}}),
                "Running 1/2",
            ),
            (
                json!({"kind": "Pod", "status": {"phase": "Pending", "containerStatuses": [
                    {"state": {"waiting": {"reason": "ErrImagePull"}}}]}}),
                "ErrImagePull",
            ),
            (
                json!({"kind": "Pod", "status": {"phase": "Pending", "conditions": [
                    {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]}}),
                "Pending (Unschedulable)",
            ),
            (json!({"kind": "Pod", "status": {"phase": "Failed", "reason": "Evicted"}}), "Evicted"),
            (
                json!({"kind": "Deployment", "spec": {"replicas": 3}, "status": {"readyReplicas": 1}}),
                "1/3 ready",
            ),
            (
                json!({"kind": "DaemonSet", "status": {"numberReady": 1, "desiredNumberScheduled": 2}}),
                "1/2 ready",
            ),
            (json!({"kind": "Job", "spec": {"completions": 2}, "status": {"succeeded": 1}}), "1/2 done"),
            (
                json!({"kind": "Job", "status": {"conditions": [{"type": "Failed", "status": "True"}]}}),
                "Failed",
            ),
            (
                json!({"kind": "Disk", "status": {"conditions": [{"type": "Ready", "status": "True"}]}}),
                "Ready",
            ),
            (
                json!({"kind": "Disk", "status": {"conditions": [{"type": "Ready", "status": "False", "reason": "Full"}]}}),
                "NotReady (Full)",
            ),
            (json!({"kind": "Namespace", "status": {"phase": "Active"}}), "Active"),
            (json!({"kind": "ConfigMap"}), ""),
            (json!({"kind": "Disk", "metadata": {"deletionTimestamp": "t"}}), "Terminating"),
        ] {
            assert_eq!(state(&object), expected, "{object}");
        }
    }
}
