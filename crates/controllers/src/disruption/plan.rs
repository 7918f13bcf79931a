//! How many pods of a budget may be disrupted, and which of its promises have expired.

use crate::{
    int_or_percent::{NotAPercentage, Rounding, scaled},
    pod,
};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::{
    api::{
        core::v1::{Pod, PodCondition},
        policy::v1::{PodDisruptionBudget, PodDisruptionBudgetSpec, PodDisruptionBudgetStatus},
    },
    apimachinery::pkg::{
        apis::meta::v1::{Condition, Time},
        util::intstr::IntOrString,
    },
};
use kube::ResourceExt;
use std::{collections::BTreeMap, sync::Arc, time::Duration};

/// Kubernetes: an evicted pod that is not being deleted after this time counts as healthy again.
const DELETION_TIMEOUT: SignedDuration = SignedDuration::from_mins(2);
/// Kubernetes: the same for the condition of the pod.
const STALE_TARGET_TIMEOUT: SignedDuration = SignedDuration::from_mins(2);

const DISRUPTION_ALLOWED: &str = "DisruptionAllowed";
const DISRUPTION_TARGET: &str = "DisruptionTarget";
/// Kubernetes: the kubelet sets the condition long before the pod is deleted.
const BY_KUBELET: &str = "TerminationByKubelet";

/// How many pods there should be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Expected {
    pub(super) pods: i32,
    pub(super) healthy: i32,
}

/// What a look at the pods of a budget has shown.
#[derive(Debug)]
pub(super) struct Counted {
    pub(super) status: PodDisruptionBudgetStatus,
    /// Evicted pods that are not being deleted.
    pub(super) overdue: Vec<Arc<Pod>>,
    /// When the next eviction expires.
    pub(super) check_after: Option<Duration>,
}

/// Whether the number of replicas must be known that the controllers of the pods want.
pub(super) fn needs_scale(spec: &PodDisruptionBudgetSpec) -> bool {
    spec.max_unavailable.is_some() || matches!(spec.min_available, Some(IntOrString::String(_)))
}

/// `scale` is the number of replicas that the controllers of the pods want.
pub(super) fn expected(
    spec: &PodDisruptionBudgetSpec,
    pods: usize,
    scale: i32,
) -> Result<Expected, NotAPercentage> {
    match (&spec.max_unavailable, &spec.min_available) {
        (Some(max_unavailable), _) => {
            let unavailable = scaled(max_unavailable, scale, Rounding::Up)?;
            Ok(Expected { pods: scale, healthy: (scale - unavailable).max(0) })
        }
        (None, Some(IntOrString::Int(healthy))) => {
            Ok(Expected { pods: i32::try_from(pods).unwrap_or(i32::MAX), healthy: *healthy })
        }
        (None, Some(percent)) => Ok(Expected { pods: scale, healthy: scaled(percent, scale, Rounding::Up)? }),
        (None, None) => Ok(Expected::default()),
    }
}

pub(super) fn count(
    budget: &PodDisruptionBudget,
    pods: &[Arc<Pod>],
    expected: Expected,
    now: Timestamp,
) -> Counted {
    let before = budget.status.clone().unwrap_or_default();
    let promised = before.disrupted_pods.unwrap_or_default();
    let (mut disrupted, mut overdue, mut next) = (BTreeMap::new(), Vec::new(), None);
    let mut healthy = 0;
    for pod in pods.iter().filter(|pod| pod.metadata.deletion_timestamp.is_none()) {
        let name = pod.name_any();
        if let Some(since) = promised.get(&name) {
            let until = since.0 + DELETION_TIMEOUT;
            if until > now {
                next = next.into_iter().chain([until]).min();
                disrupted.insert(name, since.clone());
                continue;
            }
            overdue.push(Arc::clone(pod));
        }
        healthy += i32::from(pod::is_ready(pod));
    }
    let spare = (healthy - expected.healthy).max(0);
    // Kubernetes: without pods nothing is allowed, so that the first ones are safe before they are counted.
    let allowed = if expected.pods > 0 { spare } else { 0 };
    let (status, reason) =
        if allowed > 0 { ("True", "SufficientPods") } else { ("False", "InsufficientPods") };
    let generation = budget.metadata.generation;
    let condition = (status, reason, "");
    let status = PodDisruptionBudgetStatus {
        current_healthy: Some(healthy),
        desired_healthy: Some(expected.healthy),
        expected_pods: Some(expected.pods),
        disruptions_allowed: Some(allowed),
        disrupted_pods: (!disrupted.is_empty()).then_some(disrupted),
        observed_generation: generation,
        conditions: Some(with_allowed(before.conditions, condition, generation, now)),
    };
    let wait = |until: Timestamp| Duration::try_from(until.duration_since(now)).unwrap_or_default();
    Counted { status, overdue, check_after: next.map(wait) }
}

