//! The update of a DaemonSet: old pods are replaced within its limits.

use super::{DaemonPlan, DaemonState, PodsByNode, is_deleting};
use crate::{
    pod,
    workload::daemon_set::{
        desired::{DaemonSpec, UpdateLimit},
        placement::{self, NodeFit},
    },
};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;

/// The pods of a node that are not being deleted.
#[derive(Clone, Copy, Debug)]
enum OnNode<'a> {
    None,
    New(&'a Pod),
    Old(&'a Pod),
    Both {
        new: &'a Pod,
        old: &'a Pod,
    },
    /// More than one of a revision: the next reconcile deletes all but one of them.
    TooMany,
}

pub(super) fn add<'a>(plan: &mut DaemonPlan, observed: &DaemonState<'a>, mut by_node: PodsByNode<'a>) {
    let runs: Vec<&str> = observed
        .nodes
        .iter()
        .filter(|node| placement::fit(observed.desired.pod_spec(), node) == NodeFit::Runs)
        .filter_map(|node| node.metadata.name.as_deref())
        .collect();
    for node in &runs {
        by_node.entry(*node).or_default();
    }
    match observed.desired.update_limit(runs.len()) {
        UpdateLimit::OnDelete => {}
        UpdateLimit::MaxUnavailable(limit) => delete_first(plan, observed, &by_node, limit),
        UpdateLimit::MaxSurge(limit) => create_first(plan, observed, &by_node, &runs, limit),
    }
}

/// Deletes old pods, and their successors come when they are gone. Those that are not available are deleted in any
/// case.
fn delete_first(plan: &mut DaemonPlan, observed: &DaemonState<'_>, by_node: &PodsByNode<'_>, limit: usize) {
    let mut unavailable = 0;
    let (mut broken, mut candidates) = (Vec::new(), Vec::new());
    for pods in by_node.values() {
        match OnNode::of(&observed.desired, pods) {
            OnNode::New(new) if is_available(observed, new) => {}
            OnNode::Old(old) if is_available(observed, old) => candidates.push(old.name_any()),
            OnNode::Old(old) => {
                broken.push(old.name_any());
                unavailable += 1;
            }
            _ => unavailable += 1,
        }
    }
    candidates.truncate(limit.saturating_sub(unavailable));
    plan.delete.extend(broken.into_iter().chain(candidates));
}

/// Creates new pods beside old ones, which are deleted when the new ones are available.
fn create_first(
    plan: &mut DaemonPlan,
    observed: &DaemonState<'_>,
    by_node: &PodsByNode<'_>,
    runs: &[&str],
    limit: usize,
) {
    let (mut surging, mut available) = (0, 0);
    let (mut candidates, mut misplaced) = (Vec::new(), Vec::new());
    for (node, pods) in by_node {
        let on_node = OnNode::of(&observed.desired, pods);
        if let OnNode::New(pod) | OnNode::Old(pod) | OnNode::Both { old: pod, .. } = on_node {
            available += usize::from(is_available(observed, pod));
        }
        match on_node {
            OnNode::None | OnNode::New(_) => {}
            OnNode::TooMany => surging += 1,
            OnNode::Both { new, old } if is_available(observed, new) => plan.delete.push(old.name_any()),
            OnNode::Both { .. } => surging += 1,
            OnNode::Old(old) => match (is_available(observed, old), runs.contains(node)) {
                (true, true) => candidates.push((*node).to_owned()),
                (true, false) => misplaced.push(old.name_any()),
                (false, true) => plan.create_on.push((*node).to_owned()),
                (false, false) => plan.delete.push(old.name_any()),
            },
        }
    }
    // A pod on a node that the set has left stays until another one is available in its place.
    misplaced.truncate(available.saturating_sub(runs.len()));
    candidates.truncate(limit.saturating_sub(surging));
    plan.delete.extend(misplaced);
    plan.create_on.extend(candidates);
}

impl<'a> OnNode<'a> {
    fn of(desired: &DaemonSpec<'_>, pods: &[&'a Pod]) -> OnNode<'a> {
        let present = pods.iter().copied().filter(|pod| !is_deleting(pod));
        let (new, old): (Vec<&Pod>, Vec<&Pod>) = present.partition(|pod| desired.is_updated(pod));
        match (new.as_slice(), old.as_slice()) {
            ([], []) => OnNode::None,
            ([new], []) => OnNode::New(new),
            ([], [old]) => OnNode::Old(old),
            ([new], [old]) => OnNode::Both { new, old },
            _ => OnNode::TooMany,
        }
    }
}

fn is_available(observed: &DaemonState<'_>, pod: &Pod) -> bool {
    pod::is_available(pod, observed.desired.min_ready_seconds, observed.now)
}
