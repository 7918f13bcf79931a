//! Nodes whose kubelet is silent become Unknown; taints tell the scheduler, and drive pods away.

mod plan;

use super::taints;
use crate::{pod, status};
use futures::future::try_join_all;
use k8s_openapi::{
    api::{
        coordination::v1::Lease,
        core::v1::{Node, Pod},
    },
    apimachinery::pkg::apis::meta::v1::{MicroTime, Time},
};
use kube::{
    ResourceExt,
    api::{Patch, PatchParams},
};
use operator::{Context, Controller, Failure, Key, Next, all, retry};
use plan::{Eviction, ExecuteTaint};
use serde_json::json;
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use world::Moment;

/// Kubernetes: a kubelet may be silent for so long.
const GRACE: Duration = Duration::from_secs(50);
/// Kubernetes: one that has never reported a status may be so for longer.
const STARTUP_GRACE: Duration = Duration::from_secs(60);
/// Kubernetes: nodes that are not ready are looked at so often, since other nodes decide about their taints.
const INTERVAL: Duration = Duration::from_secs(5);
const LEASES: &str = "kube-node-lease";
/// Kubernetes: so many nodes are handled at once.
const WORKERS: usize = 8;
/// Kubernetes: (primary, secondary) labels; the secondary has the value of the primary.
const MIRRORED_LABELS: [(&str, &str); 2] =
    [("kubernetes.io/os", "beta.kubernetes.io/os"), ("kubernetes.io/arch", "beta.kubernetes.io/arch")];

pub(crate) fn controller() -> Controller {
    Controller::new("node-controller", all::<Node>())
        .watches(all::<Lease>().in_namespace(LEASES), |lease: &Lease| vec![Key::new(None, &lease.name_any())])
        .watches(all::<Pod>(), |pod: &Pod| match pod::node_name(pod) {
            "" => Vec::new(),
            node => vec![Key::new(None, node)],
        })
        .workers(WORKERS)
        .reconcile(NodeHealth::default(), reconcile)
}

/// What this process has seen of nodes. Clocks of nodes may be wrong, so silence is measured by the own clock.
#[derive(Default)]
struct NodeHealth {
    heartbeats: Mutex<BTreeMap<String, Heartbeat>>,
    /// When the next node of a zone may be tainted with NoExecute.
    next_taint: Mutex<BTreeMap<(String, String), Moment>>,
}

#[derive(Clone, PartialEq)]
struct Heartbeat {
    uid: Option<String>,
    lease: Option<MicroTime>,
    status: Option<Time>,
    seen: Moment,
}

async fn reconcile(context: Context<NodeHealth>, key: Key) -> Result<Next, Failure> {
    let Some(node) = context.get::<Node>(&key)? else {
        forget(&context, &key);
        return Ok(Next::Settled);
    };
    let silent_for = observe(&context, &node)?;
    let grace = if super::condition(&node, "Ready").is_some() { GRACE } else { STARTUP_GRACE };
    let node = match silent_for > grace {
        true => mark_unknown(&context, node).await?,
        false => node,
    };
    mirror_labels(&context, &node).await?;
    let next_taint = update_taints(&context, &node).await?;
    if super::condition(&node, "Ready").is_some() && !plan::is_ready(&node) {
        mark_pods_not_ready(&context, &node).await?;
        return Ok(Next::CheckAfter(next_taint.unwrap_or(INTERVAL).min(INTERVAL)));
    }
    Ok(Next::CheckAfter(grace.saturating_sub(silent_for) + Duration::from_millis(1)))
}

/// Remembers the latest heartbeat, and returns how long ago it was seen.
fn observe(context: &Context<NodeHealth>, node: &Node) -> Result<Duration, Failure> {
    let now = context.world().now();
    let lease = context.get::<Lease>(&Key::new(Some(LEASES), &node.name_any()))?;
    let heartbeat = Heartbeat {
        uid: node.uid(),
        lease: lease.and_then(|lease| lease.spec.as_ref()?.renew_time.clone()),
        status: super::condition(node, "Ready").and_then(|ready| ready.last_heartbeat_time.clone()),
        seen: now,
    };
    let mut heartbeats = context.state().heartbeats.lock().unwrap_or_else(PoisonError::into_inner);
    let before = heartbeats.insert(node.name_any(), heartbeat.clone());
    let is_new = before.as_ref().is_none_or(|before| before.uid != heartbeat.uid);
    let seen = match before {
        Some(before) if before == (Heartbeat { seen: before.seen, ..heartbeat }) => before.seen,
        _ => now,
    };
    if let Some(stored) = heartbeats.get_mut(&node.name_any()) {
        stored.seen = seen;
    }
    drop(heartbeats);
    if is_new {
        // Kubernetes: these texts.
        let name = node.name_any();
        let note = format!("Node {name} event: Registered Node {name} in Controller");
        context.events().normal(node, "RegisteredNode", "Register", note);
    }
    Ok(now.since(seen))
}

