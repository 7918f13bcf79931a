//! Which pods of a set are deleted first when it scales down.

use super::{is_ready, node_name, phase, ready_since};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use std::cmp::Ordering;

/// Kubernetes: lower costs are deleted first; the default is zero.
const DELETION_COST: &str = "controller.kubernetes.io/pod-deletion-cost";

/// Compares two pods: the lesser one is deleted first. `others` is how many pods that are related to the pod run
/// on its node.
///
/// Times are compared by orders of magnitude, and pods that are alike by their UID, so that a set that is
/// scaled down keeps pods of all ages. Kubernetes asks for the UID as soon as two times are different and of one
/// magnitude, which is no order: of three pods, each may come before the next one. Here it is asked last. `None` for
/// `now` compares exact times and no costs. Kubernetes: so it is for Jobs.
pub(crate) fn compare(
    (first, others_of_first): (&Pod, usize),
    (second, others_of_second): (&Pod, usize),
    now: Option<Timestamp>,
) -> Ordering {
    let is_assigned = |pod| !node_name(pod).is_empty();
    is_assigned(first)
        .cmp(&is_assigned(second))
        .then_with(|| phase_order(first).cmp(&phase_order(second)))
        .then_with(|| is_ready(first).cmp(&is_ready(second)))
        .then_with(|| match now {
            Some(_) => deletion_cost(first).cmp(&deletion_cost(second)),
            None => Ordering::Equal,
        })
        .then_with(|| others_of_second.cmp(&others_of_first))
        .then_with(|| by_age(ready_since(first), ready_since(second), now))
        .then_with(|| restarts(second).cmp(&restarts(first)))
        .then_with(|| by_age(created(first), created(second), now))
        .then_with(|| match now {
            Some(_) => first.metadata.uid.cmp(&second.metadata.uid),
            None => Ordering::Equal,
        })
}

fn phase_order(pod: &Pod) -> u8 {
    match phase(pod) {
        "Pending" => 0,
        "Running" => 2,
        _ => 1,
    }
}

fn deletion_cost(pod: &Pod) -> i32 {
    let annotation = pod.metadata.annotations.as_ref().and_then(|all| all.get(DELETION_COST));
    annotation.and_then(|cost| cost.parse().ok()).unwrap_or_default()
}

fn created(pod: &Pod) -> Option<Timestamp> {
    pod.metadata.creation_timestamp.as_ref().map(|time| time.0)
}

/// The most restarts of one of its containers, and of one of its sidecars.
fn restarts(pod: &Pod) -> (i32, i32) {
    let (status, spec) = (pod.status.as_ref(), pod.spec.as_ref());
    let containers = status.and_then(|status| status.container_statuses.as_deref()).unwrap_or_default();
    let inits = status.and_then(|status| status.init_container_statuses.as_deref()).unwrap_or_default();
    let declared = spec.and_then(|spec| spec.init_containers.as_deref()).unwrap_or_default();
    let is_sidecar = |name: &str| {
        declared.iter().any(|init| init.name == name && init.restart_policy.as_deref() == Some("Always"))
    };
    let most = |counts: &mut dyn Iterator<Item = i32>| counts.max().unwrap_or_default();
    (
        most(&mut containers.iter().map(|status| status.restart_count)),
        most(&mut inits.iter().filter(|status| is_sidecar(&status.name)).map(|status| status.restart_count)),
    )
}

/// The younger one first; without a time it is the youngest.
fn by_age(first: Option<Timestamp>, second: Option<Timestamp>, now: Option<Timestamp>) -> Ordering {
    match (first, second, now) {
        (Some(first), Some(second), Some(now)) => magnitude(first, now).cmp(&magnitude(second, now)),
        (Some(first), Some(second), None) => second.cmp(&first),
        _ => first.is_some().cmp(&second.is_some()),
    }
}

