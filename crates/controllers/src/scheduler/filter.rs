//! Whether a pod may run on a node: the filters of Kubernetes' default profile, in its order.

use super::{
    facts::PodFacts,
    node::NodeState,
    node_affinity,
    pod_affinity::{AffinityFilter, AffinityProblem},
    resources::Resources,
    snapshot::Snapshot,
    spread::{SpreadFilter, SpreadProblem},
    taints,
    volumes::PodVolumes,
};
use operator::Key;
use std::{borrow::Cow, sync::Arc};

/// What a filter looks at: it says which changes may help a pod that it has rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FilterSubject {
    /// The node object alone.
    Node,
    /// What the pods on the node take up.
    Room,
    Volumes,
    /// Labels of pods.
    Pods,
}

/// Why a pod cannot run on a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Misfit {
    pub(super) filter: FilterSubject,
    /// Kubernetes: users see these texts.
    pub(super) reasons: Vec<Cow<'static, str>>,
    /// Whether it may fit after other pods are deleted.
    pub(super) is_resolvable: bool,
}

/// One attempt to find a node for a pod: what the filters have computed for all nodes.
#[derive(Clone, Debug)]
pub(super) struct SchedulingCycle<'a> {
    pub(super) pod: &'a PodFacts,
    pub(super) snapshot: &'a Snapshot,
    pub(super) volumes: PodVolumes,
    spread: Option<SpreadFilter<'a>>,
    affinity: Option<AffinityFilter<'a>>,
}

impl<'a> SchedulingCycle<'a> {
    /// An error says why the pod cannot run on any node.
    pub(super) fn new(pod: &'a PodFacts, snapshot: &'a Snapshot) -> Result<SchedulingCycle<'a>, String> {
        Ok(SchedulingCycle {
            pod,
            snapshot,
            volumes: PodVolumes::new(pod, &snapshot.storage)?,
            spread: SpreadFilter::new(pod, snapshot),
            affinity: AffinityFilter::new(pod, snapshot),
        })
    }

    /// Whether the pod fits the node, also after those have come for which victims are deleted there.
    pub(super) fn check(&self, node: &'a NodeState) -> Result<(), Misfit> {
        self.check_changed(node, node)
    }

    /// [`SchedulingCycle::check`] of a node whose pods differ from those in the snapshot.
    pub(super) fn check_changed(&self, node: &NodeState, original: &'a NodeState) -> Result<(), Misfit> {
        let coming: Vec<(&Key, &'a Arc<PodFacts>)> = self
            .snapshot
            .nominated_on(node.name())
            .filter(|(_, other)| other.priority >= self.pod.priority && other.uid != self.pod.uid)
            .collect();
        if !coming.is_empty() {
            let (mut cycle, mut crowded) = (self.clone(), node.clone());
            for (key, other) in coming {
                crowded.add(key.clone(), Arc::clone(other));
                cycle.change(other, original, 1);
            }
            cycle.check_alone(&crowded)?;
        }
        self.check_alone(node)
    }

    /// As if a pod had come to the node, or had left it.
    pub(super) fn change(&mut self, other: &'a PodFacts, node: &'a NodeState, by: i64) {
        self.volumes.change(other, by);
        if let Some(spread) = &mut self.spread {
            spread.change(self.pod, other, node, by);
        }
        if let Some(affinity) = &mut self.affinity {
            affinity.change(other, node, by);
        }
    }

    // There is no filter for `spec.nodeName`: a pod that has one is not scheduled.
    fn check_alone(&self, node: &NodeState) -> Result<(), Misfit> {
        let (pod, rules) = (self.pod, &self.pod.rules);
        if node.facts.is_unschedulable && !taints::tolerates_unschedulable(&rules.tolerations) {
            return Err(Misfit::of_node("node(s) were unschedulable"));
        }
        if taints::keep_away(&node.facts.taints, &rules.tolerations) {
            return Err(Misfit::of_node("node(s) had untolerated taint(s)"));
        }
        if !node_affinity::matches(rules, &node.facts) {
            return Err(Misfit::of_node("node(s) didn't match Pod's node affinity/selector"));
        }
        if !node.has_ports_for(pod) {
            let reason = "node(s) didn't have free ports for the requested pod ports";
            return Err(Misfit::new(FilterSubject::Room, reason, true));
        }
        check_room(&rules.requests, node)?;
        if self.volumes.has_other_users() {
            let reason = "node has pod using PersistentVolumeClaim with the same name and ReadWriteOncePod access mode";
            return Err(Misfit::new(FilterSubject::Room, reason, true));
        }
        let problems = self.volumes.problems(node, &self.snapshot.storage);
        if !problems.is_empty() {
            let reasons = problems.into_iter().map(Cow::Borrowed).collect();
            return Err(Misfit { filter: FilterSubject::Volumes, reasons, is_resolvable: false });
        }
        if let Some(Err(problem)) = self.spread.as_ref().map(|spread| spread.check(node)) {
            return Err(Misfit::of_spread(problem));
        }
        if let Some(Err(problem)) = self.affinity.as_ref().map(|affinity| affinity.check(node)) {
            return Err(Misfit::of_affinity(problem));
        }
        Ok(())
    }
}

