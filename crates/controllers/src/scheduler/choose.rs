//! The decision: the best node for a pod, or why there is none. Pure: the same input gives the same answer.

use super::{
    facts::PodFacts,
    filter::{FilterSubject, Misfit, SchedulingCycle},
    node_affinity, score,
    snapshot::Snapshot,
    volumes::VolumeWrite,
};
use std::{borrow::Cow, collections::BTreeMap};

/// Kubernetes: with fewer nodes, all are looked at.
const LEAST_TO_FIND: usize = 100;
/// Kubernetes: of very many nodes, at least this percentage.
const LEAST_PERCENTAGE: usize = 5;

/// What to do with a pod.
#[derive(Clone, Debug)]
pub(super) enum Decision {
    Bind {
        node: String,
        /// How many nodes were looked at: the next search begins after them.
        evaluated: usize,
        /// What must be written for its volumes first.
        volumes: Vec<VolumeWrite>,
    },
    Unschedulable(Rejection),
}

/// Why no node fits a pod.
#[derive(Clone, Debug, Default)]
pub(super) struct Rejection {
    pub(super) nodes: usize,
    /// What is wrong with the pod on every node.
    everywhere: Option<String>,
    /// By the place of the node.
    pub(super) misfits: BTreeMap<usize, Misfit>,
    /// Why the other nodes were not looked at.
    others: Option<&'static str>,
}

/// Chooses a node. The search begins at position `start` of the nodes; `seed` decides between equal nodes.
pub(super) fn choose(pod: &PodFacts, snapshot: &Snapshot, start: usize, seed: u64) -> Decision {
    let nodes = snapshot.nodes().len();
    let mut rejection = Rejection { nodes, ..Rejection::default() };
    if nodes == 0 {
        return Decision::Unschedulable(rejection);
    }
    let cycle = match SchedulingCycle::new(pod, snapshot) {
        Ok(cycle) => cycle,
        Err(problem) => {
            rejection.everywhere = Some(problem);
            return Decision::Unschedulable(rejection);
        }
    };
    let bind = |place: usize, evaluated: usize| {
        let node = snapshot.at(place);
        let volumes = cycle.volumes.writes(node, &snapshot.storage).unwrap_or_default();
        Decision::Bind { node: node.name().to_owned(), evaluated, volumes }
    };
    let nominated = pod.nominated_node.as_ref().and_then(|name| snapshot.node(name));
    if let Some((place, node)) = nominated
        && cycle.check(node).is_ok()
    {
        return bind(place, 1);
    }
    let fitting = match candidates(pod, snapshot, start) {
        Ok(candidates) => find(&cycle, candidates, nodes, &mut rejection),
        Err(problem) => {
            rejection.everywhere = Some(problem);
            Vec::new()
        }
    };
    let evaluated = fitting.len() + rejection.misfits.len();
    match fitting[..] {
        [] => Decision::Unschedulable(rejection),
        [only] => bind(only, evaluated),
        _ => bind(best(pod, &fitting, snapshot, seed), evaluated),
    }
}

/// The nodes to look at: all, or those that the pod names.
fn candidates(pod: &PodFacts, snapshot: &Snapshot, start: usize) -> Result<NodeCandidates, String> {
    match node_affinity::named_nodes(&pod.rules) {
        None => {
            let nodes = snapshot.nodes().len();
            Ok(NodeCandidates::All { start: start % nodes.max(1), nodes })
        }
        Some(names) if names.is_empty() => Err("pod affinity terms conflict".to_owned()),
        Some(names) => {
            let places = names.into_iter().filter_map(|name| snapshot.node(name));
            Ok(NodeCandidates::Named(places.map(|(place, _)| place).collect()))
        }
    }
}

enum NodeCandidates {
    All { start: usize, nodes: usize },
    Named(Vec<usize>),
}

