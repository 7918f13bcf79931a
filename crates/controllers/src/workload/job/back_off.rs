//! How long a Job waits after failures before it creates the next pod: 10 seconds, 20, 40, … 10 minutes.

use crate::pod;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{ContainerStatus, Pod};
use operator::Key;
use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
    time::Duration,
};

/// Kubernetes: the pause after the first failure, and the longest.
const FIRST: SignedDuration = SignedDuration::from_secs(10);
const LONGEST: SignedDuration = SignedDuration::from_mins(10);
/// The pause is the longest after fewer doublings than this.
const MOST_DOUBLINGS: usize = 16;

/// The failures since the last success.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct BackOff {
    failures: usize,
    last_failure: Option<Timestamp>,
}

impl BackOff {
    /// With pods that have ended since.
    pub(super) fn after(self, succeeded: &[&Pod], failed: &[&Pod]) -> BackOff {
        let last_success = succeeded.iter().map(|pod| finished_at(pod)).max();
        let is_later = |time: &Timestamp| last_success.is_none_or(|success| *time > success);
        let failures: Vec<Timestamp> = failed.iter().map(|pod| finished_at(pod)).filter(is_later).collect();
        let before = if last_success.is_some() { BackOff::default() } else { self };
        BackOff {
            failures: before.failures + failures.len(),
            last_failure: failures.into_iter().max().or(before.last_failure),
        }
    }

    /// How long to wait yet.
    pub(super) fn remaining(self, now: Timestamp) -> Duration {
        remaining(self.failures, self.last_failure, now)
    }
}

/// How long to wait after so many failures, the last of which was then.
pub(super) fn remaining(failures: usize, last: Option<Timestamp>, now: Timestamp) -> Duration {
    let (Some(last), 1..) = (last, failures) else { return Duration::ZERO };
    let doublings = u32::try_from((failures - 1).min(MOST_DOUBLINGS)).unwrap_or_default();
    let pause = (FIRST * 2_i32.pow(doublings)).min(LONGEST);
    Duration::try_from(pause - now.duration_since(last)).unwrap_or(Duration::ZERO)
}

/// When a pod has ended: by its containers, its readiness, its deletion; at the worst, when it was created.
pub(super) fn finished_at(pod: &Pod) -> Timestamp {
    let not_ready = || {
        let ready = pod::condition(pod, "Ready").filter(|ready| ready.status == "False")?;
        ready.last_transition_time.as_ref().map(|time| time.0)
    };
    let deleted = || {
        let at = pod.metadata.deletion_timestamp.as_ref()?.0;
        let grace = pod.metadata.deletion_grace_period_seconds.unwrap_or_default();
        at.checked_sub(SignedDuration::from_secs(grace)).ok()
    };
    let created = || pod.metadata.creation_timestamp.as_ref().map(|time| time.0);
    containers_ended(pod).or_else(not_ready).or_else(deleted).or_else(created).unwrap_or_default()
}

/// When the last container or sidecar ended; `None` if one still runs.
fn containers_ended(pod: &Pod) -> Option<Timestamp> {
    let status = pod.status.as_ref()?;
    let inits = pod.spec.as_ref().and_then(|spec| spec.init_containers.as_deref()).unwrap_or_default();
    let is_sidecar = |container: &&ContainerStatus| {
        let mut sidecars = inits.iter().filter(|init| init.restart_policy.as_deref() == Some("Always"));
        sidecars.any(|init| init.name == container.name)
    };
    let sidecars = status.init_container_statuses.iter().flatten().filter(is_sidecar);
    let ended = |container: &ContainerStatus| {
        let terminated = container.state.as_ref()?.terminated.as_ref()?;
        terminated.finished_at.as_ref().map(|time| time.0)
    };
    let containers = status.container_statuses.iter().flatten().chain(sidecars);
    containers.map(ended).collect::<Option<Vec<_>>>()?.into_iter().max()
}

/// The back-offs of the Jobs that run, by their keys.
///
/// Kubernetes: they are kept in memory. After a restart they begin with the pods that still exist.
#[derive(Debug, Default)]
pub(super) struct BackOffs(Mutex<BTreeMap<Key, (String, BackOff)>>);

impl BackOffs {
    /// The back-off of the Job with this UID.
    pub(super) fn get(&self, key: &Key, uid: &str) -> Option<BackOff> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.get(key).filter(|(of, _)| of == uid).map(|(_, back_off)| *back_off)
    }

    pub(super) fn set(&self, key: &Key, uid: &str, back_off: BackOff) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.insert(key.clone(), (uid.to_owned(), back_off));
    }

    pub(super) fn remove(&self, key: &Key) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn ended(at: &str) -> Pod {
        let state = json!({"terminated": {"exitCode": 1, "finishedAt": at}});
        let container = json!({"name": "c", "image": "i", "imageID": "", "ready": false, "restartCount": 0,
            "state": state});
        serde_json::from_value(json!({"status": {"containerStatuses": [container]}})).unwrap()
    }

    #[test]
    fn the_pause_doubles_from_ten_seconds_to_ten_minutes() {
        let last: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        for (failures, elapsed, expected) in [
            (0, 0, 0),
            (1, 0, 10),
            (1, 4, 6),
            (1, 11, 0),
            (2, 0, 20),
            (3, 0, 40),
            (6, 0, 320),
            (7, 0, 600),
            (1_000_000, 100, 500),
        ] {
            let now = last + SignedDuration::from_secs(elapsed);
            let left = remaining(failures, Some(last), now);
            assert_eq!(left, Duration::from_secs(expected), "{failures} failures, {elapsed} s ago");
        }
    }

    #[test]
    fn a_success_resets_the_back_off() {
        let [first, second, third] =
            ["2026-01-01T00:00:01Z", "2026-01-01T00:00:02Z", "2026-01-01T00:00:03Z"].map(ended);
        let two = BackOff::default().after(&[], &[&second, &first]);
        assert_eq!(two, BackOff { failures: 2, last_failure: Some(finished_at(&second)) });
        assert_eq!(two.after(&[], &[]), two);
        assert_eq!(two.after(&[], &[&third]).failures, 3);
        assert_eq!(two.after(&[&third], &[]), BackOff::default());
        let later = BackOff { failures: 1, last_failure: Some(finished_at(&third)) };
        assert_eq!(two.after(&[&second], &[&first, &third]), later);
    }

    #[test]
    fn a_pod_without_containers_has_ended_when_it_was_no_longer_ready() {
        let meta = json!({"creationTimestamp": "2026-01-01T00:00:00Z"});
        let not_ready = json!({"conditions": [
            {"type": "Ready", "status": "False", "lastTransitionTime": "2026-01-01T00:00:05Z"}]});
        let deleted = json!({"creationTimestamp": "2026-01-01T00:00:00Z",
            "deletionTimestamp": "2026-01-01T00:00:40Z", "deletionGracePeriodSeconds": 30});
        for (meta, status, expected) in [
            (&meta, json!({}), "2026-01-01T00:00:00Z"),
            (&meta, not_ready, "2026-01-01T00:00:05Z"),
            (&deleted, json!({}), "2026-01-01T00:00:10Z"),
        ] {
            let pod = serde_json::from_value(json!({"metadata": meta, "status": status})).unwrap();
            assert_eq!(finished_at(&pod).to_string(), expected);
        }
    }
}
