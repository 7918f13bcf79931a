//! How many pods to create or delete, which ones, and the status after that.

use crate::pod::{self, deletion_order};
use jiff::Timestamp;
use k8s_openapi::{
    api::core::v1::{Pod, PodTemplateSpec},
    apimachinery::pkg::apis::meta::v1::Time,
};
use kube::ResourceExt;
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, sync::Arc};

/// What to do about the number of pods.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scaling {
    Keep,
    Create(usize),
    Delete(usize),
}

/// At most `burst` pods at once.
pub(super) fn scaling(wanted: usize, active: usize, burst: usize) -> Scaling {
    match (wanted.saturating_sub(active), active.saturating_sub(wanted)) {
        (0, 0) => Scaling::Keep,
        (missing, 0) => Scaling::Create(missing.min(burst)),
        (_, excess) => Scaling::Delete(excess.min(burst)),
    }
}

/// The `count` pods that are deleted first. `related` is how many related pods run on each node.
pub(super) fn pods_to_delete(
    active: &[Arc<Pod>],
    related: &BTreeMap<String, usize>,
    count: usize,
    now: Timestamp,
) -> Vec<Arc<Pod>> {
    let mut pods = active.to_vec();
    // Without a choice there is nothing to compare.
    if count < pods.len() {
        let ranked = |pod: &Arc<Pod>| related.get(pod::node_name(pod)).copied().unwrap_or_default();
        pods.sort_by(|first, second| {
            deletion_order::compare((first, ranked(first)), (second, ranked(second)), Some(now))
        });
    }
    pods.truncate(count);
    pods
}

/// The status of a ReplicaSet, and of a ReplicationController.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Status {
    replicas: i32,
    #[serde(skip_serializing_if = "is_zero")]
    fully_labeled_replicas: i32,
    #[serde(skip_serializing_if = "is_zero")]
    ready_replicas: i32,
    #[serde(skip_serializing_if = "is_zero")]
    available_replicas: i32,
    #[serde(skip_serializing_if = "Option::is_none")]
    terminating_replicas: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    observed_generation: Option<i64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    conditions: Vec<Condition>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Condition {
    #[serde(rename = "type")]
    condition_type: String,
    status: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_transition_time: Option<Time>,
    #[serde(default)]
    reason: String,
    #[serde(default)]
    message: String,
}

const REPLICA_FAILURE: &str = "ReplicaFailure";

/// What a reconcile has found and done.
#[derive(Debug)]
pub(super) struct Outcome<'a> {
    pub(super) wanted: usize,
    pub(super) active: &'a [Arc<Pod>],
    /// `None` for kinds that do not count them.
    pub(super) terminating: Option<usize>,
    pub(super) template: Option<&'a PodTemplateSpec>,
    pub(super) min_ready_seconds: i32,
    pub(super) failure: Option<String>,
    pub(super) generation: Option<i64>,
}

impl Status {
    pub(crate) fn read(status: &impl Serialize) -> Status {
        serde_json::to_value(status).and_then(serde_json::from_value).unwrap_or_default()
    }
}

pub(super) fn status(outcome: &Outcome<'_>, before: Status, now: Timestamp) -> Status {
    let count =
        |counts: &dyn Fn(&Pod) -> bool| number(outcome.active.iter().filter(|pod| counts(pod)).count());
    let template_labels = outcome.template.and_then(|template| template.metadata.as_ref()?.labels.as_ref());
    let is_fully_labeled = |pod: &Pod| {
        template_labels.into_iter().flatten().all(|(name, value)| pod.labels().get(name) == Some(value))
    };
    Status {
        replicas: number(outcome.active.len()),
        fully_labeled_replicas: count(&is_fully_labeled),
        ready_replicas: count(&pod::is_ready),
        available_replicas: count(&|pod| pod::is_available(pod, outcome.min_ready_seconds, now)),
        terminating_replicas: outcome.terminating.map(number),
        observed_generation: outcome.generation,
        conditions: conditions(outcome, before.conditions, now),
    }
}

