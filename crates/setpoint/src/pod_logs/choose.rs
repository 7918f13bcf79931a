//! Which pods of an owner and which containers of a pod `logs` reads.

use crate::client::{
    failure::{ClientError, ClientResult},
    note,
};
use serde_json::Value;

const DEFAULT_CONTAINER: &str = "kubectl.kubernetes.io/default-container";

/// The names of the containers to read: the one that is wanted, all, or the first.
pub(super) fn containers(pod: &Value, wanted: Option<&str>, all: bool) -> ClientResult<Vec<String>> {
    let names = |field: &str| {
        let containers = pod["spec"][field].as_array().into_iter().flatten();
        containers.filter_map(|container| container["name"].as_str().map(str::to_owned)).collect::<Vec<_>>()
    };
    let ordinary = names("containers");
    let known = [names("initContainers"), ordinary.clone(), names("ephemeralContainers")].concat();
    let pod_name = pod["metadata"]["name"].as_str().unwrap_or_default();
    if all {
        return Ok(known);
    }
    if let Some(wanted) = wanted {
        return if known.iter().any(|name| name == wanted) {
            Ok(vec![wanted.to_owned()])
        } else {
            Err(ClientError::error(format!(
                "container {wanted} is not valid for pod {pod_name}: it has {}",
                known.join(", ")
            )))
        };
    }
    let annotated = pod["metadata"]["annotations"][DEFAULT_CONTAINER].as_str().map(str::to_owned);
    if let Some(name) = annotated.filter(|name| known.contains(name)) {
        return Ok(vec![name]);
    }
    let Some(first) = ordinary.first() else {
        return Err(ClientError::error(format!("pod {pod_name} has no containers")));
    };
    if known.len() > 1 {
        // Kubernetes: ordinary containers first, the others with what they are.
        let mut described = ordinary.clone();
        described.extend(names("initContainers").iter().map(|name| format!("{name} (init)")));
        described.extend(names("ephemeralContainers").iter().map(|name| format!("{name} (ephem)")));
        note(&format!("Defaulted container \"{first}\" out of: {}", described.join(", ")));
    }
    Ok(vec![first.clone()])
}

/// The label selector of a workload or service, as text.
pub(super) fn selector(object: &Value) -> Option<String> {
    let selector = object["spec"]["selector"].as_object().filter(|selector| !selector.is_empty())?;
    let is_plain = selector.values().all(Value::is_string);
    let labels =
        if is_plain { Some(selector) } else { selector.get("matchLabels").and_then(Value::as_object) };
    let mut terms: Vec<String> = labels
        .into_iter()
        .flatten()
        .map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()))
        .collect();
    let expressions = object["spec"]["selector"]["matchExpressions"].as_array();
    terms.extend(expressions.into_iter().flatten().filter_map(expression));
    (!terms.is_empty()).then(|| terms.join(","))
}

fn expression(expression: &Value) -> Option<String> {
    let key = expression["key"].as_str()?;
    let values: Vec<_> =
        expression["values"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    match expression["operator"].as_str()? {
        "In" => Some(format!("{key} in ({})", values.join(","))),
        "NotIn" => Some(format!("{key} notin ({})", values.join(","))),
        "Exists" => Some(key.to_owned()),
        "DoesNotExist" => Some(format!("!{key}")),
        _ => None,
    }
}

/// The pods whose logs say most come first: on a node, running, ready, old.
pub(super) fn sort(pods: &mut [Value]) {
    pods.sort_by_cached_key(|pod| {
        let phase = match pod["status"]["phase"].as_str() {
            Some("Running") => 0,
            Some("Pending") => 1,
            _ => 2,
        };
        let mut conditions = pod["status"]["conditions"].as_array().into_iter().flatten();
        let is_ready =
            conditions.any(|condition| condition["type"] == "Ready" && condition["status"] == "True");
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let created = text(&pod["metadata"]["creationTimestamp"]);
        (pod["spec"]["nodeName"].is_null(), phase, !is_ready, created, text(&pod["metadata"]["name"]))
    });
}

/// Whether a container has run at least once.
pub(super) fn has_started(pod: &Value, container: &str) -> bool {
    let is_over = matches!(pod["status"]["phase"].as_str(), Some("Succeeded" | "Failed"));
    let statuses = ["containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"];
    let statuses = statuses.iter().flat_map(|field| pod["status"][*field].as_array().into_iter().flatten());
    let mut own = statuses.filter(|status| status["name"] == container);
    is_over
        || own.any(|status| {
            status["state"]["waiting"].is_null() || !status["lastState"]["terminated"].is_null()
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn selectors_of_workloads_and_services_become_text() {
        for (selector, expected) in [
            (json!({"app": "web", "tier": "front"}), Some("app=web,tier=front")),
            (
                json!({"matchLabels": {"app": "web"}, "matchExpressions": [
                    {"key": "a", "operator": "In", "values": ["x", "y"]}, {"key": "b", "operator": "DoesNotExist"}]}),
                Some("app=web,a in (x,y),!b"),
            ),
            (json!({}), None),
        ] {
            assert_eq!(self::selector(&json!({"spec": {"selector": selector}})).as_deref(), expected);
        }
    }

    #[test]
    fn the_container_is_the_wanted_the_annotated_or_the_first() {
        let mut pod = json!({"metadata": {"name": "p"}, "spec": {
            "initContainers": [{"name": "i"}], "containers": [{"name": "a"}, {"name": "b"}]}});
        assert_eq!(containers(&pod, None, false).unwrap(), ["a"]);
        assert_eq!(containers(&pod, Some("i"), false).unwrap(), ["i"]);
        assert_eq!(containers(&pod, None, true).unwrap(), ["i", "a", "b"]);
        let said = containers(&pod, Some("x"), false).unwrap_err().to_string();
        assert_eq!(said, "error: container x is not valid for pod p: it has i, a, b");
        pod["metadata"]["annotations"] = json!({DEFAULT_CONTAINER: "b"});
        assert_eq!(containers(&pod, None, false).unwrap(), ["b"]);
    }

    #[test]
    fn running_and_ready_pods_come_first() {
        let pod = |name: &str, phase: &str, ready: &str, node: Option<&str>| {
            json!({"metadata": {"name": name}, "spec": {"nodeName": node},
                "status": {"phase": phase, "conditions": [{"type": "Ready", "status": ready}]}})
        };
        let mut pods = vec![
            pod("unscheduled", "Pending", "False", None),
            pod("done", "Succeeded", "False", Some("n")),
            pod("starting", "Running", "False", Some("n")),
            pod("ready", "Running", "True", Some("n")),
        ];
        sort(&mut pods);
        let names: Vec<_> = pods.iter().filter_map(|pod| pod["metadata"]["name"].as_str()).collect();
        assert_eq!(names, ["ready", "starting", "done", "unscheduled"]);
    }
}
