//! On which nodes to create pods of a DaemonSet, and which of its pods to delete.

mod rollout;

use super::{
    desired::{self, DaemonSpec},
    placement::{self, NodeFit},
};
use crate::pod;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::ResourceExt;
use std::{cmp::Ordering, collections::BTreeMap, sync::Arc, time::Duration};

/// What is there.
#[derive(Debug)]
pub(super) struct DaemonState<'a> {
    pub(super) desired: DaemonSpec<'a>,
    pub(super) nodes: &'a [Arc<Node>],
    /// The pods that the set controls.
    pub(super) pods: &'a [Arc<Pod>],
    /// Nodes on which a failed pod was deleted a short while ago, and how long the next one stays.
    pub(super) paused: &'a BTreeMap<String, Duration>,
    pub(super) now: Timestamp,
}

/// What to do now.
#[derive(Debug, Default, PartialEq)]
pub(super) struct DaemonPlan {
    /// The nodes that get a pod.
    pub(super) create_on: Vec<String>,
    /// The names of the pods to delete.
    pub(super) delete: Vec<String>,
    /// Those of them that have ended.
    pub(super) finished: Vec<FinishedPod>,
    /// When to look at failed pods again.
    pub(super) check_after: Option<Duration>,
}

/// A pod that ended; it is deleted so that another one takes its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FinishedPod {
    pub(super) pod: String,
    pub(super) node: String,
    pub(super) has_failed: bool,
}

/// The pods of the set by the node that they run on or are meant for.
type PodsByNode<'a> = BTreeMap<&'a str, Vec<&'a Pod>>;

pub(super) fn plan(observed: &DaemonState<'_>) -> DaemonPlan {
    let by_node = by_node(observed.pods);
    let mut plan = DaemonPlan::default();
    for node in observed.nodes {
        let name = node.name_any();
        match (placement::fit(observed.desired.pod_spec(), node), by_node.get(name.as_str())) {
            (NodeFit::Runs, None) => plan.create_on.push(name),
            (fit @ (NodeFit::Runs | NodeFit::Stays), Some(pods)) => plan.keep(observed, &name, pods, fit),
            (NodeFit::Never, Some(pods)) => {
                plan.delete_all(pods.iter().copied().filter(|pod| !is_deleting(pod)))
            }
            (NodeFit::Stays | NodeFit::Never, None) => {}
        }
    }
    // A pod for a node that is gone is never bound, and the garbage collector of pods leaves it.
    let has_node = |name: &str| observed.nodes.iter().any(|node| node.metadata.name.as_deref() == Some(name));
    let lost = by_node.iter().filter(|(node, _)| !has_node(node)).flat_map(|(_, pods)| pods.iter().copied());
    plan.delete_all(lost.filter(|pod| pod::node_name(pod).is_empty()));
    // Kubernetes: an update waits until the right number of pods is on each node.
    if plan.create_on.is_empty() && plan.delete.is_empty() {
        rollout::add(&mut plan, observed, by_node);
    }
    plan
}

/// Pods that have ended and are being deleted are as good as gone.
pub(super) fn by_node(pods: &[Arc<Pod>]) -> PodsByNode<'_> {
    let mut by_node = PodsByNode::new();
    for pod in pods.iter().filter(|pod| !(pod::is_finished(pod) && is_deleting(pod))) {
        if let Some(node) = desired::target_node(pod) {
            by_node.entry(node).or_default().push(pod);
        }
    }
    by_node
}

impl DaemonPlan {
    /// Decides about the pods of a node that may have one.
    fn keep(&mut self, observed: &DaemonState<'_>, node: &str, pods: &[&Pod], fit: NodeFit) {
        let mut running: Vec<&Pod> = Vec::new();
        for pod in pods.iter().filter(|pod| !is_deleting(pod)) {
            match pod::phase(pod) {
                "Failed" => self.finish(observed, pod, node, true),
                "Succeeded" => self.finish(observed, pod, node, false),
                _ => running.push(pod),
            }
        }
        running.sort_by(|first, second| oldest_first(first, second));
        let surges = observed.desired.allows_surge();
        match running.as_slice() {
            // The node already has no pod but one that goes away; with a surge, its successor comes at once.
            [] if surges && fit == NodeFit::Runs => self.create_on.push(node.to_owned()),
            [] | [_] => {}
            several if surges => self.keep_old_and_new(observed, several),
            [_, others @ ..] => self.delete_all(others.iter().copied()),
        }
    }

    /// Deletes a pod that has ended, but not again and again in a short time if it fails each time.
    fn finish(&mut self, observed: &DaemonState<'_>, pod: &Pod, node: &str, has_failed: bool) {
        if let Some(pause) = observed.paused.get(node).filter(|_| has_failed) {
            self.check_after = Some(self.check_after.map_or(*pause, |other| other.min(*pause)));
            return;
        }
        self.finished.push(FinishedPod { pod: pod.name_any(), node: node.to_owned(), has_failed });
        self.delete.push(pod.name_any());
    }

    /// Keeps the oldest pod of the new revision, and beside it the oldest of the others, as long as that one is
    /// ready and the new one is not yet available. The pods are sorted by age.
    fn keep_old_and_new(&mut self, observed: &DaemonState<'_>, pods: &[&Pod]) {
        let desired = &observed.desired;
        let (new, old): (Vec<&Pod>, Vec<&Pod>) = pods
            .iter()
            .copied()
            .partition(|pod| pod.labels().get(crate::workload::history::REVISION) == Some(&desired.hash));
        self.delete_all(new.iter().skip(1).chain(old.iter().skip(1)).copied());
        if let (Some(new), Some(old)) = (new.first(), old.first())
            && (!pod::is_ready(old) || pod::is_available(new, desired.min_ready_seconds, observed.now))
        {
            self.delete.push(old.name_any());
        }
    }

    fn delete_all<'a>(&mut self, pods: impl IntoIterator<Item = &'a Pod>) {
        self.delete.extend(pods.into_iter().map(ResourceExt::name_any));
    }
}

/// Pods with a node come first, then older ones.
pub(super) fn oldest_first(first: &Pod, second: &Pod) -> Ordering {
    let is_pending = |pod: &Pod| pod::node_name(pod).is_empty();
    let created = |pod: &Pod| pod.creation_timestamp().map(|time| time.0);
    let by_node = is_pending(first).cmp(&is_pending(second));
    by_node
        .then_with(|| created(first).cmp(&created(second)))
        .then_with(|| first.name_any().cmp(&second.name_any()))
}

fn is_deleting(pod: &Pod) -> bool {
    pod.metadata.deletion_timestamp.is_some()
}

#[cfg(test)]
mod tests;