/// Kubernetes: the first failure stays until pods can be created and deleted again.
fn conditions(outcome: &Outcome<'_>, mut conditions: Vec<Condition>, now: Timestamp) -> Vec<Condition> {
    let is_reported = conditions.iter().any(|it| it.condition_type == REPLICA_FAILURE);
    match &outcome.failure {
        None => conditions.retain(|it| it.condition_type != REPLICA_FAILURE),
        Some(message) if !is_reported => {
            let is_create = outcome.active.len() < outcome.wanted;
            conditions.push(Condition {
                condition_type: REPLICA_FAILURE.to_owned(),
                status: "True".to_owned(),
                last_transition_time: Some(Time(now)),
                reason: if is_create { "FailedCreate" } else { "FailedDelete" }.to_owned(),
                message: message.clone(),
            });
        }
        Some(_) => {}
    }
    conditions
}

fn number(count: usize) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(number: &i32) -> bool {
    *number == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn the_number_of_pods_follows_the_spec() {
        for (wanted, active, expected) in [
            (3, 3, Scaling::Keep),
            (3, 0, Scaling::Create(3)),
            (0, 3, Scaling::Delete(3)),
            (900, 100, Scaling::Create(500)),
            (100, 900, Scaling::Delete(500)),
        ] {
            assert_eq!(scaling(wanted, active, 500), expected, "{wanted} {active}");
        }
    }

    fn pod(labels: Value, ready: &str) -> Arc<Pod> {
        let pod = json!({"metadata": {"name": "p", "labels": labels}, "status": {"phase": "Running", "conditions": [
            {"type": "Ready", "status": ready, "lastTransitionTime": "2026-01-01T00:00:00Z"}]}});
        Arc::new(serde_json::from_value(pod).unwrap())
    }

    fn outcome<'a>(active: &'a [Arc<Pod>], failure: Option<&str>) -> Outcome<'a> {
        Outcome {
            wanted: 3,
            active,
            terminating: Some(1),
            template: None,
            min_ready_seconds: 0,
            failure: failure.map(str::to_owned),
            generation: Some(2),
        }
    }

    #[test]
    fn the_status_counts_pods() {
        let template =
            serde_json::from_value(json!({"metadata": {"labels": {"app": "web", "tier": "a"}}})).unwrap();
        let pods = [pod(json!({"app": "web", "tier": "a"}), "True"), pod(json!({"app": "web"}), "False")];
        let outcome = Outcome { template: Some(&template), ..outcome(&pods, None) };
        let status = status(&outcome, Status::default(), "2026-01-01T00:00:00Z".parse().unwrap());
        let expected = json!({"replicas": 2, "fullyLabeledReplicas": 1, "readyReplicas": 1, "availableReplicas": 1,
            "terminatingReplicas": 1, "observedGeneration": 2});
        assert_eq!(serde_json::to_value(status).unwrap(), expected);
    }

    #[test]
    fn the_first_failure_stays_until_it_is_over() {
        let now: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        let first = status(&outcome(&[], Some("no quota")), Status::default(), now);
        assert_eq!(first.conditions[0].reason, "FailedCreate");
        let second = status(&outcome(&[], Some("other")), first.clone(), now);
        assert_eq!(second.conditions, first.conditions);
        assert_eq!(status(&outcome(&[], None), second, now).conditions, []);
    }

    #[test]
    fn pods_on_crowded_nodes_are_deleted_first() {
        let on = |node: &str| {
            let pod = json!({"metadata": {"name": node}, "spec": {"nodeName": node, "containers": []},
                "status": {"phase": "Running"}});
            Arc::<Pod>::new(serde_json::from_value(pod).unwrap())
        };
        let related = BTreeMap::from([("a".to_owned(), 1), ("b".to_owned(), 4), ("c".to_owned(), 2)]);
        let chosen = pods_to_delete(&[on("a"), on("b"), on("c")], &related, 2, Timestamp::UNIX_EPOCH);
        let names: Vec<_> = chosen.iter().map(|pod| pod.name_any()).collect();
        assert_eq!(names, ["b", "c"]);
    }
}
