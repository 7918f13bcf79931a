//! The status of a DaemonSet.

use super::{
    desired::DaemonSpec,
    placement::{self, NodeFit},
    plan::{by_node, oldest_first},
};
use crate::pod;
use jiff::Timestamp;
use k8s_openapi::api::{
    apps::v1::DaemonSetStatus,
    core::v1::{Node, Pod},
};
use std::sync::Arc;

pub(super) fn status(
    desired: &DaemonSpec<'_>,
    nodes: &[Arc<Node>],
    pods: &[Arc<Pod>],
    now: Timestamp,
) -> DaemonSetStatus {
    let by_node = by_node(pods);
    let mut status = DaemonSetStatus {
        observed_generation: desired.set.metadata.generation,
        ..desired.set.status.clone().unwrap_or_default()
    };
    let (mut wanted, mut scheduled, mut misscheduled, mut ready, mut updated, mut available) =
        (0, 0, 0, 0, 0, 0);
    for node in nodes {
        let name = node.metadata.name.as_deref().unwrap_or_default();
        // Kubernetes: of several pods on a node, the oldest one counts.
        let on_node = by_node.get(name).into_iter().flatten();
        let oldest = on_node.min_by(|first, second| oldest_first(first, second));
        let runs = placement::fit(desired.pod_spec(), node) == NodeFit::Runs;
        wanted += i32::from(runs);
        let Some(pod) = oldest else { continue };
        if !runs {
            misscheduled += 1;
            continue;
        }
        scheduled += 1;
        ready += i32::from(pod::is_ready(pod));
        available += i32::from(pod::is_available(pod, desired.min_ready_seconds, now));
        updated += i32::from(desired.is_updated(pod));
    }
    status.desired_number_scheduled = wanted;
    status.current_number_scheduled = scheduled;
    status.number_misscheduled = misscheduled;
    status.number_ready = ready;
    status.updated_number_scheduled = not_zero(updated);
    status.number_available = not_zero(available);
    status.number_unavailable = not_zero(wanted - available);
    status
}

/// Kubernetes: a count of zero is left out.
fn not_zero(count: i32) -> Option<i32> {
    Some(count).filter(|count| *count != 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_status_counts_nodes() {
        let set = json!({"metadata": {"name": "agent", "generation": 3}, "spec": {"selector": {},
            "minReadySeconds": 60, "template": {"spec": {"containers": [], "nodeSelector": {"run": "yes"}}}},
            "status": {"collisionCount": 2, "currentNumberScheduled": 9, "desiredNumberScheduled": 9,
                "numberMisscheduled": 9, "numberReady": 9}});
        let set = serde_json::from_value(set).unwrap();
        let desired = DaemonSpec::of(&set).unwrap().with_hash("n");
        let node = |(name, run): (&str, &str)| {
            let node = json!({"metadata": {"name": name, "labels": {"run": run}}});
            Arc::new(serde_json::from_value::<Node>(node).unwrap())
        };
        let nodes = [("a", "yes"), ("b", "yes"), ("c", "yes"), ("d", "yes"), ("e", "no")].map(node);
        let pod = |node: &str, hash: &str, ready: &str, since: &str| {
            let pod = json!({
                "metadata": {"name": format!("p-{node}"), "labels": {"controller-revision-hash": hash}},
                "spec": {"containers": [], "nodeName": node},
                "status": {"phase": "Running", "conditions": [
                    {"type": "Ready", "status": ready, "lastTransitionTime": since}]},
            });
            Arc::new(serde_json::from_value::<Pod>(pod).unwrap())
        };
        let (long_ago, just_now) = ("2026-01-01T00:00:00Z", "2026-01-01T00:59:59Z");
        let pods = [
            pod("a", "n", "True", long_ago),
            pod("b", "n", "True", just_now),
            pod("c", "o", "False", long_ago),
            pod("e", "n", "True", long_ago),
        ];
        let status = status(&desired, &nodes, &pods, "2026-01-01T01:00:00Z".parse().unwrap());
        let expected = json!({"desiredNumberScheduled": 4, "currentNumberScheduled": 3, "numberMisscheduled": 1,
            "numberReady": 2, "updatedNumberScheduled": 2, "numberAvailable": 1, "numberUnavailable": 3,
            "observedGeneration": 3, "collisionCount": 2});
        assert_eq!(serde_json::to_value(status).unwrap(), expected);
    }
}
