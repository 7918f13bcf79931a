//! Which of the nodes that fit is best: the scores of Kubernetes' default profile, with its weights.

use super::{
    facts::PodFacts, node::NodeState, node_affinity, pod_affinity, snapshot::Snapshot, spread, taints,
};
use spread::Constraint;

// Kubernetes: the weights of its default profile.
const TAINTS_WEIGHT: i64 = 3;
const NODE_AFFINITY_WEIGHT: i64 = 2;
const SPREAD_WEIGHT: i64 = 2;
const POD_AFFINITY_WEIGHT: i64 = 2;
/// The best score before weights.
const BEST: i64 = 100;

/// The score of each node, by its place. ImageLocality is left out: simulated nodes have no images.
pub(super) fn scores(
    pod: &PodFacts,
    spread_constraints: &[Constraint],
    nodes: &[usize],
    snapshot: &Snapshot,
) -> Vec<i64> {
    let is_best_effort = pod.rules.requests.cpu == 0 && pod.rules.requests.memory == 0;
    let mut totals: Vec<i64> = nodes
        .iter()
        .map(|place| {
            let node = snapshot.at(*place);
            least_allocated(pod, node) + if is_best_effort { 0 } else { balanced_allocation(pod, node) }
        })
        .collect();
    let mut add = |scores: &[i64], weight: i64| {
        totals.iter_mut().zip(scores).for_each(|(total, score)| *total += weight * score);
    };
    let counts = |count: &dyn Fn(&NodeState) -> i64| -> Vec<i64> {
        nodes.iter().map(|place| count(snapshot.at(*place))).collect()
    };
    let discouraging = counts(&|node| taints::discouraging(&node.facts.taints, &pod.rules.tolerations));
    add(&normalized(&discouraging, true), TAINTS_WEIGHT);
    if !pod.rules.preferred_nodes.is_empty() {
        let preferences = counts(&|node| node_affinity::preference(&pod.rules, &node.facts));
        add(&normalized(&preferences, false), NODE_AFFINITY_WEIGHT);
    }
    if let Some(scores) = spread::scores(pod, spread_constraints, nodes, snapshot) {
        add(&scores, SPREAD_WEIGHT);
    }
    if let Some(scores) = pod_affinity::scores(pod, nodes, snapshot) {
        add(&scores, POD_AFFINITY_WEIGHT);
    }
    totals
}

/// Scaled so that the highest is 100; reversed if a high number is bad.
fn normalized(counts: &[i64], is_reversed: bool) -> Vec<i64> {
    let most = counts.iter().copied().max().unwrap_or_default();
    if most == 0 {
        return vec![if is_reversed { BEST } else { 0 }; counts.len()];
    }
    let scaled = counts.iter().map(|count| BEST * count / most);
    scaled.map(|score| if is_reversed { BEST - score } else { score }).collect()
}

/// The more is left, the better.
fn least_allocated(pod: &PodFacts, node: &NodeState) -> i64 {
    let (used, wanted, has) =
        (node.requested_for_scoring, pod.rules.requests_for_scoring, &node.facts.allocatable);
    let score = |requested: i64, has: i64| if requested > has { 0 } else { (has - requested) * BEST / has };
    let resources = [(used.cpu + wanted.cpu, has.cpu), (used.memory + wanted.memory, has.memory)];
    let known = resources.iter().filter(|(_, has)| *has > 0);
    let count = i64::try_from(known.clone().count()).unwrap_or_default();
    known.map(|(requested, has)| score(*requested, *has)).sum::<i64>().checked_div(count).unwrap_or_default()
}

/// The more alike the shares of CPU and memory become, the better: 50 to 100.
fn balanced_allocation(pod: &PodFacts, node: &NodeState) -> i64 {
    let (used, wanted) = (&node.requested, &pod.rules.requests);
    let with = balance(used.cpu + wanted.cpu, used.memory + wanted.memory, node);
    let without = balance(used.cpu, used.memory, node);
    BEST / 2 + (BEST / 2 + with - without) / 2
}

#[expect(clippy::cast_precision_loss, clippy::cast_possible_truncation, reason = "as Kubernetes rounds")]
fn balance(cpu: i64, memory: i64, node: &NodeState) -> i64 {
    let has = &node.facts.allocatable;
    if has.cpu == 0 || has.memory == 0 {
        return BEST;
    }
    let share = |requested: i64, has: i64| (requested as f64 / has as f64).min(1.0);
    let deviation = ((share(cpu, has.cpu) - share(memory, has.memory)) / 2.0).abs();
    ((1.0 - deviation) * BEST as f64) as i64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scheduler::{
        facts::tests::{pod, pod_on},
        node::tests::node,
    };
    use serde_json::{Value, json};
    use std::sync::Arc;

    fn requests(cpu: &str, memory: &str) -> Value {
        json!({"containers": [{"resources": {"requests": {"cpu": cpu, "memory": memory}}}]})
    }

    #[test]
    fn emptier_and_more_balanced_nodes_are_better() {
        let mut state =
            NodeState { facts: node("n", &json!({}), &json!({})), exists: true, ..NodeState::default() };
        let small = pod("p", &json!({}), &requests("1", "2Gi"));
        assert_eq!(least_allocated(&small, &state), 75);
        assert_eq!(balanced_allocation(&small, &state), 75);
        let other = Arc::new(pod_on("n", "o", &json!({}), &requests("2", "0")));
        state.add(other.key(), other);
        // A quarter of the CPU and three quarters of the memory are left; the default counts for missing requests.
        assert_eq!(least_allocated(&small, &state), 50);
        let memory_hungry = pod("p", &json!({}), &requests("0", "4Gi"));
        assert_eq!(balanced_allocation(&memory_hungry, &state), 50 + (50 + 100 - 75) / 2);
        let cpu_hungry = pod("p", &json!({}), &requests("2", "0"));
        assert_eq!(balanced_allocation(&cpu_hungry, &state), 50 + (50 + 50 - 75) / 2);
    }

    #[test]
    fn counts_are_scaled_to_a_hundred() {
        for (counts, is_reversed, expected) in [
            (&[0, 0][..], false, vec![0, 0]),
            (&[0, 0][..], true, vec![100, 100]),
            (&[1, 4][..], false, vec![25, 100]),
            (&[1, 4][..], true, vec![75, 0]),
        ] {
            assert_eq!(normalized(counts, is_reversed), expected, "{counts:?} {is_reversed}");
        }
    }

    #[test]
    fn preferences_and_soft_taints_decide_between_equal_nodes() {
        let mut snapshot = Snapshot::default();
        let taint = json!({"spec": {"taints": [{"key": "k", "effect": "PreferNoSchedule"}]}});
        snapshot.set_node(node("a", &json!({"disk": "hdd"}), &json!({})));
        snapshot.set_node(node("b", &json!({"disk": "ssd"}), &json!({})));
        snapshot.set_node(node("c", &json!({"disk": "hdd"}), &taint));
        let best = |spec: Value| {
            let pod = pod("p", &json!({}), &spec);
            scores(&pod, &[], &[0, 1, 2], &snapshot)
        };
        let plain = best(json!({}));
        assert_eq!(plain[0] - plain[2], TAINTS_WEIGHT * BEST);
        let preference = json!({"affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [
            {"weight": 7, "preference": {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]}}]}}});
        let preferring = best(preference);
        assert_eq!(preferring[1] - preferring[0], NODE_AFFINITY_WEIGHT * BEST);
    }
}