/// The places of nodes that fit, as many as are worth comparing.
fn find(
    cycle: &SchedulingCycle<'_>,
    candidates: NodeCandidates,
    nodes: usize,
    rejection: &mut Rejection,
) -> Vec<usize> {
    let (count, start) = match &candidates {
        NodeCandidates::All { start, nodes } => (*nodes, *start),
        NodeCandidates::Named(places) => (places.len(), 0),
    };
    if matches!(candidates, NodeCandidates::Named(_)) && count < nodes {
        rejection.others = Some("node(s) didn't satisfy plugin(s) [NodeAffinity]");
    }
    let wanted = enough(count);
    let mut fitting = Vec::with_capacity(wanted);
    for number in 0..count {
        let place = match &candidates {
            NodeCandidates::All { nodes, .. } => cycle.snapshot.nth((start + number) % nodes).0,
            NodeCandidates::Named(places) => places[number],
        };
        match cycle.check(cycle.snapshot.at(place)) {
            Ok(()) => fitting.push(place),
            Err(misfit) => drop(rejection.misfits.insert(place, misfit)),
        }
        if fitting.len() == wanted {
            break;
        }
    }
    fitting
}

/// How many fitting nodes are compared. Kubernetes: the same numbers.
fn enough(nodes: usize) -> usize {
    if nodes < LEAST_TO_FIND {
        return nodes;
    }
    let percentage = 50_usize.saturating_sub(nodes / 125).max(LEAST_PERCENTAGE);
    (nodes * percentage / 100).max(LEAST_TO_FIND)
}

fn best(pod: &PodFacts, fitting: &[usize], snapshot: &Snapshot, seed: u64) -> usize {
    let constraints = snapshot.preferred_spread(pod);
    let scores = score::scores(pod, &constraints, fitting, snapshot);
    let ranked = fitting.iter().zip(scores).max_by_key(|(place, score)| (*score, mix(seed, **place)));
    ranked.map_or(fitting[0], |(place, _)| *place)
}

/// A number that depends on the seed and the place, and seems random.
fn mix(seed: u64, place: usize) -> u64 {
    // SplitMix64.
    let mut mixed = seed.wrapping_add((place as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

impl Rejection {
    /// The text of the condition and the event; `after` is what preemption says.
    pub(super) fn message(&self, after: &str) -> String {
        if self.nodes == 0 {
            return "no nodes available to schedule pods".to_owned();
        }
        let mut message = format!("0/{} nodes are available:", self.nodes);
        match &self.everywhere {
            Some(problem) => message.push_str(&format!(" {problem}.")),
            None => message.push_str(&summary(self.misfits.values(), self.nodes, self.others)),
        }
        if !after.is_empty() {
            message.push(' ');
            message.push_str(after);
        }
        message
    }

    /// What the filters that have rejected nodes look at.
    pub(super) fn filters(&self) -> Vec<FilterSubject> {
        let mut filters = Vec::new();
        let volumes = self.everywhere.is_some().then_some(FilterSubject::Volumes);
        for filter in volumes.into_iter().chain(self.misfits.values().map(|misfit| misfit.filter)) {
            if !filters.contains(&filter) {
                filters.push(filter);
            }
        }
        filters
    }
}

/// How many nodes have which problem: ` 1 Insufficient cpu, 2 Too many pods.`
pub(super) fn summary<'a>(
    misfits: impl ExactSizeIterator<Item = &'a Misfit>,
    nodes: usize,
    others: Option<&'static str>,
) -> String {
    let mut counts: BTreeMap<Cow<'static, str>, usize> = BTreeMap::new();
    let missing = nodes.saturating_sub(misfits.len());
    for reason in misfits.flat_map(|misfit| misfit.reasons.iter()) {
        *counts.entry(reason.clone()).or_default() += 1;
    }
    if let Some(reason) = others.filter(|_| missing > 0) {
        *counts.entry(reason.into()).or_default() += missing;
    }
    // Kubernetes: sorted as text, with the numbers.
    let mut counts: Vec<String> = counts.iter().map(|(reason, count)| format!("{count} {reason}")).collect();
    counts.sort();
    if counts.is_empty() { String::new() } else { format!(" {}.", counts.join(", ")) }
}

#[cfg(test)]
mod tests;
