//! PlacementRules of pods about other pods in the same zone, on the same node and the like.

use super::{facts::PodFacts, node::NodeState, snapshot::Snapshot};
use k8s_openapi::api::core::v1::{PodAffinityTerm, WeightedPodAffinityTerm};
use kube::core::{Selector, SelectorExt};
use std::collections::BTreeMap;

/// Kubernetes: what a required rule of another pod counts when nodes are compared.
const REQUIRED_WEIGHT: i64 = 1;

/// Other pods, and the label of nodes within whose values they count as near.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct PodTerm {
    namespaces: Vec<String>,
    namespace_selector: Option<Selector>,
    /// Nothing matches `None`.
    selector: Option<Selector>,
    topology_key: String,
}

/// A term that makes nodes better, or worse if the weight is negative.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct WeightedTerm {
    term: PodTerm,
    weight: i64,
}

impl PodTerm {
    pub(super) fn read(term: &PodAffinityTerm, namespace: &str) -> PodTerm {
        let mut namespaces = term.namespaces.clone().unwrap_or_default();
        if namespaces.is_empty() && term.namespace_selector.is_none() {
            namespaces.push(namespace.to_owned());
        }
        let selector = |selector: &Option<_>| selector.clone().and_then(|it| Selector::try_from(it).ok());
        PodTerm {
            namespaces,
            namespace_selector: selector(&term.namespace_selector),
            selector: selector(&term.label_selector),
            topology_key: term.topology_key.clone(),
        }
    }

    fn matches(&self, pod: &PodFacts, snapshot: &Snapshot) -> bool {
        self.selector.as_ref().is_some_and(|selector| selector.matches(&pod.labels))
            && (self.namespaces.contains(&pod.namespace) || self.selects_namespace(&pod.namespace, snapshot))
    }

    fn selects_namespace(&self, namespace: &str, snapshot: &Snapshot) -> bool {
        let Some(selector) = &self.namespace_selector else { return false };
        match snapshot.namespaces.get(namespace) {
            Some(labels) => selector.matches(labels),
            None => selector.selects_all(),
        }
    }
}

impl WeightedTerm {
    pub(super) fn read(term: &WeightedPodAffinityTerm, sign: i64, namespace: &str) -> WeightedTerm {
        let weight = sign * i64::from(term.weight);
        WeightedTerm { term: PodTerm::read(&term.pod_affinity_term, namespace), weight }
    }
}

/// Numbers for pairs of a label and its value.
type Pairs<'a> = BTreeMap<(&'a str, &'a str), i64>;

/// Why a node breaks a rule about pods.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AffinityProblem {
    /// No pod that the pod must be near to.
    Affinity,
    /// A pod that the pod must not be near to.
    AntiAffinity,
    /// A pod that does not want the pod to be near.
    Existing,
}

/// The pods that the required rules of a pod are about, and those whose required rules are about it.
#[derive(Clone, Debug)]
pub(super) struct AffinityFilter<'a> {
    pod: &'a PodFacts,
    snapshot: &'a Snapshot,
    affinity: Pairs<'a>,
    anti_affinity: Pairs<'a>,
    existing: Pairs<'a>,
}

