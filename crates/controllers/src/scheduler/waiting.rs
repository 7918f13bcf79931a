//! The pods that wait for a node: by priority, with pauses after failures, and asleep until something changes.

use super::{facts::PodFacts, filter::FilterSubject};
use operator::Key;
use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};
use world::Moment;

/// Kubernetes: the pauses after attempts, which double up to the longest.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);
/// Kubernetes: a rejected pod is tried again after this time though nothing that might help has changed.
const LONGEST_SLEEP: Duration = Duration::from_secs(5 * 60);

/// What has changed in the cluster, by the pods that it may help.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ClusterChange {
    /// A node, or all of it.
    Node,
    /// A pod has left a node, or needs less of it.
    Room,
    /// A pod has come to a node, or its labels have changed.
    Pods,
    Volumes,
}

/// Higher priority first, then in the order of arrival.
type Rank = (Reverse<i32>, u64);

/// The waiting pods.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    pods: BTreeMap<Key, WaitingPod>,
    ready: BTreeMap<Rank, Key>,
    paused: BTreeSet<(Moment, Key)>,
    /// Since when.
    rejected: BTreeSet<(Moment, Key)>,
    arrivals: u64,
}

#[derive(Debug)]
struct WaitingPod {
    pod: Arc<PodFacts>,
    rank: Rank,
    attempts: u32,
    state: WaitingState,
}

#[derive(Clone, Debug)]
enum WaitingState {
    Ready,
    /// It becomes ready at this moment.
    Paused(Moment),
    /// Its attempt is in progress.
    Taken,
    /// No node fits: it waits for a change that these filters look at.
    Rejected {
        at: Moment,
        filters: Vec<FilterSubject>,
    },
    /// A node fits; the claims of the pod are being bound for it.
    WaitsForClaims {
        at: Moment,
    },
}

impl Waiting {
    /// Adds a pod, or takes note of its changes. A rejected pod is tried again if its rules or labels changed.
    pub(super) fn set(&mut self, key: &Key, pod: Arc<PodFacts>, now: Moment) {
        let Some(entry) = self.pods.get_mut(key).filter(|entry| entry.pod.uid == pod.uid) else {
            self.remove(key);
            self.arrivals += 1;
            let rank = (Reverse(pod.priority), self.arrivals);
            let state = WaitingState::Ready;
            self.pods.insert(key.clone(), WaitingPod { pod, rank, attempts: 0, state });
            self.ready.insert(rank, key.clone());
            return;
        };
        let is_changed = entry.pod.rules != pod.rules || entry.pod.labels != pod.labels;
        entry.pod = pod;
        if is_changed {
            self.wake(key, now);
        }
    }

    pub(super) fn remove(&mut self, key: &Key) -> Option<Arc<PodFacts>> {
        let entry = self.pods.remove(key)?;
        self.unlist(&entry.state, entry.rank, key);
        Some(entry.pod)
    }

    /// The next pod to find a node for.
    pub(super) fn take(&mut self, now: Moment) -> Option<(Key, Arc<PodFacts>)> {
        while let Some((due, key)) = self.paused.first().cloned().filter(|(due, _)| *due <= now) {
            self.paused.remove(&(due, key.clone()));
            if let Some(entry) = self.pods.get_mut(&key) {
                entry.state = WaitingState::Ready;
                self.ready.insert(entry.rank, key);
            }
        }
        self.wake_sleepers(now);
        let (_, key) = self.ready.pop_first()?;
        let entry = self.pods.get_mut(&key)?;
        entry.state = WaitingState::Taken;
        entry.attempts += 1;
        Some((key, Arc::clone(&entry.pod)))
    }

    /// No node fits the pod.
    pub(super) fn reject(&mut self, key: &Key, pod: Arc<PodFacts>, filters: Vec<FilterSubject>, now: Moment) {
        if let Some(entry) = self.pods.get_mut(key) {
            entry.pod = pod;
            entry.state = WaitingState::Rejected { at: now, filters };
            self.rejected.insert((now, key.clone()));
        }
    }

    /// The pod waits for its claims. That is no failure: it is tried again as soon as one of them changes.
    pub(super) fn wait_for_claims(&mut self, key: &Key, pod: Arc<PodFacts>, now: Moment) {
        if let Some(entry) = self.pods.get_mut(key) {
            entry.pod = pod;
            entry.attempts = entry.attempts.saturating_sub(1);
            entry.state = WaitingState::WaitsForClaims { at: now };
            self.rejected.insert((now, key.clone()));
        }
    }