/// The binary logarithm of the age in nanoseconds; -1 for times in the future.
fn magnitude(time: Timestamp, now: Timestamp) -> i64 {
    let age = now.duration_since(time).as_nanos();
    if age > 0 { i64::from(age.ilog2()) } else { -1 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn pod(patch: &Value) -> Pod {
        let mut pod = json!({
            "metadata": {"name": "p", "uid": "m", "creationTimestamp": "2026-01-01T00:00:00Z", "annotations": {}},
            "spec": {"nodeName": "n", "containers": []},
            "status": {"phase": "Running", "conditions": [
                {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:10Z"}]},
        });
        merge(&mut pod, patch);
        serde_json::from_value(pod).unwrap()
    }

    fn merge(into: &mut Value, patch: &Value) {
        match (into, patch) {
            (Value::Object(into), Value::Object(patch)) => {
                patch.iter().for_each(|(name, value)| merge(into.entry(name).or_insert(Value::Null), value));
            }
            (into, patch) => *into = patch.clone(),
        }
    }

    fn ready(since: &str) -> Value {
        json!({"status": {"conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": since}]}})
    }

    /// Each pod is deleted before the one beside it, and for this reason alone.
    #[test]
    fn pods_that_are_less_worth_are_deleted_first() {
        let usual = json!({});
        let restarted = json!({"status": {"containerStatuses":
            [{"name": "c", "restartCount": 3, "ready": true, "image": "", "imageID": ""}]}});
        let cases = [
            ("not assigned", json!({"spec": {"nodeName": ""}}), usual.clone()),
            ("pending", json!({"status": {"phase": "Pending"}}), json!({"status": {"phase": "Unknown"}})),
            ("unknown", json!({"status": {"phase": "Unknown"}}), usual.clone()),
            ("not ready", json!({"status": {"conditions": []}}), usual.clone()),
            ("cheaper", json!({"metadata": {"annotations": {DELETION_COST: "-1"}}}), usual.clone()),
            ("ready for shorter", ready("2026-01-01T00:59:59Z"), ready("2026-01-01T00:00:10Z")),
            ("more restarts", restarted, usual.clone()),
            ("younger", json!({"metadata": {"creationTimestamp": "2026-01-01T00:59:59Z"}}), usual.clone()),
            ("alike, by UID", ready("2026-01-01T00:00:11Z"), merged(&ready("2026-01-01T00:00:10Z"), "z")),
            ("no time", json!({"metadata": {"creationTimestamp": null}}), usual.clone()),
        ];
        let now = "2026-01-01T01:00:00Z".parse().ok();
        for (reason, first, second) in cases {
            let (first, second) = (pod(&first), pod(&second));
            assert_eq!(compare((&first, 0), (&second, 0), now), Ordering::Less, "{reason}");
            assert_eq!(compare((&second, 0), (&first, 0), now), Ordering::Greater, "{reason}");
        }
        let pod = pod(&usual);
        assert_eq!(compare((&pod, 2), (&pod, 1), now), Ordering::Less, "more related pods on its node");
        assert_eq!(compare((&pod, 1), (&pod, 1), now), Ordering::Equal);
    }

    fn merged(patch: &Value, uid: &str) -> Value {
        let mut patch = patch.clone();
        merge(&mut patch, &json!({"metadata": {"uid": uid}}));
        patch
    }

    /// Ready times that are equal, or of one magnitude, with every mix of what is compared after them.
    #[test]
    fn many_pods_that_are_nearly_alike_have_one_order() {
        let now = "2026-01-01T01:00:00Z".parse().ok();
        let pods: Vec<Pod> = (0..200)
            .map(|number: u64| {
                let mut patch = ready(&format!("2026-01-01T00:00:{:02}Z", 10 + number % 3));
                let created = format!("2026-01-01T00:00:{:02}Z", number % 5);
                let uid = number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_string();
                merge(&mut patch, &json!({"metadata": {"uid": uid, "creationTimestamp": created}}));
                let container =
                    json!({"name": "c", "restartCount": number % 2, "ready": true, "image": "", "imageID": ""});
                merge(&mut patch, &json!({"status": {"containerStatuses": [container]}}));
                pod(&patch)
            })
            .collect();
        let order = |first: &&Pod, second: &&Pod| compare((first, 0), (second, 0), now);
        let mut sorted: Vec<&Pod> = pods.iter().collect();
        sorted.sort_by(order);
        for (place, first) in sorted.iter().enumerate() {
            for second in &sorted[place + 1..] {
                assert_eq!(order(first, second), Ordering::Less, "{first:?} before {second:?}");
            }
        }
    }

    #[test]
    fn without_a_clock_exact_times_count() {
        let (young, old) = (pod(&ready("2026-01-01T00:00:11Z")), pod(&ready("2026-01-01T00:00:10Z")));
        assert_eq!(compare((&young, 0), (&old, 0), None), Ordering::Less);
        let cheap = pod(&json!({"metadata": {"annotations": {DELETION_COST: "-1"}}}));
        assert_eq!(compare((&cheap, 0), (&pod(&json!({})), 0), None), Ordering::Equal, "costs do not count");
    }
}