impl<'a> AffinityFilter<'a> {
    /// `None` if no rule is about the pod, and it has none.
    pub(super) fn new(pod: &'a PodFacts, snapshot: &'a Snapshot) -> Option<AffinityFilter<'a>> {
        let mut filter = AffinityFilter {
            pod,
            snapshot,
            affinity: Pairs::new(),
            anti_affinity: Pairs::new(),
            existing: Pairs::new(),
        };
        for node in snapshot.nodes_with_anti_affinity() {
            let excluding = node.pods.values().filter(|other| !other.rules.anti_affinity.is_empty());
            excluding.for_each(|other| filter.count_existing(other, node, 1));
        }
        let has_rules = !(pod.rules.affinity.is_empty() && pod.rules.anti_affinity.is_empty());
        if has_rules {
            for (_, node) in snapshot.nodes() {
                node.pods.values().for_each(|other| filter.count_own(other, node, 1));
            }
        }
        (has_rules || !filter.existing.is_empty()).then_some(filter)
    }

    pub(super) fn check(&self, node: &NodeState) -> Result<(), AffinityProblem> {
        if !self.has_wanted(node) {
            return Err(AffinityProblem::Affinity);
        }
        let is_near = |term: &PodTerm| {
            let value = node.label(&term.topology_key);
            value.is_some_and(|value| self.anti_affinity.contains_key(&(term.topology_key.as_str(), value)))
        };
        if self.pod.rules.anti_affinity.iter().any(is_near) {
            return Err(AffinityProblem::AntiAffinity);
        }
        let is_excluded =
            |(key, value): (&(&str, &str), &i64)| *value > 0 && node.label(key.0) == Some(key.1);
        if self.existing.iter().any(is_excluded) {
            return Err(AffinityProblem::Existing);
        }
        Ok(())
    }

    fn has_wanted(&self, node: &NodeState) -> bool {
        let terms = &self.pod.rules.affinity;
        let mut has_all = true;
        for term in terms {
            let Some(value) = node.label(&term.topology_key) else { return false };
            has_all &= self.affinity.contains_key(&(term.topology_key.as_str(), value));
        }
        // Kubernetes: the first of the pods that want to be near each other may go anywhere.
        has_all || self.affinity.is_empty() && matches_all(terms, self.pod, self.snapshot)
    }

    /// As if a pod had come to the node, or had left it.
    pub(super) fn change(&mut self, other: &'a PodFacts, node: &'a NodeState, by: i64) {
        self.count_existing(other, node, by);
        self.count_own(other, node, by);
    }

    fn count_existing(&mut self, other: &'a PodFacts, node: &'a NodeState, by: i64) {
        for term in &other.rules.anti_affinity {
            if term.matches(self.pod, self.snapshot) {
                count(&mut self.existing, node, &term.topology_key, by);
            }
        }
    }

    fn count_own(&mut self, other: &PodFacts, node: &'a NodeState, by: i64) {
        let (pod, snapshot) = (self.pod, self.snapshot);
        if matches_all(&pod.rules.affinity, other, snapshot) {
            for term in &pod.rules.affinity {
                count(&mut self.affinity, node, &term.topology_key, by);
            }
        }
        for term in pod.rules.anti_affinity.iter().filter(|term| term.matches(other, snapshot)) {
            count(&mut self.anti_affinity, node, &term.topology_key, by);
        }
    }
}

fn matches_all(terms: &[PodTerm], pod: &PodFacts, snapshot: &Snapshot) -> bool {
    !terms.is_empty() && terms.iter().all(|term| term.matches(pod, snapshot))
}

fn count<'a>(pairs: &mut Pairs<'a>, node: &'a NodeState, key: &'a str, by: i64) {
    let Some(value) = node.label(key) else { return };
    let number = pairs.entry((key, value)).or_default();
    *number += by;
    if *number == 0 {
        pairs.remove(&(key, value));
    }
}

/// The scores of nodes by the preferences of the pod and of the pods that run there: from 0 to 100. `None` if
/// there are none.
#[expect(clippy::cast_precision_loss, clippy::cast_possible_truncation, reason = "as Kubernetes rounds")]
pub(super) fn scores(pod: &PodFacts, nodes: &[usize], snapshot: &Snapshot) -> Option<Vec<i64>> {
    let mut pairs = Pairs::new();
    if pod.rules.preferred_pods.is_empty() {
        for node in snapshot.nodes_with_affinity() {
            let others = node.pods.values().filter(|other| other.has_affinity());
            others.for_each(|other| weigh(&mut pairs, pod, other, node, snapshot));
        }
    } else {
        for (_, node) in snapshot.nodes() {
            node.pods.values().for_each(|other| weigh(&mut pairs, pod, other, node, snapshot));
        }
    }
    if pairs.is_empty() {
        return None;
    }
    let score = |place: &usize| -> i64 {
        let node = snapshot.at(*place);
        pairs.iter().filter(|(pair, _)| node.label(pair.0) == Some(pair.1)).map(|(_, weight)| weight).sum()
    };
    let scores: Vec<i64> = nodes.iter().map(score).collect();
    let least = scores.iter().copied().min().unwrap_or_default();
    let range = scores.iter().copied().max().unwrap_or_default() - least;
    let normalize = |score: &i64| match range {
        0 => 0,
        _ => (100.0 * ((score - least) as f64 / range as f64)) as i64,
    };
    Some(scores.iter().map(normalize).collect())
}

fn weigh<'a>(
    pairs: &mut Pairs<'a>,
    pod: &'a PodFacts,
    other: &'a PodFacts,
    node: &'a NodeState,
    snapshot: &Snapshot,
) {
    for it in pod.rules.preferred_pods.iter().filter(|it| it.term.matches(other, snapshot)) {
        count(pairs, node, &it.term.topology_key, it.weight);
    }
    for it in other.rules.preferred_pods.iter().filter(|it| it.term.matches(pod, snapshot)) {
        count(pairs, node, &it.term.topology_key, it.weight);
    }
    for term in other.rules.affinity.iter().filter(|term| term.matches(pod, snapshot)) {
        count(pairs, node, &term.topology_key, REQUIRED_WEIGHT);
    }
}

#[cfg(test)]
mod tests;
