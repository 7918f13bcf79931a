//! Topology spread constraints: how unevenly matching pods may be spread over zones, nodes and the like.

use super::{facts::PodFacts, node::NodeState, node_affinity, snapshot::Snapshot, taints};
use k8s_openapi::api::core::v1::TopologySpreadConstraint;
use kube::core::{Expression, Selector, SelectorExt};
use std::collections::BTreeMap;

pub(super) const HOSTNAME: &str = "kubernetes.io/hostname";
const ZONE: &str = "topology.kubernetes.io/zone";
/// Kubernetes: the skews of its own constraints for pods without any.
const DEFAULT_HOSTNAME_SKEW: i32 = 3;
const DEFAULT_ZONE_SKEW: i32 = 5;

/// One constraint of a pod.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Constraint {
    max_skew: i32,
    topology_key: String,
    pub(super) is_required: bool,
    /// Nothing matches `None`.
    selector: Option<Selector>,
    /// The selector as text, to compare it.
    pub(super) text: String,
    min_domains: usize,
    honors_affinity: bool,
    honors_taints: bool,
}

impl Constraint {
    pub(super) fn read(
        constraint: &TopologySpreadConstraint,
        labels: &BTreeMap<String, String>,
    ) -> Constraint {
        let selector = constraint.label_selector.clone().and_then(|it| Selector::try_from(it).ok());
        let keys = constraint.match_label_keys.iter().flatten();
        let more = keys.filter_map(|key| Some(Expression::Equal(key.clone(), labels.get(key)?.clone())));
        let selector = selector.map(|mut selector| {
            selector.extend(more);
            selector
        });
        Constraint {
            max_skew: constraint.max_skew,
            topology_key: constraint.topology_key.clone(),
            is_required: constraint.when_unsatisfiable == "DoNotSchedule",
            text: selector.as_ref().map(ToString::to_string).unwrap_or_default(),
            selector,
            min_domains: usize::try_from(constraint.min_domains.unwrap_or(1)).unwrap_or(1),
            honors_affinity: constraint.node_affinity_policy.as_deref() != Some("Ignore"),
            honors_taints: constraint.node_taints_policy.as_deref() == Some("Honor"),
        }
    }

    /// Whether the pod adds to the skew. Kubernetes: pods that are being deleted do not.
    pub(super) fn counts(&self, pod: &PodFacts) -> bool {
        let selector = self.selector.as_ref().filter(|selector| !selector.selects_all());
        !pod.is_deleting && selector.is_some_and(|selector| selector.matches(&pod.labels))
    }

    /// Whether pods on this node count.
    fn includes(&self, pod: &PodFacts, node: &NodeState) -> bool {
        let rules = &pod.rules;
        (!self.honors_affinity || node_affinity::matches(rules, &node.facts))
            && (!self.honors_taints || !taints::keep_away(&node.facts.taints, &rules.tolerations))
    }
}

/// The constraints of Kubernetes for pods that belong together.
pub(super) fn defaults(selector: &Selector) -> Vec<Constraint> {
    let constraint = |topology_key: &str, max_skew| Constraint {
        max_skew,
        topology_key: topology_key.to_owned(),
        is_required: false,
        text: selector.to_string(),
        selector: Some(selector.clone()),
        min_domains: 1,
        honors_affinity: true,
        honors_taints: false,
    };
    vec![constraint(HOSTNAME, DEFAULT_HOSTNAME_SKEW), constraint(ZONE, DEFAULT_ZONE_SKEW)]
}

/// Why a node breaks a constraint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SpreadProblem {
    MissingLabel,
    Skew,
}

/// The required constraints of a pod, and how many matching pods each domain has.
#[derive(Clone, Debug)]
pub(super) struct SpreadFilter<'a> {
    domains: Vec<Domains<'a>>,
}

#[derive(Clone, Debug)]
struct Domains<'a> {
    constraint: &'a Constraint,
    /// Whether the pod itself matches.
    matches_itself: i64,
    counts: BTreeMap<&'a str, i64>,
    least: i64,
}

impl<'a> SpreadFilter<'a> {
    /// `None` if the pod has no required constraints.
    pub(super) fn new(pod: &'a PodFacts, snapshot: &'a Snapshot) -> Option<SpreadFilter<'a>> {
        let constraints: Vec<&Constraint> = pod.rules.spread.iter().filter(|it| it.is_required).collect();
        if constraints.is_empty() {
            return None;
        }
        let mut domains: Vec<Domains<'a>> = constraints.iter().map(|it| Domains::new(it, pod)).collect();
        let tracked: Vec<_> = constraints.iter().map(|it| snapshot.count(&pod.namespace, it)).collect();
        for (place, node) in snapshot.nodes() {
            if constraints.iter().any(|it| node.label(&it.topology_key).is_none()) {
                continue;
            }
            for (domains, tracked) in domains.iter_mut().zip(&tracked) {
                let constraint = domains.constraint;
                let Some(value) = node.label(&constraint.topology_key) else { continue };
                if constraint.includes(pod, node) {
                    *domains.counts.entry(value).or_default() +=
                        matching(pod, constraint, place, node, *tracked);
                }
            }
        }
        domains.iter_mut().for_each(Domains::find_least);
        Some(SpreadFilter { domains })
    }

    pub(super) fn check(&self, node: &NodeState) -> Result<(), SpreadProblem> {
        for domains in &self.domains {
            let Some(value) = node.label(&domains.constraint.topology_key) else {
                return Err(SpreadProblem::MissingLabel);
            };
            let count = domains.counts.get(value).copied().unwrap_or_default();
            if count + domains.matches_itself - domains.least > i64::from(domains.constraint.max_skew) {
                return Err(SpreadProblem::Skew);
            }
        }
        Ok(())
    }

    /// As if a pod had come to the node, or had left it.
    pub(super) fn change(&mut self, pod: &PodFacts, other: &PodFacts, node: &'a NodeState, by: i64) {
        let has_labels = |it: &Domains<'_>| node.label(&it.constraint.topology_key).is_some();
        if other.namespace != pod.namespace || !self.domains.iter().all(has_labels) {
            return;
        }
        for domains in &mut self.domains {
            let constraint = domains.constraint;
            let Some(value) = node.label(&constraint.topology_key) else { continue };
            if constraint.counts(other) && constraint.includes(pod, node) {
                *domains.counts.entry(value).or_default() += by;
                domains.find_least();
            }
        }
    }
}

