//! What the spec of a DaemonSet asks for, with the defaults of Kubernetes.

use crate::{
    int_or_percent::{Rounding, scaled_count},
    pod,
    workload::history::REVISION,
};
use k8s_openapi::{
    api::{
        apps::v1::{DaemonSet, DaemonSetSpec},
        core::v1::{
            NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, Pod, PodSpec, PodTemplateSpec,
            Toleration,
        },
    },
    apimachinery::pkg::apis::meta::v1::OwnerReference,
};
use kube::ResourceExt;

/// Kubernetes: the annotation of a set, and the label of pods, from before there were revisions.
const TEMPLATE_GENERATION_OF_SET: &str = "deprecated.daemonset.template.generation";
const TEMPLATE_GENERATION_OF_POD: &str = "pod-template-generation";
/// The only field that nodes are selected by.
const NODE_NAME: &str = "metadata.name";

/// The spec of a set, and its pods' spec as they get it.
#[derive(Clone, Debug)]
pub(super) struct DaemonSpec<'a> {
    pub(super) set: &'a DaemonSet,
    pub(super) spec: &'a DaemonSetSpec,
    pub(super) min_ready_seconds: i32,
    pub(super) template: PodTemplateSpec,
    /// The hash of the revision of the template; empty until there is one.
    pub(super) hash: String,
}

/// How many pods an update may replace at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum UpdateLimit {
    /// Pods are replaced when their user deletes them.
    OnDelete,
    /// So many nodes may be without an available pod.
    MaxUnavailable(usize),
    /// So many nodes may have an old and a new pod.
    MaxSurge(usize),
}

impl<'a> DaemonSpec<'a> {
    /// `None` if the set has no spec.
    pub(super) fn of(set: &'a DaemonSet) -> Option<DaemonSpec<'a>> {
        let spec = set.spec.as_ref()?;
        let mut template = spec.template.clone();
        add_tolerations(template.spec.get_or_insert_default());
        let min_ready_seconds = spec.min_ready_seconds.unwrap_or_default();
        Some(DaemonSpec { set, spec, min_ready_seconds, template, hash: String::new() })
    }

    /// With the hash of the revision of the template, which its pods get as a label.
    pub(super) fn with_hash(mut self, hash: &str) -> DaemonSpec<'a> {
        let labels = self.template.metadata.get_or_insert_default().labels.get_or_insert_default();
        labels.insert(REVISION.to_owned(), hash.to_owned());
        if let Some(generation) = template_generation(self.set) {
            labels.insert(TEMPLATE_GENERATION_OF_POD.to_owned(), generation.to_string());
        }
        hash.clone_into(&mut self.hash);
        self
    }

    /// How the pods of `count` nodes are updated.
    pub(super) fn update_limit(&self, count: usize) -> UpdateLimit {
        let strategy = self.spec.update_strategy.as_ref();
        if strategy.is_some_and(|strategy| strategy.type_.as_deref() == Some("OnDelete")) {
            return UpdateLimit::OnDelete;
        }
        let rolling = strategy.and_then(|strategy| strategy.rolling_update.as_ref());
        let surge = rolling.and_then(|rolling| rolling.max_surge.as_ref());
        let surge = surge.and_then(|surge| scaled_count(surge, count, Rounding::Up)).unwrap_or_default();
        if surge > 0 {
            return UpdateLimit::MaxSurge(surge);
        }
        let unavailable = rolling.and_then(|rolling| rolling.max_unavailable.as_ref());
        let unavailable =
            unavailable.and_then(|limit| scaled_count(limit, count, Rounding::Up)).unwrap_or_default();
        // Kubernetes: without both, nothing could ever be updated.
        UpdateLimit::MaxUnavailable(unavailable.max(1))
    }

    /// Whether a node may have two pods during an update.
    pub(super) fn allows_surge(&self) -> bool {
        matches!(self.update_limit(1), UpdateLimit::MaxSurge(_))
    }

    /// Whether a pod is of the latest revision.
    pub(super) fn is_updated(&self, pod: &Pod) -> bool {
        let labels = pod.labels();
        let has_hash = !self.hash.is_empty() && labels.get(REVISION) == Some(&self.hash);
        let generation = template_generation(self.set).map(|generation| generation.to_string());
        has_hash || generation.is_some_and(|it| labels.get(TEMPLATE_GENERATION_OF_POD) == Some(&it))
    }

    /// A new pod for a node. The scheduler binds it: it fits that node alone.
    pub(super) fn new_pod(&self, node: &str, owner: OwnerReference) -> Pod {
        let mut pod = pod::from_template(&self.template, &self.set.name_any(), owner);
        let affinity = pod.spec.get_or_insert_default().affinity.get_or_insert_default();
        let name = NodeSelectorRequirement {
            key: NODE_NAME.to_owned(),
            operator: "In".to_owned(),
            values: Some(vec![node.to_owned()]),
        };
        let term = NodeSelectorTerm { match_fields: Some(vec![name]), match_expressions: None };
        // The template's own terms were met when the node was chosen.
        affinity.node_affinity.get_or_insert_default().required_during_scheduling_ignored_during_execution =
            Some(NodeSelector { node_selector_terms: vec![term] });
        pod
    }