    /// A claim has changed. Returns whether a pod that waits for it is to be tried again.
    pub(super) fn claim_changed(&mut self, claim: &Key, now: Moment) -> bool {
        let waits = |entry: &WaitingPod| {
            matches!(entry.state, WaitingState::WaitsForClaims { .. })
                && entry.pod.claim_keys().any(|it| it == *claim)
        };
        let waiting = self.rejected.iter().filter(|(_, key)| self.pods.get(key).is_some_and(waits));
        let waiting: Vec<Key> = waiting.map(|(_, key)| key.clone()).collect();
        waiting.iter().for_each(|key| self.wake(key, now));
        !waiting.is_empty()
    }

    /// The attempt has failed for another reason: the next is after a pause.
    pub(super) fn fail(&mut self, key: &Key, now: Moment) {
        let Some(entry) = self.pods.get(key) else { return };
        let (state, rank) = (entry.state.clone(), entry.rank);
        self.unlist(&state, rank, key);
        if let Some(entry) = self.pods.get_mut(key) {
            let due = now + pause(entry.attempts);
            entry.state = WaitingState::Paused(due);
            self.paused.insert((due, key.clone()));
        }
    }

    /// Something has changed that may help rejected pods. Returns whether one of them is to be tried again.
    pub(super) fn notice(&mut self, change: ClusterChange, now: Moment) -> bool {
        let is_helped = |filters: &[FilterSubject]| match change {
            ClusterChange::Node => true,
            ClusterChange::Room => {
                filters.iter().any(|filter| matches!(filter, FilterSubject::Room | FilterSubject::Pods))
            }
            ClusterChange::Pods => filters.contains(&FilterSubject::Pods),
            ClusterChange::Volumes => filters.contains(&FilterSubject::Volumes),
        };
        let helped =
            self.rejected.iter().filter(|(_, key)| match self.pods.get(key).map(|entry| &entry.state) {
                Some(WaitingState::Rejected { filters, .. }) => is_helped(filters),
                // Its node may be gone.
                Some(WaitingState::WaitsForClaims { .. }) => change == ClusterChange::Node,
                _ => false,
            });
        let helped: Vec<Key> = helped.map(|(_, key)| key.clone()).collect();
        helped.iter().for_each(|key| self.wake(key, now));
        !helped.is_empty()
    }

    /// How long until a pod is ready without a change.
    pub(super) fn next_due(&self, now: Moment) -> Option<Duration> {
        if !self.ready.is_empty() {
            return Some(Duration::ZERO);
        }
        let paused = self.paused.first().map(|(due, _)| *due);
        let sleeping = self.rejected.first().map(|(at, _)| *at + LONGEST_SLEEP);
        paused.into_iter().chain(sleeping).min().map(|due| due.since(now))
    }

    fn wake_sleepers(&mut self, now: Moment) {
        let slept = self.rejected.iter().take_while(|(at, _)| now.since(*at) >= LONGEST_SLEEP);
        let slept: Vec<Key> = slept.map(|(_, key)| key.clone()).collect();
        slept.iter().for_each(|key| self.wake(key, now));
    }

    /// Lets a rejected pod be tried again, after what is left of its pause.
    fn wake(&mut self, key: &Key, now: Moment) {
        let Some(entry) = self.pods.get_mut(key) else { return };
        let (at, due) = match entry.state {
            WaitingState::Rejected { at, .. } => (at, at + pause(entry.attempts)),
            WaitingState::WaitsForClaims { at } => (at, now),
            _ => return,
        };
        self.rejected.remove(&(at, key.clone()));
        if due <= now {
            entry.state = WaitingState::Ready;
            self.ready.insert(entry.rank, key.clone());
        } else {
            entry.state = WaitingState::Paused(due);
            self.paused.insert((due, key.clone()));
        }
    }

    fn unlist(&mut self, state: &WaitingState, rank: Rank, key: &Key) {
        match state {
            WaitingState::Ready => drop(self.ready.remove(&rank)),
            WaitingState::Paused(due) => drop(self.paused.remove(&(*due, key.clone()))),
            WaitingState::Rejected { at, .. } | WaitingState::WaitsForClaims { at } => {
                self.rejected.remove(&(*at, key.clone()));
            }
            WaitingState::Taken => {}
        }
    }
}

