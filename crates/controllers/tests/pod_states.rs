//! What a scheduler and the kubelets would do with pods, done by the test.

use k8s_openapi::api::core::v1::{Binding, Event, Node, Pod};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, PostParams},
};
use serde_json::{Value, json};
use testkit::Cluster;

/// More rounds than this mean that pods are replaced for ever.
const MAX_ROUNDS: usize = 100;

/// Adds a node that is ready: without the taint that each new node has.
pub(crate) async fn add_node(cluster: &Cluster, name: &str, labels: &Value) {
    let node: Node = serde_json::from_value(json!({"metadata": {"name": name, "labels": labels}})).unwrap();
    cluster.create(&node).await;
    cluster.patch::<Node>(None, name, &json!({"spec": {"taints": null}})).await;
}

/// Binds a pod to a node, as the scheduler does.
pub(crate) async fn bind(cluster: &Cluster, pod: &str, node: &str) {
    let pods: Api<Pod> = Api::namespaced(cluster.client(), "default");
    let binding: Binding = serde_json::from_value(json!({"metadata": {"name": pod},
        "target": {"apiVersion": "v1", "kind": "Node", "name": node}}))
    .unwrap();
    let bound: kube::Result<Value> =
        pods.create_subresource("binding", pod, &PostParams::default(), &binding).await;
    bound.unwrap();
}

/// Binds every pod to the node that its affinity names.
pub(crate) async fn bind_all(cluster: &Cluster) {
    for pod in cluster.list::<Pod>("default").await {
        let spec = serde_json::to_value(&pod.spec).unwrap();
        let terms = "/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms";
        let node = spec.pointer(&format!("{terms}/0/matchFields/0/values/0")).and_then(Value::as_str);
        if let Some(node) = node.filter(|_| spec.get("nodeName").is_none()) {
            bind(cluster, &pod.name_any(), node).await;
        }
    }
}

/// Sets the phase of a pod, and whether it is ready since now.
pub(crate) async fn set_state(cluster: &Cluster, pod: &str, phase: &str, is_ready: bool) {
    let status = if is_ready { "True" } else { "False" };
    let now = cluster.world().wall().to_string();
    let ready = json!({"type": "Ready", "status": status, "lastTransitionTime": now});
    let status = json!({"status": {"phase": phase, "conditions": [ready]}});
    cluster.patch_status::<Pod>("default", pod, &status).await;
}

/// Ends the deletion of a pod, as the kubelet does when its containers have stopped.
pub(crate) async fn stop(cluster: &Cluster, pod: &str) {
    let pods: Api<Pod> = Api::namespaced(cluster.client(), "default");
    pods.delete(pod, &DeleteParams::default().grace_period(0)).await.unwrap();
}

/// Binds all pods, makes them ready, and ends deletions, until nothing changes.
pub(crate) async fn run_all(cluster: &Cluster) {
    for _ in 0..MAX_ROUNDS {
        cluster.settle().await;
        bind_all(cluster).await;
        let mut is_changed = false;
        for pod in cluster.list::<Pod>("default").await {
            if pod.metadata.deletion_timestamp.is_some() {
                stop(cluster, &pod.name_any()).await;
            } else if !is_ready(&pod) {
                set_state(cluster, &pod.name_any(), "Running", true).await;
            } else {
                continue;
            }
            is_changed = true;
        }
        if !is_changed {
            return;
        }
    }
    unreachable!("pods are replaced for ever");
}

fn is_ready(pod: &Pod) -> bool {
    let conditions = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
    conditions.into_iter().any(|condition| condition.type_ == "Ready" && condition.status == "True")
}

/// The names of all pods.
pub(crate) async fn names(cluster: &Cluster) -> Vec<String> {
    cluster.list::<Pod>("default").await.iter().map(ResourceExt::name_any).collect()
}

/// `reason: message` of all events, sorted.
pub(crate) async fn events(cluster: &Cluster) -> Vec<String> {
    let text = |event: &Event| {
        let (reason, message) = (event.reason.as_deref(), event.message.as_deref());
        format!("{}: {}", reason.unwrap_or_default(), message.unwrap_or_default())
    };
    let mut events: Vec<String> = cluster.list::<Event>("default").await.iter().map(text).collect();
    events.sort();
    events
}
