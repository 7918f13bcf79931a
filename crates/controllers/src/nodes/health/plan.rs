//! What a node's heartbeats and conditions mean for its status and its taints.

use crate::nodes::{NO_EXECUTE, NO_SCHEDULE, condition, taints};
use jiff::Timestamp;
use k8s_openapi::{
    api::core::v1::{Node, NodeCondition, NodeStatus, Taint},
    apimachinery::pkg::apis::meta::v1::Time,
};
use kube::ResourceExt;

const NOT_READY: &str = "node.kubernetes.io/not-ready";
const UNREACHABLE: &str = "node.kubernetes.io/unreachable";
const UNSCHEDULABLE: &str = "node.kubernetes.io/unschedulable";
/// Kubernetes: the taint for a condition with a status.
const CONDITION_TAINTS: [(&str, &str, &str); 6] = [
    ("Ready", "False", NOT_READY),
    ("Ready", "Unknown", UNREACHABLE),
    ("MemoryPressure", "True", "node.kubernetes.io/memory-pressure"),
    ("DiskPressure", "True", "node.kubernetes.io/disk-pressure"),
    ("NetworkUnavailable", "True", "node.kubernetes.io/network-unavailable"),
    ("PIDPressure", "True", "node.kubernetes.io/pid-pressure"),
];
/// Kubernetes: the conditions that only a kubelet can report.
const REPORTED: [&str; 4] = ["Ready", "MemoryPressure", "DiskPressure", "PIDPressure"];

// Kubernetes: labels that a zone is made of.
const REGION: &str = "topology.kubernetes.io/region";
const ZONE: &str = "topology.kubernetes.io/zone";
/// Kubernetes: nodes with this label do not count for the state of their zone.
const EXCLUDED: &str = "node.kubernetes.io/exclude-disruption";

/// Kubernetes: nodes tainted with NoExecute per second in a zone.
const NORMAL_RATE: f64 = 0.1;
/// Kubernetes: the same in a large zone with many nodes that are not ready; small zones taint none then.
const REDUCED_RATE: f64 = 0.01;
/// Kubernetes: a larger zone is large.
const LARGE: usize = 50;
/// Kubernetes: so large a share of nodes that are not ready are many, if there are more than two.
const MANY: f64 = 0.55;

pub(super) fn is_ready(node: &Node) -> bool {
    condition(node, "Ready").is_some_and(|ready| ready.status == "True")
}

/// The status of a node whose kubelet is silent: its conditions are unknown.
pub(super) fn unknown_status(node: &Node, now: Timestamp) -> NodeStatus {
    let mut status = node.status.clone().unwrap_or_default();
    let conditions = status.conditions.get_or_insert_default();
    for condition_type in REPORTED {
        match conditions.iter_mut().find(|it| it.type_ == condition_type) {
            Some(condition) if condition.status == "Unknown" => {}
            Some(condition) => {
                condition.status = "Unknown".to_owned();
                condition.reason = Some("NodeStatusUnknown".to_owned());
                condition.message = Some("Kubelet stopped posting node status.".to_owned());
                condition.last_transition_time = Some(Time(now));
            }
            None => conditions.push(NodeCondition {
                type_: condition_type.to_owned(),
                status: "Unknown".to_owned(),
                reason: Some("NodeStatusNeverUpdated".to_owned()),
                message: Some("Kubelet never posted node status.".to_owned()),
                last_heartbeat_time: node.metadata.creation_timestamp.clone(),
                last_transition_time: Some(Time(now)),
            }),
        }
    }
    status
}

/// Whether pods are to leave a node.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Eviction {
    /// The node is ready, or all nodes of the cluster are lost: then it is the network that is.
    No,
    /// At this rate of nodes per second in its zone; it may be zero.
    AtRate(f64),
}

/// Whether pods are to leave a node, by the state of all zones.
pub(super) fn eviction<'a>(node: &Node, all: impl IntoIterator<Item = &'a Node>) -> Eviction {
    if condition(node, "Ready").is_none() || is_ready(node) {
        return Eviction::No;
    }
    let (mut ready, mut lost, mut ready_anywhere) = (0, 0, 0);
    for other in all.into_iter().filter(|other| !other.labels().contains_key(EXCLUDED)) {
        let is_ready = is_ready(other);
        ready_anywhere += usize::from(is_ready);
        if zone(other) == zone(node) {
            ready += usize::from(is_ready);
            lost += usize::from(!is_ready);
        }
    }
    let size = ready + lost;
    #[expect(clippy::cast_precision_loss, reason = "numbers of nodes are small")]
    let is_disrupted = lost > 2 && lost as f64 / size as f64 >= MANY;
    match () {
        () if ready_anywhere == 0 => Eviction::No,
        () if ready == 0 || !is_disrupted => Eviction::AtRate(NORMAL_RATE),
        () if size > LARGE => Eviction::AtRate(REDUCED_RATE),
        () => Eviction::AtRate(0.0),
    }
}

/// The region and zone of a node.
pub(super) fn zone(node: &Node) -> (&str, &str) {
    let label = |name| node.labels().get(name).map(String::as_str).unwrap_or_default();
    (label(REGION), label(ZONE))
}

/// The NoExecute taint that a node has for its Ready condition, or should have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ExecuteTaint {
    None,
    NotReady,
    Unreachable,
}

impl ExecuteTaint {
    /// The one that a node has.
    pub(super) fn of(node: &Node) -> ExecuteTaint {
        let has = |key: &str| taints(node).iter().any(|taint| taint.key == key && taint.effect == NO_EXECUTE);
        match (has(NOT_READY), has(UNREACHABLE)) {
            (_, true) => ExecuteTaint::Unreachable,
            (true, false) => ExecuteTaint::NotReady,
            (false, false) => ExecuteTaint::None,
        }
    }