    pub(super) fn pod_spec(&self) -> &PodSpec {
        self.template.spec.as_ref().expect("`of` has set it")
    }
}

/// The node that a pod runs on or is meant for.
pub(super) fn target_node(pod: &Pod) -> Option<&str> {
    let name = pod::node_name(pod);
    if !name.is_empty() {
        return Some(name);
    }
    let affinity = pod.spec.as_ref()?.affinity.as_ref()?.node_affinity.as_ref()?;
    let terms = &affinity.required_during_scheduling_ignored_during_execution.as_ref()?.node_selector_terms;
    let fields = terms.iter().flat_map(|term| term.match_fields.iter().flatten());
    let by_name =
        fields.filter(|field| field.key == NODE_NAME && field.operator == "In").map(|field| &field.values);
    match by_name.flatten().next().map(Vec::as_slice) {
        Some([name]) => Some(name),
        _ => None,
    }
}

fn template_generation(set: &DaemonSet) -> Option<i64> {
    set.annotations().get(TEMPLATE_GENERATION_OF_SET)?.parse().ok()
}

/// Kubernetes: the pods of a DaemonSet stay on nodes that are not ready, and start on those under pressure.
fn add_tolerations(spec: &mut PodSpec) {
    let network = spec.host_network.unwrap_or_default().then_some(("network-unavailable", "NoSchedule"));
    let tolerated = [
        ("not-ready", "NoExecute"),
        ("unreachable", "NoExecute"),
        ("disk-pressure", "NoSchedule"),
        ("memory-pressure", "NoSchedule"),
        ("pid-pressure", "NoSchedule"),
        ("unschedulable", "NoSchedule"),
    ];
    let tolerations = spec.tolerations.get_or_insert_default();
    for (taint, effect) in tolerated.into_iter().chain(network) {
        let toleration = Toleration {
            key: Some(format!("node.kubernetes.io/{taint}")),
            operator: Some("Exists".to_owned()),
            effect: Some(effect.to_owned()),
            ..Toleration::default()
        };
        let is_same_taint =
            |it: &Toleration| Toleration { toleration_seconds: None, ..it.clone() } == toleration;
        match tolerations.iter_mut().find(|it| is_same_taint(it)) {
            Some(present) => *present = toleration,
            None => tolerations.push(toleration),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn set(spec: Value) -> DaemonSet {
        let mut set = json!({"metadata": {"name": "agent", "annotations": {
            "deprecated.daemonset.template.generation": "4"}},
            "spec": {"selector": {}, "template": {"spec": {"containers": []}}}});
        for (name, value) in spec.as_object().unwrap() {
            set["spec"][name] = value.clone();
        }
        serde_json::from_value(set).unwrap()
    }

    #[test]
    fn a_pod_is_bound_by_the_scheduler_through_its_affinity() {
        let affinity = json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [{"matchExpressions": [{"key": "disk", "operator": "Exists"}]}]}}});
        let short = json!({"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute",
            "tolerationSeconds": 30});
        let own = json!({"key": "gpu", "operator": "Exists"});
        let set = set(json!({"template": {"metadata": {"labels": {"app": "agent"}},
            "spec": {"containers": [], "affinity": affinity, "tolerations": [own, short]}}}));
        let desired = DaemonSpec::of(&set).unwrap().with_hash("5d4f");
        let pod = desired.new_pod("node-1", OwnerReference::default());
        assert_eq!(target_node(&pod), Some("node-1"));
        assert!(desired.is_updated(&pod));
        let labels =
            json!({"app": "agent", "controller-revision-hash": "5d4f", "pod-template-generation": "4"});
        assert_eq!(json!(pod.labels()), labels);
        let tolerate = |taint: &str, effect: &str| json!({"key": format!("node.kubernetes.io/{taint}"), "operator": "Exists", "effect": effect});
        let expected = json!({
            "containers": [],
            "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
                {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["node-1"]}]}]}}},
            "tolerations": [own, tolerate("not-ready", "NoExecute"), tolerate("unreachable", "NoExecute"),
                tolerate("disk-pressure", "NoSchedule"), tolerate("memory-pressure", "NoSchedule"),
                tolerate("pid-pressure", "NoSchedule"), tolerate("unschedulable", "NoSchedule")],
        });
        assert_eq!(serde_json::to_value(&pod.spec).unwrap(), expected);
    }

    #[test]
    fn the_limit_of_an_update_is_a_number_or_a_share_of_the_nodes() {
        let rolling = |unavailable: Value, surge: Value| {
            json!({"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {
                "maxUnavailable": unavailable, "maxSurge": surge}}})
        };
        for (spec, expected) in [
            (json!({"updateStrategy": {"type": "OnDelete"}}), UpdateLimit::OnDelete),
            (rolling(json!(2), json!(0)), UpdateLimit::MaxUnavailable(2)),
            (rolling(json!("25%"), json!(0)), UpdateLimit::MaxUnavailable(3)),
            (rolling(json!(0), json!("10%")), UpdateLimit::MaxSurge(1)),
            (rolling(json!(0), json!(0)), UpdateLimit::MaxUnavailable(1)),
        ] {
            let set = set(spec.clone());
            assert_eq!(DaemonSpec::of(&set).unwrap().update_limit(10), expected, "{spec}");
        }
    }
}
