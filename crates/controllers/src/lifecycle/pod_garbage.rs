//! Pods that no kubelet removes: on nodes that are gone or out of service, deleted before they had a node, and
//! finished ones if there are too many.

use crate::pod;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, Patch, PatchParams},
};
use operator::{Context, Controller, Failure, Key, Next, all};
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use world::Moment;

/// Kubernetes: a node that is not in the cache may still be on its way there for so long.
const QUARANTINE: Duration = Duration::from_secs(40);

/// Kubernetes: `--terminated-pod-gc-threshold`: so many finished pods stay.
const MOST_FINISHED: usize = 12_500;

const OUT_OF_SERVICE: &str = "node.kubernetes.io/out-of-service";

/// The index of pods by their node.
const BY_NODE: &str = "node";

pub(crate) fn controller() -> Controller {
    Controller::new("pod-garbage-collector-controller", all::<Pod>())
        .index(BY_NODE, |pod| vec![pod::node_name(pod).to_owned()])
        .watches_through(all::<Node>(), |pods, node| {
            let pods = pods.indexed(BY_NODE, &node.name_any()).unwrap_or_default();
            pods.iter().map(|pod| Key::of(&**pod)).collect()
        })
        .reconcile(Seen::default(), reconcile)
}

/// What earlier reconciles have seen.
#[derive(Debug, Default)]
struct Seen(Mutex<SeenState>);

#[derive(Debug, Default)]
struct SeenState {
    /// Since when each node is missing that pods refer to.
    missing_nodes: BTreeMap<String, Moment>,
    finished: BTreeSet<Key>,
}

impl Seen {
    fn state(&self) -> MutexGuard<'_, SeenState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What becomes of a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Plan {
    Keep,
    Delete,
    /// Its node is not known: after the quarantine the server is asked.
    CheckNode,
}

fn plan(pod: &Pod, node: Option<&Node>) -> Plan {
    let is_deleting = pod.metadata.deletion_timestamp.is_some();
    match (pod::node_name(pod), node) {
        ("", _) if is_deleting => Plan::Delete,
        ("", _) => Plan::Keep,
        (_, None) => Plan::CheckNode,
        (_, Some(node)) if is_deleting && !is_ready(node) && is_out_of_service(node) => Plan::Delete,
        _ => Plan::Keep,
    }
}

fn is_ready(node: &Node) -> bool {
    let conditions = node.status.iter().flat_map(|status| status.conditions.iter().flatten());
    conditions.into_iter().any(|condition| condition.type_ == "Ready" && condition.status == "True")
}

fn is_out_of_service(node: &Node) -> bool {
    let taints = node.spec.iter().flat_map(|spec| spec.taints.iter().flatten());
    taints.into_iter().any(|taint| taint.key == OUT_OF_SERVICE)
}

async fn reconcile(context: Context<Seen>, key: Key) -> Result<Next, Failure> {
    let Some(pod) = context.get::<Pod>(&key)? else {
        context.state().state().finished.remove(&key);
        return Ok(Next::Settled);
    };
    let node_key = Key::new(None, pod::node_name(&pod));
    let node = context.get::<Node>(&node_key)?;
    match plan(&pod, node.as_deref()) {
        Plan::Delete => {
            fail_and_delete(&context, &pod, None).await?;
            return Ok(Next::Settled);
        }
        Plan::CheckNode => return check_node(&context, &pod, node_key.name()).await,
        Plan::Keep => drop(context.state().state().missing_nodes.remove(node_key.name())),
    }
    if !pod::is_finished(&pod) {
        context.state().state().finished.remove(&key);
        return Ok(Next::Settled);
    }
    context.state().state().finished.insert(key);
    delete_excess(&context).await
}