fn forget(context: &Context<NodeHealth>, key: &Key) {
    let mut heartbeats = context.state().heartbeats.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(heartbeat) = heartbeats.remove(key.name()) else { return };
    drop(heartbeats);
    let mut node = Node::default();
    node.metadata.name = Some(key.name().to_owned());
    node.metadata.uid = heartbeat.uid;
    let note = format!("Node {key} event: Removing Node {key} from Controller");
    context.events().normal(&node, "RemovingNode", "Remove", note);
}

async fn mark_unknown(context: &Context<NodeHealth>, node: Arc<Node>) -> Result<Arc<Node>, Failure> {
    let unknown = plan::unknown_status(&node, context.wall());
    if !status::replace(&context.cluster::<Node>(), &*node, &unknown).await? {
        return Ok(node);
    }
    if plan::is_ready(&node) {
        let note = format!("Node {} status is now: NodeNotReady", node.name_any());
        context.events().normal(&*node, "NodeNotReady", "Update", note);
    }
    Ok(context.get::<Node>(&Key::of(&*node))?.unwrap_or(node))
}

async fn mirror_labels(context: &Context<NodeHealth>, node: &Node) -> Result<(), Failure> {
    let labels = node.labels();
    let differing = MIRRORED_LABELS.iter().filter_map(|(primary, secondary)| {
        let value = labels.get(*primary)?;
        (labels.get(*secondary) != Some(value)).then(|| ((*secondary).to_owned(), json!(value)))
    });
    let differing: serde_json::Map<_, _> = differing.collect();
    if differing.is_empty() {
        return Ok(());
    }
    let patch = Patch::Strategic(json!({"metadata": {"labels": differing}}));
    ignore_missing(context.cluster::<Node>().patch(&node.name_any(), &PatchParams::default(), &patch).await)
}

/// Writes the taints that differ. Returns after which time a NoExecute taint may be added that has to wait.
async fn update_taints(context: &Context<NodeHealth>, node: &Node) -> Result<Option<Duration>, Failure> {
    let present = ExecuteTaint::of(node);
    let (execute, wait) = match ExecuteTaint::wanted(node) {
        ExecuteTaint::None => (ExecuteTaint::None, None),
        wanted => {
            let all = context.view::<Node>()?.list()?;
            match plan::eviction(node, all.iter().map(|node| &**node)) {
                Eviction::No => (ExecuteTaint::None, None),
                // From not ready to unreachable and back: at once.
                Eviction::AtRate(_) if present != ExecuteTaint::None => (wanted, None),
                Eviction::AtRate(rate) => match wait_for_turn(context, node, rate) {
                    Some(wait) => (ExecuteTaint::None, Some(wait)),
                    None => (wanted, None),
                },
            }
        }
    };
    let wanted = plan::wanted_taints(node, execute, context.wall());
    if wanted != taints(node) {
        // Kubernetes: a strategic patch; with the resourceVersion, since others taint nodes as well.
        let patch =
            json!({"metadata": {"resourceVersion": node.resource_version()}, "spec": {"taints": wanted}});
        let nodes = context.cluster::<Node>();
        ignore_missing(nodes.patch(&node.name_any(), &PatchParams::default(), &Patch::Merge(patch)).await)?;
    }
    Ok(wait)
}

/// `None` if the node may be tainted now; then the next one in its zone has to wait.
fn wait_for_turn(context: &Context<NodeHealth>, node: &Node, rate: f64) -> Option<Duration> {
    if rate <= 0.0 {
        return Some(INTERVAL);
    }
    let (region, zone) = plan::zone(node);
    let now = context.world().now();
    let mut next = context.state().next_taint.lock().unwrap_or_else(PoisonError::into_inner);
    let next = next.entry((region.to_owned(), zone.to_owned())).or_insert(now);
    if *next > now {
        return Some(next.since(now));
    }
    *next = now + Duration::from_secs_f64(1.0 / rate);
    None
}

/// Pods of a lost node may be gone: they count as not ready, and get no traffic.
async fn mark_pods_not_ready(context: &Context<NodeHealth>, node: &Node) -> Result<(), Failure> {
    let pods = pod::on_node(&context.view::<Pod>()?, &node.name_any())?;
    let ready = pods.iter().filter(|pod| pod::is_ready(pod));
    let marks = ready.map(|pod| async move {
        let conditions =
            json!([{"type": "Ready", "status": "False", "lastTransitionTime": Time(context.wall())}]);
        let patch =
            Patch::Strategic(json!({"metadata": {"uid": pod.uid()}, "status": {"conditions": conditions}}));
        let pods = context.namespaced::<Pod>(&Key::of(&**pod));
        ignore_missing(pods.patch_status(&pod.name_any(), &PatchParams::default(), &patch).await)?;
        context.events().warning(&**pod, "NodeNotReady", "Update", "Node is not ready");
        Ok::<(), Failure>(())
    });
    try_join_all(marks).await.map(drop)
}

fn ignore_missing<T>(result: kube::Result<T>) -> Result<(), Failure> {
    match result {
        Err(error) if retry::is_missing(&error) => Ok(()),
        result => Ok(result.map(drop)?),
    }
}