impl<'a> Domains<'a> {
    fn new(constraint: &'a Constraint, pod: &PodFacts) -> Domains<'a> {
        let matches_itself = constraint.selector.as_ref().is_some_and(|it| it.matches(&pod.labels));
        Domains { constraint, matches_itself: i64::from(matches_itself), counts: BTreeMap::new(), least: 0 }
    }

    fn find_least(&mut self) {
        // With fewer domains than wanted, the missing ones count as empty.
        let is_short = self.counts.len() < self.constraint.min_domains;
        self.least = if is_short { 0 } else { self.counts.values().copied().min().unwrap_or_default() };
    }
}

/// How many pods on the node match: from the counts of the snapshot, if it keeps them.
fn matching(
    pod: &PodFacts,
    constraint: &Constraint,
    place: usize,
    node: &NodeState,
    tracked: Option<&[u32]>,
) -> i64 {
    if let Some(counts) = tracked {
        return counts.get(place).copied().unwrap_or_default().into();
    }
    let counts =
        |other: &&std::sync::Arc<PodFacts>| other.namespace == pod.namespace && constraint.counts(other);
    i64::try_from(node.pods.values().filter(counts).count()).unwrap_or(i64::MAX)
}

/// The scores of nodes by the preferred constraints: from 0 to 100. `None` without constraints.
#[expect(clippy::cast_precision_loss, clippy::cast_possible_truncation, reason = "counts of pods are small")]
pub(super) fn scores(
    pod: &PodFacts,
    constraints: &[Constraint],
    nodes: &[usize],
    snapshot: &Snapshot,
) -> Option<Vec<i64>> {
    if constraints.is_empty() {
        return None;
    }
    // Kubernetes: its own constraints also compare nodes without a zone.
    let needs_all = !pod.rules.spread.is_empty();
    let has_all = |node: &NodeState| constraints.iter().all(|it| node.label(&it.topology_key).is_some());
    let is_scored = |node: &NodeState| !needs_all || has_all(node);
    let scored = nodes.iter().filter(|place| is_scored(snapshot.at(**place))).count();
    let mut sums = vec![0.0_f64; nodes.len()];
    for constraint in constraints {
        let tracked = snapshot.count(&pod.namespace, constraint);
        let is_hostname = constraint.topology_key == HOSTNAME;
        let domains = if is_hostname {
            BTreeMap::new()
        } else {
            domain_counts(pod, constraint, nodes, snapshot, &is_scored)
        };
        let size = if is_hostname { scored } else { domains.len() };
        let weight = ((size + 2) as f64).ln();
        for (sum, place) in sums.iter_mut().zip(nodes) {
            let node = snapshot.at(*place);
            let Some(value) = node.label(&constraint.topology_key).filter(|_| is_scored(node)) else {
                continue;
            };
            let count = match is_hostname {
                true => matching(pod, constraint, *place, node, tracked),
                false => domains.get(value).copied().unwrap_or_default(),
            };
            *sum += count as f64 * weight + f64::from(constraint.max_skew - 1);
        }
    }
    let sums: Vec<i64> = sums.iter().map(|sum| sum.round() as i64).collect();
    let valid =
        || sums.iter().zip(nodes).filter(|(_, place)| is_scored(snapshot.at(**place))).map(|(sum, _)| *sum);
    let (least, most) = (valid().min().unwrap_or_default(), valid().max().unwrap_or_default());
    let normalize = |(sum, place): (&i64, &usize)| match most {
        _ if !is_scored(snapshot.at(*place)) => 0,
        0 => 100,
        _ => 100 * (most + least - sum) / most,
    };
    Some(sums.iter().zip(nodes).map(normalize).collect())
}

/// The number of matching pods in each domain that has one of the `nodes`.
fn domain_counts<'a>(
    pod: &PodFacts,
    constraint: &Constraint,
    nodes: &[usize],
    snapshot: &'a Snapshot,
    is_scored: &impl Fn(&NodeState) -> bool,
) -> BTreeMap<&'a str, i64> {
    let value = |node: &'a NodeState| node.label(&constraint.topology_key).unwrap_or_default();
    let candidates = nodes.iter().map(|place| snapshot.at(*place)).filter(|node| is_scored(node));
    let mut domains: BTreeMap<&str, i64> = candidates.map(|node| (value(node), 0)).collect();
    let tracked = snapshot.count(&pod.namespace, constraint);
    for (place, node) in snapshot.nodes() {
        let count = matching(pod, constraint, place, node, tracked);
        if count > 0
            && is_scored(node)
            && constraint.includes(pod, node)
            && let Some(sum) = domains.get_mut(value(node))
        {
            *sum += count;
        }
    }
    domains
}

#[cfg(test)]
mod tests;
