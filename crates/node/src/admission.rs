//! Admission at the node: a kubelet rejects pods that do not fit, even if they are bound to it.

use crate::{
    plan::{PendingResize, is_of_kubelet, whole_second},
    requests::{self, Amounts, CPU},
};
use jiff::Timestamp;
use k8s_openapi::{
    api::core::v1::{Node, Pod, PodStatus, Taint, Toleration},
    apimachinery::pkg::apis::meta::v1::Time,
};

/// Why a pod may not run on the node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Rejection {
    pub(crate) reason: String,
    pub(crate) message: String,
}

const PODS: &str = "pods";
const TAKEN_PORTS: &str = "node(s) didn't have free ports for the requested pod ports";
/// Kubernetes: other resources are unknown to the kubelet if the node does not report them.
const KNOWN: [&str; 3] = [CPU, "memory", "ephemeral-storage"];

/// Whether a pod fits onto a node beside others that use `used`; the key `pods` counts them.
pub(crate) fn check(pod: &Pod, node: &Node, used: &Amounts, has_free_ports: bool) -> Option<Rejection> {
    let requests = requests::of_pod(pod);
    let ports = || (!has_free_ports).then(|| predicate("NodePorts", TAKEN_PORTS));
    resources(&requests, node, used)
        .or_else(|| selector(pod, node))
        .or_else(ports)
        .or_else(|| taints(pod, node))
}

/// Why the new requests of a pod that runs already do not fit.
pub(crate) fn check_resize(pod: &Pod, node: &Node, used: &Amounts) -> Option<PendingResize> {
    let requests = requests::of_pod(pod);
    let alone = resources(&requests, node, &Amounts::new());
    let reason = if alone.is_some() { "Infeasible" } else { "Deferred" };
    let rejection = resources(&requests, node, used)?;
    Some(PendingResize { reason, message: rejection.message })
}

/// Kubernetes: a rejected pod has none of the kubelet's conditions, and no containers.
pub(crate) fn rejected(pod: &Pod, rejection: &Rejection, now: Timestamp) -> PodStatus {
    let mut old = pod.status.clone().unwrap_or_default();
    let others = old.conditions.take().into_iter().flatten().filter(|it| !is_of_kubelet(&it.type_));
    let others: Vec<_> = others.collect();
    PodStatus {
        conditions: (!others.is_empty()).then_some(others),
        start_time: Some(Time(whole_second(now))),
        phase: Some("Failed".to_owned()),
        reason: Some(rejection.reason.clone()),
        message: Some(format!("Pod was rejected: {}", rejection.message)),
        ..old
    }
}

fn resources(requests: &Amounts, node: &Node, used: &Amounts) -> Option<Rejection> {
    let allocatable = node.status.as_ref().and_then(|status| status.allocatable.as_ref());
    let capacity = allocatable.map(requests::amounts).unwrap_or_default();
    let check = |name: &str, requested: i64| {
        let used = used.get(name).copied().unwrap_or_default();
        let capacity = capacity.get(name).copied().unwrap_or_default();
        // Kubernetes: a request of nothing fits everywhere.
        (requested > 0 && used.saturating_add(requested) > capacity).then(|| Rejection {
            reason: format!("OutOf{name}"),
            message: format!(
                "Node didn't have enough resource: {name}, requested: {requested}, used: {used}, capacity: {capacity}"
            ),
        })
    };
    let known = KNOWN.into_iter().filter_map(|name| Some((name, *requests.get(name)?)));
    let others =
        requests.iter().filter(|(name, _)| !KNOWN.contains(&name.as_str()) && capacity.contains_key(*name));
    let others = others.map(|(name, amount)| (name.as_str(), *amount));
    std::iter::once((PODS, 1)).chain(known).chain(others).find_map(|(name, requested)| check(name, requested))
}

fn selector(pod: &Pod, node: &Node) -> Option<Rejection> {
    let wanted = pod.spec.as_ref()?.node_selector.as_ref()?;
    let labels = node.metadata.labels.as_ref();
    let has = |(key, value): (&String, &String)| labels.and_then(|labels| labels.get(key)) == Some(value);
    (!wanted.iter().all(has))
        .then(|| predicate("NodeAffinity", "node(s) didn't match Pod's node affinity/selector"))
}

/// Kubernetes: a kubelet looks only at taints with NoExecute.
fn taints(pod: &Pod, node: &Node) -> Option<Rejection> {
    let taints = node.spec.iter().flat_map(|spec| spec.taints.iter().flatten());
    let tolerations: Vec<&Toleration> =
        pod.spec.iter().flat_map(|spec| spec.tolerations.iter().flatten()).collect();
    let mut strict = taints.filter(|taint| taint.effect == "NoExecute");
    let is_refused = strict.any(|taint| !tolerations.iter().any(|it| tolerates(it, taint)));
    is_refused.then(|| predicate("TaintToleration", "node(s) had taints that the pod didn't tolerate"))
}

fn tolerates(toleration: &Toleration, taint: &Taint) -> bool {
    let [effect, key, operator] = [&toleration.effect, &toleration.key, &toleration.operator]
        .map(|it| it.as_deref().unwrap_or_default());
    let is_of_kind = (effect.is_empty() || effect == taint.effect) && (key.is_empty() || key == taint.key);
    is_of_kind
        && (operator == "Exists"
            || toleration.value.as_deref().unwrap_or_default() == taint.value.as_deref().unwrap_or_default())
}

fn predicate(name: &str, text: &str) -> Rejection {
    Rejection { reason: name.to_owned(), message: format!("Predicate {name} failed: {text}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_pod_that_does_not_fit_is_rejected() {
        let node: Node = serde_json::from_value(json!({
            "metadata": {"labels": {"disk": "ssd"}},
            "spec": {"taints": [{"key": "down", "effect": "NoExecute"}, {"key": "full", "effect": "NoSchedule"}]},
            "status": {"allocatable": {"cpu": "4", "memory": "1Gi", "pods": "2"}}}))
        .unwrap();
        let tolerant = json!([{"operator": "Exists"}]);
        for (spec, pods, expected) in [
            (json!({"tolerations": tolerant}), 0, ""),
            (
                json!({"tolerations": tolerant}),
                2,
                "OutOfpods: Node didn't have enough resource: pods, requested: 1, used: 2, capacity: 2",
            ),
            (
                json!({"tolerations": tolerant, "overhead": {"cpu": "5"}}),
                0,
                "OutOfcpu: Node didn't have enough resource: cpu, requested: 5000, used: 1000, capacity: 4000",
            ),
            (json!({"tolerations": tolerant, "overhead": {"example.com/gpu": "1"}}), 0, ""),
            (
                json!({"tolerations": tolerant, "nodeSelector": {"disk": "hdd"}}),
                0,
                "NodeAffinity: Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector",
            ),
            (
                json!({"tolerations": [{"key": "down", "value": "x"}]}),
                0,
                "TaintToleration: Predicate TaintToleration failed: node(s) had taints that the pod didn't tolerate",
            ),
        ] {
            let mut spec = spec;
            spec["containers"] = json!([]);
            let pod: Pod = serde_json::from_value(json!({"spec": spec})).unwrap();
            let used = [(PODS.to_owned(), pods), (CPU.to_owned(), 1000)].into();
            let text = check(&pod, &node, &used, true).map(|it| format!("{}: {}", it.reason, it.message));
            assert_eq!(text.unwrap_or_default(), expected);
        }
    }
}