    /// The one that a node should have, if pods are to leave it.
    pub(super) fn wanted(node: &Node) -> ExecuteTaint {
        match condition(node, "Ready").map(|ready| ready.status.as_str()) {
            Some("False") => ExecuteTaint::NotReady,
            Some("Unknown") => ExecuteTaint::Unreachable,
            _ => ExecuteTaint::None,
        }
    }
}

/// The taints of a node with those of its conditions, and with this NoExecute taint.
pub(super) fn wanted_taints(node: &Node, execute: ExecuteTaint, now: Timestamp) -> Vec<Taint> {
    let statuses = CONDITION_TAINTS.iter().filter(|(condition_type, status, _)| {
        condition(node, condition_type).is_some_and(|condition| condition.status == *status)
    });
    let mut wanted: Vec<(&str, &str)> = statuses.map(|(_, _, key)| (*key, NO_SCHEDULE)).collect();
    if node.spec.as_ref().is_some_and(|spec| spec.unschedulable == Some(true)) {
        wanted.push((UNSCHEDULABLE, NO_SCHEDULE));
    }
    match execute {
        ExecuteTaint::None => {}
        ExecuteTaint::NotReady => wanted.push((NOT_READY, NO_EXECUTE)),
        ExecuteTaint::Unreachable => wanted.push((UNREACHABLE, NO_EXECUTE)),
    }
    let mut taints = taints(node).to_vec();
    taints.retain(|taint| !is_managed(taint) || wanted.contains(&(&taint.key, &taint.effect)));
    for (key, effect) in wanted {
        if !taints.iter().any(|taint| taint.key == key && taint.effect == effect) {
            let (key, effect) = (key.to_owned(), effect.to_owned());
            taints.push(Taint { key, effect, time_added: Some(Time(now)), value: None });
        }
    }
    taints
}

/// Whether a taint follows from the conditions of its node.
fn is_managed(taint: &Taint) -> bool {
    let is_of_condition = CONDITION_TAINTS.iter().any(|(_, _, key)| *key == taint.key);
    match taint.effect.as_str() {
        NO_SCHEDULE => is_of_condition || taint.key == UNSCHEDULABLE,
        NO_EXECUTE => taint.key == NOT_READY || taint.key == UNREACHABLE,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn node(ready: &str, spec: Value) -> Node {
        let conditions =
            if ready.is_empty() { json!([]) } else { json!([{"type": "Ready", "status": ready}]) };
        let node = json!({"metadata": {"name": "n"}, "spec": spec, "status": {"conditions": conditions}});
        serde_json::from_value(node).unwrap()
    }

    fn in_zone(ready: &str, zone: &str) -> Node {
        let mut node = node(ready, json!({}));
        node.labels_mut().insert(ZONE.to_owned(), zone.to_owned());
        node
    }

    #[test]
    fn taints_follow_the_conditions_of_a_node() {
        let own = json!({"key": "own", "effect": "NoExecute"});
        let not_ready = json!({"key": NOT_READY, "effect": "NoExecute"});
        for (node, execute, expected) in [
            (node("True", json!({})), ExecuteTaint::None, vec![]),
            (
                node("True", json!({"unschedulable": true})),
                ExecuteTaint::None,
                vec![(UNSCHEDULABLE, NO_SCHEDULE)],
            ),
            (node("False", json!({})), ExecuteTaint::None, vec![(NOT_READY, NO_SCHEDULE)]),
            (
                node("Unknown", json!({"taints": [own, not_ready]})),
                ExecuteTaint::Unreachable,
                vec![("own", NO_EXECUTE), (UNREACHABLE, NO_SCHEDULE), (UNREACHABLE, NO_EXECUTE)],
            ),
            (
                node("True", json!({"taints": [own, not_ready]})),
                ExecuteTaint::None,
                vec![("own", NO_EXECUTE)],
            ),
        ] {
            let taints = wanted_taints(&node, execute, Timestamp::UNIX_EPOCH);
            let found: Vec<_> =
                taints.iter().map(|taint| (taint.key.as_str(), taint.effect.as_str())).collect();
            assert_eq!(found, expected);
        }
    }

    #[test]
    fn a_silent_node_has_unknown_conditions() {
        let status = unknown_status(&node("True", json!({})), Timestamp::UNIX_EPOCH);
        let reasons: Vec<_> = status.conditions.unwrap().into_iter().map(|it| it.reason.unwrap()).collect();
        let never = "NodeStatusNeverUpdated";
        assert_eq!(reasons, ["NodeStatusUnknown", never, never, never]);
    }

    #[test]
    fn pods_leave_lost_nodes_unless_too_many_are_lost() {
        let lost = in_zone("Unknown", "a");
        for (ready_here, lost_here, ready_there, expected) in [
            (1, 1, 0, Eviction::AtRate(NORMAL_RATE)),
            (0, 1, 0, Eviction::No),
            (0, 3, 1, Eviction::AtRate(NORMAL_RATE)),
            (1, 3, 1, Eviction::AtRate(0.0)),
            (20, 40, 1, Eviction::AtRate(REDUCED_RATE)),
            (3, 3, 1, Eviction::AtRate(NORMAL_RATE)),
        ] {
            let here = (0..ready_here).map(|_| in_zone("True", "a"));
            let gone = (0..lost_here).map(|_| in_zone("Unknown", "a"));
            let there = (0..ready_there).map(|_| in_zone("True", "b"));
            let all: Vec<Node> = here.chain(gone).chain(there).collect();
            assert_eq!(eviction(&lost, &all), expected, "{ready_here} {lost_here} {ready_there}");
        }
        assert_eq!(eviction(&in_zone("True", "a"), [&lost]), Eviction::No);
    }
}