/// The status if the expected number of pods is unknown.
pub(super) fn failed(
    budget: &PodDisruptionBudget,
    message: &str,
    now: Timestamp,
) -> PodDisruptionBudgetStatus {
    let before = budget.status.clone().unwrap_or_default();
    let condition = ("False", "SyncFailed", message);
    PodDisruptionBudgetStatus {
        disruptions_allowed: Some(0),
        current_healthy: before.current_healthy.or(Some(0)),
        desired_healthy: before.desired_healthy.or(Some(0)),
        expected_pods: before.expected_pods.or(Some(0)),
        conditions: Some(with_allowed(before.conditions, condition, before.observed_generation, now)),
        ..before
    }
}

fn with_allowed(
    conditions: Option<Vec<Condition>>,
    (status, reason, message): (&str, &str, &str),
    generation: Option<i64>,
    now: Timestamp,
) -> Vec<Condition> {
    let mut conditions = conditions.unwrap_or_default();
    let mut new = Condition {
        type_: DISRUPTION_ALLOWED.to_owned(),
        status: status.to_owned(),
        reason: reason.to_owned(),
        message: message.to_owned(),
        observed_generation: generation,
        last_transition_time: Time(now),
    };
    match conditions.iter_mut().find(|known| known.type_ == DISRUPTION_ALLOWED) {
        Some(known) => {
            if known.status == new.status {
                new.last_transition_time = known.last_transition_time.clone();
            }
            *known = new;
        }
        None => conditions.push(new),
    }
    conditions
}

/// How long until the condition DisruptionTarget of a pod is stale; `None` if it never will be.
pub(super) fn stale_after(pod: &Pod, now: Timestamp) -> Option<Duration> {
    let target = pod::condition(pod, DISRUPTION_TARGET).filter(|target| target.status == "True")?;
    let is_by_kubelet = target.reason.as_deref() == Some(BY_KUBELET);
    if is_by_kubelet || pod.metadata.deletion_timestamp.is_some() || pod::is_finished(pod) {
        return None;
    }
    let since = target.last_transition_time.as_ref().map_or(Timestamp::UNIX_EPOCH, |time| time.0);
    let left = (since + STALE_TARGET_TIMEOUT).duration_since(now);
    Some(Duration::try_from(left).unwrap_or_default())
}

