//! The state of the scheduler: the cluster, the waiting pods, and those whose binding is on its way.

use super::{
    choose::{self, Decision, Rejection},
    facts::PodFacts,
    node::NodeFacts,
    preempt::{self, DisruptionBudget, Preemption},
    snapshot::Snapshot,
    volumes::VolumeWrite,
    waiting::{ClusterChange, Waiting},
};
use operator::Key;
use std::{collections::BTreeMap, sync::Arc, time::Duration};
use world::Moment;

#[derive(Debug, Default)]
pub(super) struct SchedulerState {
    pub(super) snapshot: Snapshot,
    pub(super) waiting: Waiting,
    pub(super) budgets: BTreeMap<Key, DisruptionBudget>,
    /// Pods that count as being on their node though the cache does not show it yet.
    assumed: BTreeMap<Key, Assumed>,
    /// Where the next search for nodes begins, so that all nodes are looked at in turn.
    start: usize,
}

#[derive(Debug)]
struct Assumed {
    uid: String,
    node: String,
}

/// What to do for one pod.
#[derive(Debug)]
pub(super) enum SchedulingStep {
    Bind {
        pod: Arc<PodFacts>,
        node: String,
    },
    /// Volumes must be bound first; the pod is tried again when its claims change.
    PrepareVolumes {
        pod: Arc<PodFacts>,
        node: String,
        writes: Vec<VolumeWrite>,
    },
    Reject(RejectedPod),
}

/// A pod that no node fits.
#[derive(Debug)]
pub(super) struct RejectedPod {
    /// As it was before the attempt.
    pub(super) pod: Arc<PodFacts>,
    pub(super) message: String,
    /// The node on which the victims make room.
    pub(super) nominated_node: Option<String>,
    pub(super) victims: Vec<Arc<PodFacts>>,
}

impl SchedulerState {
    /// Takes note of a pod in the cache. Returns whether there is something to do.
    pub(super) fn set_pod(&mut self, key: &Key, pod: PodFacts, now: Moment) -> bool {
        let pod = Arc::new(pod);
        let before = self.snapshot.pod(key).cloned();
        if before.as_ref().is_some_and(|before| before.uid != pod.uid) {
            self.remove_pod(key, now);
        }
        if pod.is_assigned() {
            return self.set_assigned(key, &pod, before, now);
        }
        if pod.is_pending() {
            if let Some(assumed) = self.assumed.get(key) {
                self.snapshot.set_pod(key, pod, &assumed.node);
                return false;
            }
            let nominated = pod.nominated_node.clone();
            self.snapshot.nominate(key, &pod, nominated.as_deref());
            self.waiting.set(key, pod, now);
            return true;
        }
        self.remove_pod(key, now)
    }

    fn set_assigned(
        &mut self,
        key: &Key,
        pod: &Arc<PodFacts>,
        before: Option<Arc<PodFacts>>,
        now: Moment,
    ) -> bool {
        let is_confirmed = self.assumed.remove(key).is_some();
        self.waiting.remove(key);
        self.snapshot.nominate(key, pod, None);
        let node = pod.node.clone().unwrap_or_default();
        self.snapshot.set_pod(key, Arc::clone(pod), &node);
        let Some(before) = before.filter(|_| !is_confirmed) else {
            return self.waiting.notice(ClusterChange::Pods, now);
        };
        let is_relabelled = before.labels != pod.labels || before.is_deleting != pod.is_deleting;
        let is_smaller = before.rules.requests != pod.rules.requests;
        let has_woken = is_relabelled && self.waiting.notice(ClusterChange::Pods, now);
        is_smaller && self.waiting.notice(ClusterChange::Room, now) || has_woken
    }

    /// The pod is gone, has ended, or must not be scheduled.
    pub(super) fn remove_pod(&mut self, key: &Key, now: Moment) -> bool {
        self.assumed.remove(key);
        if let Some(pod) = self.waiting.remove(key) {
            self.snapshot.nominate(key, &pod, None);
        }
        self.snapshot.remove_pod(key).is_some() && self.waiting.notice(ClusterChange::Room, now)
    }

