//! A scheduler and kubelet of a few lines: every pod gets a node, runs and becomes ready at once, and ends when
//! it is deleted.

use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use operator::{Context, Controller, Failure, Key, Manager, Next, Running, Timestamp, all};
use serde_json::{Value, json};
use testkit::Cluster;

/// Pods with this image run, and never become ready.
pub(crate) const BROKEN_IMAGE: &str = "broken";

/// Runs until the result is dropped: then pods stay as they are.
pub(crate) fn kubelet(cluster: &Cluster) -> Running {
    let client = cluster.client_as("kubelet", &["system:masters"]);
    let controller = Controller::new("kubelet", all::<Pod>()).workers(100).reconcile((), reconcile);
    cluster.run(Manager::new("kubelet", cluster.world(), client).controller(controller))
}

async fn reconcile(context: Context<()>, key: Key) -> Result<Next, Failure> {
    let Some(pod) = context.get::<Pod>(&key)? else { return Ok(Next::Settled) };
    let (pods, name) = (context.namespaced::<Pod>(&key), key.name());
    let spec = pod.spec.clone().unwrap_or_default();
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    let written = if pod.metadata.deletion_timestamp.is_some() {
        let now = DeleteParams { grace_period_seconds: Some(0), ..DeleteParams::default() };
        pods.delete(name, &now).await.map(drop)
    } else if spec.node_name.is_none() {
        let binding = json!({"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name},
            "target": {"apiVersion": "v1", "kind": "Node", "name": "node-1"}});
        let parameters = PostParams::default();
        pods.create_subresource::<Value, Value>("binding", name, &parameters, &binding).await.map(drop)
    } else if phase == Some("Pending") {
        let image = spec.containers[0].image.as_deref();
        let patch = Patch::Merge(status(context.wall(), image != Some(BROKEN_IMAGE)));
        pods.patch_status(name, &PatchParams::default(), &patch).await.map(drop)
    } else {
        Ok(())
    };
    match written {
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(Next::Settled),
        written => Ok(written.map(|()| Next::Settled)?),
    }
}

fn status(now: Timestamp, is_ready: bool) -> Value {
    let ready = if is_ready { "True" } else { "False" };
    let now = now.to_string();
    let condition = |type_: &str| json!({"type": type_, "status": ready, "lastTransitionTime": now});
    json!({"status": {"phase": "Running", "startTime": now, "podIP": "10.0.0.1",
        "conditions": [condition("Ready"), condition("ContainersReady")]}})
}
