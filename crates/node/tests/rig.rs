//! A cluster with simulated nodes, each with the permissions of its node.

use k8s_openapi::api::core::v1::{Event, Pod};
use node::Settings;
use operator::Running;
use serde_json::{Value, json};
use testkit::Cluster;

/// Starts so many nodes.
pub(crate) fn start(cluster: &Cluster, count: usize) -> Running {
    start_with(cluster, &Settings { count, kubelet: cluster.kubelet().clone(), ..Settings::default() })
}

pub(crate) fn start_with(cluster: &Cluster, settings: &Settings) -> Running {
    let nodes = cluster.clone();
    let client_of = move |node: &str| nodes.client_as(&format!("system:node:{node}"), &["system:nodes"]);
    let caches = cluster.client_as("system:kube-controller-manager", &[]);
    cluster.run(node::manager(cluster.world(), caches, client_of, settings))
}

/// A pod that is bound to `node-0`, as the scheduler would do it.
pub(crate) fn pod(name: &str, spec: Value, script: &str) -> Pod {
    let mut spec = spec;
    spec["nodeName"] = spec.get("nodeName").cloned().unwrap_or(json!("node-0"));
    let annotations = if script.is_empty() { json!({}) } else { json!({ "setpoint.dev/script": script }) };
    let metadata = json!({"name": name, "namespace": "default", "annotations": annotations});
    serde_json::from_value(json!({"metadata": metadata, "spec": spec})).unwrap()
}

pub(crate) fn container(image: &str) -> Value {
    json!({"containers": [{"name": "app", "image": image}]})
}

/// The phase of a pod, and the state and restarts of its first container.
pub(crate) async fn state(cluster: &Cluster, name: &str) -> String {
    let pod: Pod = cluster.get("default", name).await;
    let status = pod.status.unwrap();
    let container = status.container_statuses.unwrap_or_default().into_iter().next();
    let state = container.map(|it| {
        let state = it.state.unwrap_or_default();
        let text = match (state.waiting, state.running, state.terminated) {
            (Some(waiting), _, _) => waiting.reason.unwrap_or_default(),
            (_, Some(_), _) if it.ready => "ready".to_owned(),
            (_, Some(_), _) => "runs".to_owned(),
            (_, _, Some(end)) => format!("{}({})", end.reason.unwrap_or_default(), end.exit_code),
            _ => String::new(),
        };
        format!(" {text}/{}", it.restart_count)
    });
    format!("{}{}", status.phase.unwrap(), state.unwrap_or_default())
}

/// Reasons of the events on a pod, sorted.
pub(crate) async fn reasons(cluster: &Cluster, name: &str) -> Vec<String> {
    let events: Vec<Event> = cluster.list("default").await;
    let of_pod = events.into_iter().filter(|it| it.involved_object.name.as_deref() == Some(name));
    let mut reasons: Vec<String> = of_pod.filter_map(|it| it.reason).collect();
    reasons.sort();
    reasons
}