    pub(super) fn set_node(&mut self, node: NodeFacts, now: Moment) -> bool {
        self.snapshot.set_node(node) && self.waiting.notice(ClusterChange::Node, now)
    }

    /// Decides about the next pod; `None` if none is ready.
    pub(super) fn step(&mut self, now: Moment, seed: u64) -> Option<SchedulingStep> {
        let (key, pod) = self.waiting.take(now)?;
        let mut constraints = self.snapshot.preferred_spread(&pod);
        constraints.extend(pod.rules.spread.iter().filter(|it| it.is_required).cloned());
        self.snapshot.prepare(&pod, &constraints);
        Some(match choose::choose(&pod, &self.snapshot, self.start, seed) {
            Decision::Bind { node, evaluated, volumes } => {
                self.advance(evaluated);
                if volumes.is_empty() {
                    self.assume(&key, &pod, &node);
                    SchedulingStep::Bind { pod, node }
                } else {
                    // As in Kubernetes the pod has its place until its volumes are there.
                    let nominated =
                        Arc::new(PodFacts { nominated_node: Some(node.clone()), ..PodFacts::clone(&pod) });
                    self.snapshot.nominate(&key, &nominated, Some(&node));
                    self.waiting.wait_for_claims(&key, nominated, now);
                    SchedulingStep::PrepareVolumes { pod, node, writes: volumes }
                }
            }
            Decision::Unschedulable(rejection) => {
                self.advance(rejection.misfits.len());
                SchedulingStep::Reject(self.reject(&key, pod, &rejection, now, seed))
            }
        })
    }

    fn reject(
        &mut self,
        key: &Key,
        pod: Arc<PodFacts>,
        rejection: &Rejection,
        now: Moment,
        seed: u64,
    ) -> RejectedPod {
        let budgets: Vec<DisruptionBudget> = self.budgets.values().cloned().collect();
        let preemption = match rejection.nodes {
            0 => Preemption::Nothing { message: String::new(), keeps_nomination: true },
            _ => preempt::preempt(&pod, &self.snapshot, rejection, &budgets, seed),
        };
        let (after, nominated_node, victims) = match preemption {
            Preemption::Delete { node, victims } => (String::new(), Some(node), victims),
            Preemption::Nothing { message, keeps_nomination } => {
                // Kubernetes: the first words are those of the plugin for dynamic resources.
                let after = format!("no new claims to deallocate, {message}");
                (after, pod.nominated_node.clone().filter(|_| keeps_nomination), Vec::new())
            }
        };
        let rejected = Arc::new(PodFacts { nominated_node: nominated_node.clone(), ..PodFacts::clone(&pod) });
        self.snapshot.nominate(key, &rejected, nominated_node.as_deref());
        self.waiting.reject(key, rejected, rejection.filters(), now);
        RejectedPod { pod, message: rejection.message(&after), nominated_node, victims }
    }

    /// The binding was accepted: from now on the cache tells about the pod.
    pub(super) fn bound(&mut self, key: &Key) {
        self.waiting.remove(key);
    }

    /// The binding has failed: the pod takes up no room, and is tried again after a pause.
    pub(super) fn not_bound(&mut self, key: &Key, now: Moment) {
        if self.assumed.remove(key).is_some() {
            self.snapshot.remove_pod(key);
            self.waiting.notice(ClusterChange::Room, now);
            self.waiting.fail(key, now);
        }
    }

    /// How long until a pod becomes ready by itself.
    pub(super) fn next_due(&self, now: Moment) -> Option<Duration> {
        self.waiting.next_due(now)
    }

    fn assume(&mut self, key: &Key, pod: &Arc<PodFacts>, node: &str) {
        let assumed = Assumed { uid: pod.uid.clone(), node: node.to_owned() };
        tracing::trace!(pod = %key, uid = assumed.uid, node, "assumed");
        self.snapshot.nominate(key, pod, None);
        self.snapshot.set_pod(key, Arc::clone(pod), node);
        self.assumed.insert(key.clone(), assumed);
    }

    fn advance(&mut self, evaluated: usize) {
        let nodes = self.snapshot.nodes().len().max(1);
        self.start = (self.start + evaluated) % nodes;
    }
}