/// The pod with the condition DisruptionTarget set to False.
pub(super) fn without_target(pod: &Pod, now: Timestamp) -> Pod {
    let mut pod = pod.clone();
    let generation = pod.metadata.generation;
    let Some(status) = &mut pod.status else { return pod };
    let counts_generations = status.observed_generation.is_some();
    for target in status.conditions.iter_mut().flatten().filter(|it| it.type_ == DISRUPTION_TARGET) {
        let counts_generations = counts_generations || target.observed_generation.is_some();
        *target = PodCondition {
            type_: DISRUPTION_TARGET.to_owned(),
            status: "False".to_owned(),
            observed_generation: generation.filter(|_| counts_generations),
            last_transition_time: Some(Time(now)),
            ..PodCondition::default()
        };
    }
    pod
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    const NOW: &str = "2026-01-01T00:10:00Z";

    fn now() -> Timestamp {
        NOW.parse().unwrap()
    }

    #[test]
    fn percentages_count_from_the_scale_and_numbers_from_the_pods() {
        for (spec, pods, scale, expected_pods, healthy) in [
            (json!({"minAvailable": 2}), 5, 0, 5, 2),
            (json!({"minAvailable": "50%"}), 5, 7, 7, 4),
            (json!({"maxUnavailable": 1}), 5, 7, 7, 6),
            (json!({"maxUnavailable": "25%"}), 5, 10, 10, 7),
            (json!({"maxUnavailable": 9}), 5, 7, 7, 0),
            (json!({}), 5, 7, 0, 0),
        ] {
            let found = expected(&serde_json::from_value(spec.clone()).unwrap(), pods, scale);
            assert_eq!(found, Ok(Expected { pods: expected_pods, healthy }), "{spec}");
        }
    }

    fn pod(name: &str, ready: bool, is_deleting: bool) -> Arc<Pod> {
        let deleted = is_deleting.then_some(NOW);
        let status = if ready { "True" } else { "False" };
        let pod = json!({"metadata": {"name": name, "deletionTimestamp": deleted},
            "status": {"conditions": [{"type": "Ready", "status": status}]}});
        Arc::new(serde_json::from_value(pod).unwrap())
    }

    fn budget(status: &Value) -> PodDisruptionBudget {
        let budget = json!({"metadata": {"name": "web", "generation": 3}, "status": status});
        serde_json::from_value(budget).unwrap()
    }

    #[test]
    fn evicted_pods_are_unhealthy_until_their_time_is_over() {
        let pods =
            [pod("a", true, false), pod("b", true, false), pod("c", true, false), pod("d", false, false)];
        let disrupted = json!({"disruptedPods":
            {"a": "2026-01-01T00:09:00Z", "b": "2026-01-01T00:07:00Z", "gone": "2026-01-01T00:09:00Z"}});
        let expected = Expected { pods: 4, healthy: 1 };
        let found = count(&budget(&disrupted), &pods, expected, now());
        assert_eq!(
            serde_json::to_value(&found.status).unwrap(),
            json!({
                "currentHealthy": 2, "desiredHealthy": 1, "expectedPods": 4, "disruptionsAllowed": 1,
                "disruptedPods": {"a": "2026-01-01T00:09:00Z"}, "observedGeneration": 3,
                "conditions": [{"type": "DisruptionAllowed", "status": "True", "reason": "SufficientPods",
                    "message": "", "observedGeneration": 3, "lastTransitionTime": NOW}],
            })
        );
        let overdue: Vec<_> = found.overdue.iter().map(|pod| pod.name_any()).collect();
        assert_eq!(overdue, ["b"]);
        assert_eq!(found.check_after, Some(Duration::from_secs(60)));
    }

    #[test]
    fn disruptions_are_allowed_only_beyond_the_healthy_pods_that_are_desired() {
        for (pods, expected, healthy, allowed, reason) in [
            (vec![pod("a", true, false), pod("b", true, false)], (2, 1), 2, 1, "SufficientPods"),
            (vec![pod("a", true, false), pod("b", true, true)], (2, 1), 1, 0, "InsufficientPods"),
            (vec![pod("a", false, false)], (1, 1), 0, 0, "InsufficientPods"),
            (vec![], (0, 0), 0, 0, "InsufficientPods"),
        ] {
            let expected = Expected { pods: expected.0, healthy: expected.1 };
            let status = count(&budget(&json!({})), &pods, expected, now()).status;
            let found = (status.current_healthy, status.disruptions_allowed);
            assert_eq!(found, (Some(healthy), Some(allowed)), "{pods:?}");
            assert_eq!(status.conditions.unwrap()[0].reason, reason);
        }
    }

    #[test]
    fn a_failure_allows_nothing_and_keeps_the_counts() {
        let before = budget(&json!({"currentHealthy": 3, "desiredHealthy": 2, "expectedPods": 3,
            "disruptionsAllowed": 1, "observedGeneration": 2}));
        let status = failed(&before, "no", now());
        assert_eq!((status.disruptions_allowed, status.current_healthy), (Some(0), Some(3)));
        let condition = &status.conditions.unwrap()[0];
        assert_eq!((condition.reason.as_str(), condition.observed_generation), ("SyncFailed", Some(2)));
    }

    #[test]
    fn a_disruption_target_is_stale_after_two_minutes() {
        let pod = |patch: &Value| {
            let mut target = json!({"type": "DisruptionTarget", "status": "True",
                "lastTransitionTime": "2026-01-01T00:09:00Z"});
            target.as_object_mut().unwrap().extend(patch["target"].as_object().cloned().unwrap_or_default());
            let pod = json!({"metadata": patch["metadata"], "status":
                {"phase": patch["phase"], "conditions": [target]}});
            serde_json::from_value::<Pod>(pod).unwrap()
        };
        for (patch, expected) in [
            (json!({}), Some(60)),
            (json!({"target": {"lastTransitionTime": "2026-01-01T00:01:00Z"}}), Some(0)),
            (json!({"target": {"status": "False"}}), None),
            (json!({"target": {"reason": "TerminationByKubelet"}}), None),
            (json!({"metadata": {"deletionTimestamp": NOW}}), None),
            (json!({"phase": "Failed"}), None),
        ] {
            let found = stale_after(&pod(&patch), now()).map(|left| left.as_secs());
            assert_eq!(found, expected, "{patch}");
        }
        let reset = without_target(&pod(&json!({})), now());
        let expected = json!([{"type": "DisruptionTarget", "status": "False", "lastTransitionTime": NOW}]);
        assert_eq!(serde_json::to_value(reset.status.unwrap().conditions).unwrap(), expected);
    }
}
