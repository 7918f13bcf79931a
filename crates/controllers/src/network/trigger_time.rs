//! When the change happened that leads to a write of endpoints: for the annotation by which delays are measured.

use crate::pod;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Pod, Service};
use kube::ResourceExt;
use operator::Key;
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

pub(super) const ANNOTATION: &str = "endpoints.kubernetes.io/last-change-trigger-time";

/// The times that were seen at the last reconcile of each service.
#[derive(Debug, Default)]
pub(super) struct TriggerTimes(Mutex<BTreeMap<Key, SeenTimes>>);

#[derive(Debug, Default)]
struct SeenTimes {
    service: Option<Timestamp>,
    pods: BTreeMap<String, Timestamp>,
}

impl TriggerTimes {
    /// The earliest of the changes since the last call; for a new service, its creation.
    pub(super) fn next(&self, service: &Service, pods: &[Arc<Pod>]) -> Option<Timestamp> {
        let created = service.metadata.creation_timestamp.as_ref().map(|time| time.0);
        let times = pods.iter().filter_map(|pod| Some((pod.name_any(), changed_at(pod)?))).collect();
        let seen = SeenTimes { service: created, pods: times };
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(before) = all.insert(Key::of(service), SeenTimes::default()) else {
            all.insert(Key::of(service), seen);
            return created;
        };
        let changed =
            seen.pods.iter().filter(|(name, time)| before.pods.get(*name).is_none_or(|it| it < time));
        let changed =
            changed.map(|(_, time)| *time).chain(created.filter(|time| before.service < Some(*time)));
        let earliest = changed.min();
        all.insert(Key::of(service), seen);
        earliest
    }

    /// Remembers a service whose changes do not count.
    pub(super) fn see(&self, service: &Key) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).entry(service.clone()).or_default();
    }

    pub(super) fn has_seen(&self, service: &Key) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).contains_key(service)
    }

    pub(super) fn forget(&self, service: &Key) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(service);
    }
}

fn changed_at(pod: &Pod) -> Option<Timestamp> {
    pod::condition(pod, "Ready")?.last_transition_time.as_ref().map(|time| time.0)
}

/// The text of the annotation.
pub(super) fn text(time: Timestamp) -> String {
    time.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_earliest_change_since_the_last_time_counts() {
        let times = TriggerTimes::default();
        let at = |second: u32| format!("2026-01-01T00:00:{second:02}Z");
        let service: Service = serde_json::from_value(
            json!({"metadata": {"name": "web", "namespace": "default", "creationTimestamp": at(1)}}),
        )
        .unwrap();
        let pod = |name: &str, second: u32| -> Arc<Pod> {
            let pod = json!({"metadata": {"name": name}, "status": {"conditions": [
                {"type": "Ready", "status": "True", "lastTransitionTime": at(second)}]}});
            Arc::new(serde_json::from_value(pod).unwrap())
        };
        for (pods, expected) in [
            (vec![pod("a", 5)], Some(at(1))),
            (vec![pod("a", 5)], None),
            (vec![pod("a", 9), pod("b", 7)], Some(at(7))),
            (vec![pod("a", 9)], None),
        ] {
            assert_eq!(times.next(&service, &pods).map(text), expected);
        }
    }
}