/// The pause after so many attempts.
fn pause(attempts: u32) -> Duration {
    let doublings = attempts.saturating_sub(1).min(31);
    FIRST_PAUSE.saturating_mul(1 << doublings).min(LONGEST_PAUSE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scheduler::facts::tests::pod;
    use serde_json::json;

    fn waiting_pod(name: &str, priority: i32) -> (Key, Arc<PodFacts>) {
        let pod = PodFacts { priority, ..pod(name, &json!({}), &json!({})) };
        (pod.key(), Arc::new(pod))
    }

    /// Runs in a world because moments come from there.
    fn with_clock(test: impl FnOnce(Moment, &mut Waiting) + Send + 'static) {
        let run = world::simulate(1, |world| async move { test(world.now(), &mut Waiting::default()) });
        run.unwrap();
    }

    fn name((key, _): (Key, Arc<PodFacts>)) -> String {
        key.name().to_owned()
    }

    #[test]
    fn pods_are_taken_by_priority_and_then_in_order_of_arrival() {
        with_clock(|now, waiting| {
            for (name, priority) in [("b", 0), ("a", 0), ("vip", 9), ("c", 0)] {
                let (key, pod) = waiting_pod(name, priority);
                waiting.set(&key, pod, now);
            }
            let order: Vec<_> = std::iter::from_fn(|| waiting.take(now).map(name)).collect();
            assert_eq!(order, ["vip", "b", "a", "c"]);
        });
    }

    #[test]
    fn rejected_pods_sleep_until_a_change_that_may_help_and_pause_longer_each_time() {
        with_clock(|now, waiting| {
            let (key, pod) = waiting_pod("a", 0);
            waiting.set(&key, Arc::clone(&pod), now);
            let mut at = now;
            for seconds in [1, 2, 4, 8, 10, 10] {
                assert!(waiting.take(at).is_some());
                waiting.reject(&key, Arc::clone(&pod), vec![FilterSubject::Room], at);
                assert!(!waiting.notice(ClusterChange::Volumes, at));
                assert!(!waiting.notice(ClusterChange::Pods, at));
                assert!(waiting.take(at).is_none());
                assert!(waiting.notice(ClusterChange::Room, at));
                assert_eq!(waiting.next_due(at), Some(Duration::from_secs(seconds)));
                assert!(waiting.take(at).is_none());
                at = at + Duration::from_secs(seconds);
            }
            assert!(waiting.take(at).is_some());
            waiting.reject(&key, pod, vec![FilterSubject::Room], at);
            assert_eq!(waiting.next_due(at), Some(LONGEST_SLEEP));
            assert!(waiting.take(at + LONGEST_SLEEP).is_some());
        });
    }

    #[test]
    fn a_pod_whose_claims_are_being_bound_is_tried_again_at_once_when_they_change() {
        with_clock(|now, waiting| {
            let spec = json!({"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]});
            let pod = Arc::new(pod("a", &json!({}), &spec));
            let key = pod.key();
            waiting.set(&key, Arc::clone(&pod), now);
            for _ in 0..3 {
                assert!(waiting.take(now).is_some());
                waiting.wait_for_claims(&key, Arc::clone(&pod), now);
                assert!(!waiting.notice(ClusterChange::Volumes, now));
                assert!(!waiting.claim_changed(&Key::parse("default/other"), now));
                assert!(waiting.take(now).is_none());
                assert!(waiting.claim_changed(&Key::parse("default/data"), now));
            }
            assert!(waiting.take(now).is_some());
            waiting.reject(&key, pod, vec![FilterSubject::Node], now);
            assert!(waiting.notice(ClusterChange::Node, now));
            assert_eq!(waiting.next_due(now), Some(FIRST_PAUSE), "it was the first attempt all the time");
        });
    }

    #[test]
    fn a_change_of_the_pod_wakes_it() {
        with_clock(|now, waiting| {
            let (key, pod) = waiting_pod("a", 0);
            waiting.set(&key, Arc::clone(&pod), now);
            waiting.take(now);
            waiting.reject(&key, Arc::clone(&pod), vec![FilterSubject::Node], now);
            waiting.set(&key, Arc::clone(&pod), now + LONGEST_PAUSE);
            assert!(waiting.take(now + LONGEST_PAUSE).is_none(), "nothing has changed");
            let mut changed = PodFacts::clone(&pod);
            changed.labels.insert("app".into(), "web".into());
            waiting.set(&key, Arc::new(changed), now + LONGEST_PAUSE);
            assert!(waiting.take(now + LONGEST_PAUSE).is_some());
        });
    }
}
