//! Preemption: the pods of lower priority that are deleted so that a pod fits a node.

use super::{
    choose::{Rejection, summary},
    facts::PodFacts,
    filter::{FilterSubject, Misfit, SchedulingCycle},
    node::NodeState,
    snapshot::Snapshot,
};
use jiff::Timestamp;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::core::{Selector, SelectorExt};
use operator::Key;
use std::{cmp::Reverse, collections::BTreeMap, sync::Arc};

/// Kubernetes: so many candidates are compared, of many nodes at least this percentage.
const LEAST_CANDIDATES: usize = 100;
const LEAST_CANDIDATES_PERCENTAGE: usize = 10;

/// What preemption can do for a pod.
#[derive(Clone, Debug)]
pub(super) enum Preemption {
    /// Delete these pods, the most important first: then the pod fits the node.
    Delete { node: String, victims: Vec<Arc<PodFacts>> },
    /// Nothing, for the reason that the condition of the pod says. `keeps_nomination` if victims are going.
    Nothing { message: String, keeps_nomination: bool },
}

/// How many pods a budget still allows to be deleted.
#[derive(Clone, Debug)]
pub(super) struct DisruptionBudget {
    namespace: String,
    selector: Selector,
    allowed: i32,
    /// Pods whose deletion the server has counted already.
    counted: Vec<String>,
}

struct PreemptionCandidate {
    place: usize,
    violations: usize,
    victims: Vec<Arc<PodFacts>>,
}

impl DisruptionBudget {
    /// `None` if it matches no pod.
    pub(super) fn read(budget: &PodDisruptionBudget) -> Option<DisruptionBudget> {
        let selector = budget.spec.as_ref()?.selector.clone()?;
        let selector = Selector::try_from(selector).ok().filter(|selector| !selector.selects_all())?;
        let status = budget.status.as_ref();
        let counted = status.and_then(|status| status.disrupted_pods.as_ref());
        Some(DisruptionBudget {
            namespace: budget.metadata.namespace.clone().unwrap_or_default(),
            selector,
            allowed: status.and_then(|status| status.disruptions_allowed).unwrap_or_default(),
            counted: counted.map(|pods| pods.keys().cloned().collect()).unwrap_or_default(),
        })
    }
}

/// Finds the node on which the least important pods must go.
pub(super) fn preempt(
    pod: &PodFacts,
    snapshot: &Snapshot,
    rejection: &Rejection,
    budgets: &[DisruptionBudget],
    seed: u64,
) -> Preemption {
    let nothing = |message: String, keeps_nomination| Preemption::Nothing { message, keeps_nomination };
    if !pod.may_preempt {
        return nothing("preemption: not eligible due to preemptionPolicy=Never.".to_owned(), true);
    }
    if has_victims_going(pod, snapshot, rejection) {
        let message = "preemption: not eligible due to a terminating pod on the nominated node.";
        return nothing(message.to_owned(), true);
    }
    let mut misfits = BTreeMap::new();
    let candidates = match SchedulingCycle::new(pod, snapshot) {
        Ok(cycle) => candidates(&cycle, rejection, budgets, seed, &mut misfits),
        Err(_) => Vec::new(),
    };
    let Some(best) = pick(candidates) else {
        let why =
            summary(misfits.values(), rejection.nodes, Some("Preemption is not helpful for scheduling"));
        return nothing(format!("preemption: 0/{} nodes are available:{why}", rejection.nodes), false);
    };
    Preemption::Delete { node: snapshot.at(best.place).name().to_owned(), victims: best.victims }
}

/// Whether victims of an earlier preemption for this pod have not ended yet.
fn has_victims_going(pod: &PodFacts, snapshot: &Snapshot, rejection: &Rejection) -> bool {
    let nominated = pod.nominated_node.as_ref().and_then(|name| snapshot.node(name));
    let Some((place, node)) = nominated else { return false };
    // The node no longer fits at all: another one is looked for.
    if rejection.misfits.get(&place).is_some_and(|misfit| !misfit.is_resolvable) {
        return false;
    }
    let is_going =
        |other: &Arc<PodFacts>| other.priority < pod.priority && other.is_deleting && other.is_preempted;
    node.pods.values().any(is_going)
}