fn check_room(requests: &Resources, node: &NodeState) -> Result<(), Misfit> {
    let (has, used) = (&node.facts.allocatable, &node.requested);
    let (mut reasons, mut is_resolvable): (Vec<Cow<'static, str>>, bool) = (Vec::new(), true);
    if node.pods.len() + 1 > node.facts.most_pods {
        reasons.push("Too many pods".into());
    }
    if !requests.is_zero() {
        let mut check = |wanted: i64, has: i64, used: i64, reason: &dyn Fn() -> Cow<'static, str>| {
            if wanted > 0 && wanted > has - used {
                reasons.push(reason());
                is_resolvable &= wanted <= has;
            }
        };
        check(requests.cpu, has.cpu, used.cpu, &|| "Insufficient cpu".into());
        check(requests.memory, has.memory, used.memory, &|| "Insufficient memory".into());
        let storage = (requests.ephemeral_storage, has.ephemeral_storage, used.ephemeral_storage);
        check(storage.0, storage.1, storage.2, &|| "Insufficient ephemeral-storage".into());
        for (name, wanted) in &requests.others {
            check(*wanted, has.other(name), used.other(name), &|| format!("Insufficient {name}").into());
        }
    }
    if reasons.is_empty() {
        Ok(())
    } else {
        Err(Misfit { filter: FilterSubject::Room, reasons, is_resolvable })
    }
}

impl Misfit {
    fn new(filter: FilterSubject, reason: &'static str, is_resolvable: bool) -> Misfit {
        Misfit { filter, reasons: vec![reason.into()], is_resolvable }
    }

    fn of_node(reason: &'static str) -> Misfit {
        Misfit::new(FilterSubject::Node, reason, false)
    }

    fn of_spread(problem: SpreadProblem) -> Misfit {
        match problem {
            SpreadProblem::MissingLabel => Misfit::of_node(
                "node(s) didn't match pod topology spread constraints (missing required label)",
            ),
            SpreadProblem::Skew => {
                Misfit::new(FilterSubject::Pods, "node(s) didn't match pod topology spread constraints", true)
            }
        }
    }

    fn of_affinity(problem: AffinityProblem) -> Misfit {
        let (reason, is_resolvable) = match problem {
            AffinityProblem::Affinity => ("node(s) didn't match pod affinity rules", false),
            AffinityProblem::AntiAffinity => ("node(s) didn't match pod anti-affinity rules", true),
            AffinityProblem::Existing => ("node(s) didn't satisfy existing pods anti-affinity rules", true),
        };
        Misfit::new(FilterSubject::Pods, reason, is_resolvable)
    }
}

#[cfg(test)]
mod tests;
