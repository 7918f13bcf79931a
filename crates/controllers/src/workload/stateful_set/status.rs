//! The status of a StatefulSet.

use super::{
    desired::{StatefulSpec, UpdateStrategy},
    identity,
};
use crate::pod;
use jiff::Timestamp;
use k8s_openapi::api::{apps::v1::StatefulSetStatus, core::v1::Pod};
use std::sync::Arc;

/// What the status is computed from.
#[derive(Debug)]
pub(super) struct StatefulCounts<'a> {
    pub(super) desired: StatefulSpec<'a>,
    pub(super) pods: &'a [Arc<Pod>],
    /// Those that were deleted to be updated.
    pub(super) deleted: &'a [Arc<Pod>],
    pub(super) current_revision: &'a str,
    pub(super) update_revision: &'a str,
    pub(super) collisions: i32,
    pub(super) now: Timestamp,
}

pub(super) fn status(counted: &StatefulCounts<'_>) -> StatefulSetStatus {
    let desired = &counted.desired;
    let count = |counts: &dyn Fn(&Arc<Pod>) -> bool| {
        i32::try_from(counted.pods.iter().filter(|pod| counts(pod)).count()).unwrap_or(i32::MAX)
    };
    let is_deleted = |pod: &Arc<Pod>| {
        pod.metadata.deletion_timestamp.is_some() || counted.deleted.iter().any(|it| Arc::ptr_eq(it, pod))
    };
    let is_ready = |pod: &Pod| pod::phase(pod) == "Running" && pod::is_ready(pod);
    let of_revision = |name: &str| count(&|pod| !is_deleted(pod) && identity::revision(pod) == name);
    let (replicas, ready) = (count(&|_| true), count(&|pod| is_ready(pod)));
    let updated = of_revision(counted.update_revision);
    let is_complete = matches!(desired.strategy, UpdateStrategy::RollingUpdate(_))
        && [replicas, ready, updated].iter().all(|count| usize::try_from(*count) == Ok(desired.replicas));
    let (current_revision, current) = match is_complete {
        true => (counted.update_revision, updated),
        false => (counted.current_revision, of_revision(counted.current_revision)),
    };
    let available =
        |pod: &Arc<Pod>| is_ready(pod) && pod::is_available(pod, desired.min_ready_seconds, counted.now);
    StatefulSetStatus {
        available_replicas: Some(count(&available)),
        collision_count: Some(counted.collisions),
        // Nothing here sets conditions; those of users stay.
        conditions: desired.set.status.as_ref().and_then(|status| status.conditions.clone()),
        current_replicas: not_zero(current),
        current_revision: Some(current_revision.to_owned()),
        observed_generation: desired.set.metadata.generation,
        ready_replicas: not_zero(ready),
        replicas,
        update_revision: Some(counted.update_revision.to_owned()),
        updated_replicas: not_zero(updated),
    }
}

/// Kubernetes: a count of zero is left out.
fn not_zero(count: i32) -> Option<i32> {
    Some(count).filter(|count| *count != 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn pod(revision: &str, phase: &str, ready: &str, deleting: Option<&str>) -> Arc<Pod> {
        let pod = json!({
            "metadata": {"name": "web-0", "deletionTimestamp": deleting,
                "labels": {"controller-revision-hash": revision}},
            "status": {"phase": phase, "conditions": [
                {"type": "Ready", "status": ready, "lastTransitionTime": "2026-01-01T00:00:00Z"}]},
        });
        Arc::new(serde_json::from_value(pod).unwrap())
    }

    fn check(replicas: i32, pods: &[Arc<Pod>], deleted: &[Arc<Pod>], expected: Value) {
        let set = json!({"metadata": {"name": "web", "generation": 7}, "spec": {"replicas": replicas,
            "minReadySeconds": 10, "selector": {}, "template": {}, "serviceName": ""}});
        let set = serde_json::from_value(set).unwrap();
        let counted = StatefulCounts {
            desired: StatefulSpec::of(&set).unwrap(),
            pods,
            deleted,
            current_revision: "a",
            update_revision: "b",
            collisions: 0,
            now: "2026-01-01T00:00:05Z".parse().unwrap(),
        };
        let mut expected = expected;
        expected["observedGeneration"] = json!(7);
        expected["collisionCount"] = json!(0);
        assert_eq!(serde_json::to_value(status(&counted)).unwrap(), expected);
    }

    #[test]
    fn the_status_counts_pods_by_state_and_revision() {
        let pods = [
            pod("a", "Running", "True", None),
            pod("b", "Pending", "False", None),
            pod("b", "Running", "True", Some("2026-01-01T00:00:00Z")),
        ];
        let expected = |current: Value| {
            let counts = json!({"replicas": 3, "readyReplicas": 2, "availableReplicas": 0, "currentReplicas": current,
                "updatedReplicas": 1, "currentRevision": "a", "updateRevision": "b"});
            let fields = counts.as_object().unwrap().iter().filter(|(_, value)| !value.is_null());
            Value::Object(fields.map(|(name, value)| (name.clone(), value.clone())).collect())
        };
        check(3, &pods, &[], expected(json!(1)));
        check(3, &pods, &pods[..1], expected(Value::Null));
    }

    #[test]
    fn the_update_revision_becomes_the_current_one_when_all_pods_have_it() {
        let pods = [pod("b", "Running", "True", None), pod("b", "Running", "True", None)];
        let counts = json!({"replicas": 2, "readyReplicas": 2, "availableReplicas": 0, "updatedReplicas": 2,
            "currentReplicas": 2, "currentRevision": "b", "updateRevision": "b"});
        check(2, &pods, &[], counts);
        let counts = json!({"replicas": 2, "readyReplicas": 2, "availableReplicas": 0, "updatedReplicas": 2,
            "currentRevision": "a", "updateRevision": "b"});
        check(3, &pods, &[], counts);
    }
}