async fn check_node(context: &Context<Seen>, pod: &Pod, node: &str) -> Result<Next, Failure> {
    let now = context.world().now();
    let since = *context.state().state().missing_nodes.entry(node.to_owned()).or_insert(now);
    let left = QUARANTINE.saturating_sub(now.since(since));
    if !left.is_zero() {
        return Ok(Next::CheckAfter(left));
    }
    // Live: pods must not be deleted because a watch is late.
    if Api::<Node>::all(context.client()).get_opt(node).await?.is_some() {
        context.state().state().missing_nodes.remove(node);
        return Ok(Next::WaitFor("the watch of nodes is late"));
    }
    let condition = json!({"type": "DisruptionTarget", "status": "True", "reason": "DeletionByPodGC",
        "message": "PodGC: node no longer exists", "observedGeneration": pod.metadata.generation,
        "lastTransitionTime": k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(context.wall())});
    fail_and_delete(context, pod, Some(condition)).await?;
    Ok(Next::Settled)
}

/// Deletes the oldest finished pods, evicted ones first, if there are too many.
async fn delete_excess(context: &Context<Seen>) -> Result<Next, Failure> {
    let keys: Vec<Key> = {
        let state = context.state().state();
        if state.finished.len() <= MOST_FINISHED {
            return Ok(Next::Settled);
        }
        state.finished.iter().cloned().collect()
    };
    let mut pods = Vec::new();
    for key in &keys {
        pods.extend(context.get::<Pod>(key)?);
    }
    let reason = |pod: &Pod| pod.status.as_ref().and_then(|status| status.reason.clone());
    pods.sort_by_cached_key(|pod| {
        let is_evicted = pod::phase(pod) == "Failed" && reason(pod).as_deref() == Some("Evicted");
        let created = pod.metadata.creation_timestamp.as_ref().map(|time| time.0);
        (!is_evicted, created, pod.name_any())
    });
    let excess = pods.len().saturating_sub(MOST_FINISHED);
    for pod in &pods[..excess] {
        fail_and_delete(context, pod, None).await?;
        context.state().state().finished.remove(&Key::of(&**pod));
    }
    Ok(Next::Settled)
}

/// There is no kubelet that would tell that the pod has ended: it has failed.
async fn fail_and_delete(
    context: &Context<Seen>,
    pod: &Pod,
    condition: Option<Value>,
) -> Result<(), Failure> {
    let (pods, name) = (context.namespaced::<Pod>(&Key::of(pod)), pod.name_any());
    if !pod::is_finished(pod) {
        let mut status = json!({"phase": "Failed", "observedGeneration": pod.metadata.generation});
        if let Some(condition) = condition {
            status["conditions"] = json!([condition]);
        }
        let patch = Patch::Strategic(json!({"metadata": {"uid": pod.uid()}, "status": status}));
        match pods.patch_status(&name, &PatchParams::default(), &patch).await {
            Err(kube::Error::Api(status)) if status.code == 404 => return Ok(()),
            other => drop(other?),
        }
    }
    match pods.delete(&name, &DeleteParams::default().grace_period(0)).await {
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
        other => Ok(other.map(drop)?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pods_go_with_their_nodes() {
        let node = |ready: &str, taint: &str| -> Node {
            let node = json!({"spec": {"taints": [{"key": taint, "effect": "NoExecute"}]},
                "status": {"conditions": [{"type": "Ready", "status": ready}]}});
            serde_json::from_value(node).unwrap()
        };
        let lost = node("Unknown", OUT_OF_SERVICE);
        for (node_name, is_deleting, node, expected) in [
            ("", false, None, Plan::Keep),
            ("", true, None, Plan::Delete),
            ("n", false, None, Plan::CheckNode),
            ("n", true, None, Plan::CheckNode),
            ("n", true, Some(&lost), Plan::Delete),
            ("n", false, Some(&lost), Plan::Keep),
            ("n", true, Some(&node("True", OUT_OF_SERVICE)), Plan::Keep),
            ("n", true, Some(&node("False", "other")), Plan::Keep),
        ] {
            let deleted = is_deleting.then_some("2026-01-01T00:00:00Z");
            let pod = json!({"metadata": {"deletionTimestamp": deleted}, "spec": {"nodeName": node_name, "containers": []}});
            let pod: Pod = serde_json::from_value(pod).unwrap();
            assert_eq!(plan(&pod, node), expected, "{node_name} {is_deleting} {node:?}");
        }
    }
}