fn candidates(
    cycle: &SchedulingCycle<'_>,
    rejection: &Rejection,
    budgets: &[DisruptionBudget],
    seed: u64,
    misfits: &mut BTreeMap<usize, Misfit>,
) -> Vec<PreemptionCandidate> {
    let resolvable = rejection.misfits.iter().filter(|(_, misfit)| misfit.is_resolvable);
    let places: Vec<usize> = resolvable.map(|(place, _)| *place).collect();
    if places.is_empty() {
        return Vec::new();
    }
    let enough = (places.len() * LEAST_CANDIDATES_PERCENTAGE / 100).max(LEAST_CANDIDATES).min(places.len());
    let start = usize::try_from(seed % places.len() as u64).unwrap_or_default();
    let mut found: Vec<PreemptionCandidate> = Vec::new();
    for place in places.iter().cycle().skip(start).take(places.len()) {
        match victims(cycle, *place, budgets) {
            Ok(candidate) => found.push(candidate),
            Err(misfit) => drop(misfits.insert(*place, misfit)),
        }
        if found.len() >= enough && found.iter().any(|it| it.violations == 0) {
            break;
        }
    }
    found
}

/// The pods that must go so that the pod fits this node.
fn victims(
    cycle: &SchedulingCycle<'_>,
    place: usize,
    budgets: &[DisruptionBudget],
) -> Result<PreemptionCandidate, Misfit> {
    let pod = cycle.pod;
    let original = cycle.snapshot.at(place);
    let (mut cycle, mut node) = (cycle.clone(), original.clone());
    let mut lower: Vec<(&Key, &Arc<PodFacts>)> =
        original.pods.iter().filter(|(_, other)| other.priority < pod.priority).collect();
    if lower.is_empty() {
        let reasons = vec!["No preemption victims found for incoming pod".into()];
        return Err(Misfit { filter: FilterSubject::Room, reasons, is_resolvable: false });
    }
    for (key, other) in &lower {
        node.remove(key);
        cycle.change(other, original, -1);
    }
    cycle.check_changed(&node, original)?;
    lower.sort_by_key(|(key, other)| (Reverse(other.priority), start_of(other), *key));
    let (violating, harmless): (Vec<_>, Vec<_>) = split_by_budget(&lower, budgets);
    let mut victims = Vec::new();
    let mut keep_or_delete = |candidates: &[(&Key, &'_ Arc<PodFacts>)], node: &mut NodeState| -> usize {
        let before = victims.len();
        for (key, other) in candidates {
            node.add((*key).clone(), Arc::clone(other));
            let Some(kept) = original.pods.get(*key) else { continue };
            cycle.change(kept, original, 1);
            if cycle.check_changed(node, original).is_err() {
                node.remove(key);
                cycle.change(kept, original, -1);
                victims.push(Arc::clone(other));
            }
        }
        victims.len() - before
    };
    // Pods that a budget protects are kept first.
    let violations = keep_or_delete(&violating, &mut node);
    keep_or_delete(&harmless, &mut node);
    victims.sort_by_key(|victim| (Reverse(victim.priority), start_of(victim)));
    Ok(PreemptionCandidate { place, violations, victims })
}

type PodsByKey<'a> = Vec<(&'a Key, &'a Arc<PodFacts>)>;

/// The pods whose deletion would break a budget, and the others.
fn split_by_budget<'a>(
    pods: &[(&'a Key, &'a Arc<PodFacts>)],
    budgets: &[DisruptionBudget],
) -> (PodsByKey<'a>, PodsByKey<'a>) {
    let mut allowed: Vec<i32> = budgets.iter().map(|budget| budget.allowed).collect();
    pods.iter().partition(|(_, pod)| {
        let mut is_violation = false;
        for (budget, allowed) in budgets.iter().zip(&mut allowed) {
            let is_about = budget.namespace == pod.namespace
                && !pod.labels.is_empty()
                && budget.selector.matches(&pod.labels);
            if is_about && !budget.counted.contains(&pod.name) {
                *allowed -= 1;
                is_violation |= *allowed < 0;
            }
        }
        is_violation
    })
}

/// The node with the fewest violations, then the least important victims, then the fewest, then the youngest.
fn pick(candidates: Vec<PreemptionCandidate>) -> Option<PreemptionCandidate> {
    let candidates = candidates.into_iter().filter(|candidate| !candidate.victims.is_empty());
    candidates.min_by_key(|candidate| {
        let priorities = candidate.victims.iter().map(|victim| i64::from(victim.priority));
        let highest = priorities.clone().max().unwrap_or_default();
        // Kubernetes: all are above zero, so that fewer victims are better also if priorities are negative.
        let sum: i64 = priorities.map(|priority| priority + i64::from(i32::MAX) + 1).sum();
        let important = candidate.victims.iter().filter(|it| i64::from(it.priority) == highest);
        let earliest = important.map(|victim| start_of(victim)).min();
        (candidate.violations, highest, sum, candidate.victims.len(), Reverse(earliest))
    })
}

/// A pod that has not started is the youngest.
fn start_of(pod: &PodFacts) -> Timestamp {
    pod.started.unwrap_or(Timestamp::MAX)
}

#[cfg(test)]
mod tests;
