//! Which nodes the pods of a DaemonSet run on: by node name, node selector, node affinity and taints.

use crate::placement::{is_tolerated, matches_term};
use k8s_openapi::api::core::v1::{Node, PodSpec};
use kube::ResourceExt;

/// Whether a node gets a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NodeFit {
    /// It should have one.
    Runs,
    /// It gets none, but one that is there stays: a taint keeps new pods away.
    Stays,
    /// It must not have one.
    Never,
}

/// Whether a pod of this spec fits a node. The spec must have the tolerations that every DaemonSet gets.
pub(super) fn fit(spec: &PodSpec, node: &Node) -> NodeFit {
    let name = spec.node_name.as_deref().unwrap_or_default();
    if !(name.is_empty() || name == node.name_any()) || !is_selected(spec, node) {
        return NodeFit::Never;
    }
    let taints = node.spec.as_ref().and_then(|spec| spec.taints.as_deref()).unwrap_or_default();
    let tolerations = spec.tolerations.as_deref().unwrap_or_default();
    let are_tolerated = |effect: &str| {
        taints.iter().filter(|taint| taint.effect == effect).all(|taint| is_tolerated(taint, tolerations))
    };
    match (are_tolerated("NoExecute"), are_tolerated("NoSchedule")) {
        (true, true) => NodeFit::Runs,
        (true, false) => NodeFit::Stays,
        (false, _) => NodeFit::Never,
    }
}

/// Whether the node selector and the required node affinity match.
fn is_selected(spec: &PodSpec, node: &Node) -> bool {
    let labels = node.labels();
    let has_labels = spec.node_selector.iter().flatten().all(|(name, value)| labels.get(name) == Some(value));
    let affinity = spec.affinity.as_ref().and_then(|affinity| affinity.node_affinity.as_ref());
    let required =
        affinity.and_then(|affinity| affinity.required_during_scheduling_ignored_during_execution.as_ref());
    has_labels
        && required.is_none_or(|required| {
            required.node_selector_terms.iter().any(|term| matches_term(term, &node.name_any(), labels))
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::daemon_set::desired::DaemonSpec;
    use serde_json::{Value, json};

    fn check(pod: Value, taints: Value, expected: NodeFit) {
        let mut spec = json!({"containers": []});
        for (name, value) in pod.as_object().unwrap() {
            spec[name] = value.clone();
        }
        let set =
            json!({"metadata": {"name": "agent"}, "spec": {"selector": {}, "template": {"spec": spec}}});
        let set = serde_json::from_value(set).unwrap();
        let node = json!({"metadata": {"name": "node-1", "labels": {"disk": "ssd", "cores": "8"}},
            "spec": {"taints": taints}});
        let node = serde_json::from_value(node).unwrap();
        assert_eq!(fit(DaemonSpec::of(&set).unwrap().pod_spec(), &node), expected, "{pod} {taints}");
    }

    #[test]
    fn nodes_are_chosen_by_name_and_labels() {
        for (pod, expected) in [
            (json!({}), NodeFit::Runs),
            (json!({"nodeName": "node-1"}), NodeFit::Runs),
            (json!({"nodeName": "node-2"}), NodeFit::Never),
            (json!({"nodeSelector": {"disk": "ssd"}}), NodeFit::Runs),
            (json!({"nodeSelector": {"disk": "hdd"}}), NodeFit::Never),
            (json!({"nodeSelector": {"gpu": ""}}), NodeFit::Never),
        ] {
            check(pod, json!([]), expected);
        }
    }

    #[test]
    fn nodes_are_chosen_by_affinity() {
        let label = |operator: &str, key: &str, values: Value| json!({"matchExpressions": [{"key": key, "operator": operator, "values": values}]});
        let name = |name: &str| json!({"matchFields": [{"key": "metadata.name", "operator": "In", "values": [name]}]});
        for (terms, expected) in [
            (json!([label("In", "disk", json!(["hdd", "ssd"]))]), NodeFit::Runs),
            (json!([label("In", "disk", json!(["hdd"]))]), NodeFit::Never),
            (json!([label("NotIn", "disk", json!(["hdd"]))]), NodeFit::Runs),
            (json!([label("NotIn", "gpu", json!(["a"]))]), NodeFit::Runs),
            (json!([label("NotIn", "disk", json!(["ssd"]))]), NodeFit::Never),
            (json!([label("Exists", "disk", json!(null))]), NodeFit::Runs),
            (json!([label("DoesNotExist", "disk", json!(null))]), NodeFit::Never),
            (json!([label("Gt", "cores", json!(["4"]))]), NodeFit::Runs),
            (json!([label("Lt", "cores", json!(["4"]))]), NodeFit::Never),
            (json!([label("Gt", "disk", json!(["4"]))]), NodeFit::Never),
            (json!([label("In", "disk", json!(["hdd"])), name("node-1")]), NodeFit::Runs),
            (json!([name("node-2")]), NodeFit::Never),
            (json!([{}]), NodeFit::Never),
            (json!([]), NodeFit::Never),
        ] {
            let affinity = json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": terms}}});
            check(json!({"affinity": affinity}), json!([]), expected);
        }
    }

    #[test]
    fn taints_keep_pods_away() {
        let taint = |key: &str, effect: &str| json!([{"key": key, "value": "v", "effect": effect}]);
        let tolerate = |key: &str, value: &str| json!({"tolerations": [{"key": key, "operator": "Equal", "value": value}]});
        for (pod, taints, expected) in [
            (json!({}), taint("gpu", "NoSchedule"), NodeFit::Stays),
            (json!({}), taint("gpu", "NoExecute"), NodeFit::Never),
            (json!({}), taint("gpu", "PreferNoSchedule"), NodeFit::Runs),
            (tolerate("gpu", "v"), taint("gpu", "NoExecute"), NodeFit::Runs),
            (tolerate("gpu", "w"), taint("gpu", "NoExecute"), NodeFit::Never),
            (json!({"tolerations": [{"operator": "Exists"}]}), taint("gpu", "NoExecute"), NodeFit::Runs),
            (json!({}), taint("node.kubernetes.io/unreachable", "NoExecute"), NodeFit::Runs),
            (json!({}), taint("node.kubernetes.io/unschedulable", "NoSchedule"), NodeFit::Runs),
            (json!({}), taint("node.kubernetes.io/not-ready", "NoSchedule"), NodeFit::Stays),
            (json!({}), taint("node.kubernetes.io/network-unavailable", "NoSchedule"), NodeFit::Stays),
            (
                json!({"hostNetwork": true}),
                taint("node.kubernetes.io/network-unavailable", "NoSchedule"),
                NodeFit::Runs,
            ),
        ] {
            check(pod, taints, expected);
        }
    }
}
