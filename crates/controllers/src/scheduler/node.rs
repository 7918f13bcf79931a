//! What the scheduler knows of a node: its object, and the pods that run on it or will soon.

use super::{
    facts::PodFacts,
    resources::{CpuMemory, Quantities, Resources},
};
use k8s_openapi::api::core::v1::{Node, Taint};
use operator::Key;
use std::{collections::BTreeMap, sync::Arc};

/// The part of a node object that decides which pods may run on it. Heartbeats do not change it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct NodeFacts {
    pub(super) name: String,
    pub(super) labels: BTreeMap<String, String>,
    pub(super) taints: Vec<Taint>,
    pub(super) is_unschedulable: bool,
    pub(super) allocatable: Resources,
    pub(super) most_pods: usize,
}

/// A node and its pods.
#[derive(Clone, Debug, Default)]
pub(super) struct NodeState {
    pub(super) facts: NodeFacts,
    /// A pod may name a node that has no object, or none any more.
    pub(super) exists: bool,
    pub(super) pods: BTreeMap<Key, Arc<PodFacts>>,
    pub(super) requested: Resources,
    pub(super) requested_for_scoring: CpuMemory,
    /// How many of the pods have rules about other pods, and how many exclude others.
    pub(super) with_affinity: usize,
    pub(super) with_anti_affinity: usize,
    /// How many of the pods take ports of the node.
    pub(super) with_ports: usize,
}

impl NodeFacts {
    pub(super) fn read(node: &Node) -> NodeFacts {
        let spec = node.spec.as_ref();
        let none = Quantities::new();
        let allocatable =
            node.status.as_ref().and_then(|status| status.allocatable.as_ref()).unwrap_or(&none);
        let pods = allocatable.get("pods").and_then(|pods| pods.0.parse::<api::quantity::Quantity>().ok());
        NodeFacts {
            name: node.metadata.name.clone().unwrap_or_default(),
            labels: node.metadata.labels.clone().unwrap_or_default(),
            taints: spec.and_then(|spec| spec.taints.clone()).unwrap_or_default(),
            is_unschedulable: spec.and_then(|spec| spec.unschedulable).unwrap_or_default(),
            allocatable: Resources::read(allocatable),
            most_pods: pods.and_then(|pods| usize::try_from(pods.value()?).ok()).unwrap_or_default(),
        }
    }
}

impl NodeState {
    pub(super) fn name(&self) -> &str {
        &self.facts.name
    }

    pub(super) fn label(&self, key: &str) -> Option<&str> {
        self.facts.labels.get(key).map(String::as_str)
    }

    pub(super) fn add(&mut self, key: Key, pod: Arc<PodFacts>) {
        self.requested.add(&pod.rules.requests);
        self.requested_for_scoring.cpu += pod.rules.requests_for_scoring.cpu;
        self.requested_for_scoring.memory += pod.rules.requests_for_scoring.memory;
        self.with_affinity += usize::from(pod.has_affinity());
        self.with_anti_affinity += usize::from(!pod.rules.anti_affinity.is_empty());
        self.with_ports += usize::from(!pod.rules.ports.is_empty());
        self.pods.insert(key, pod);
    }

    pub(super) fn remove(&mut self, key: &Key) -> Option<Arc<PodFacts>> {
        let pod = self.pods.remove(key)?;
        self.requested.subtract(&pod.rules.requests);
        self.requested_for_scoring.cpu -= pod.rules.requests_for_scoring.cpu;
        self.requested_for_scoring.memory -= pod.rules.requests_for_scoring.memory;
        self.with_affinity -= usize::from(pod.has_affinity());
        self.with_anti_affinity -= usize::from(!pod.rules.anti_affinity.is_empty());
        self.with_ports -= usize::from(!pod.rules.ports.is_empty());
        Some(pod)
    }

    /// Whether none of the pod's host ports is taken.
    pub(super) fn has_ports_for(&self, pod: &PodFacts) -> bool {
        if pod.rules.ports.is_empty() || self.with_ports == 0 {
            return true;
        }
        let mut taken = self.pods.values().flat_map(|other| &other.rules.ports);
        !taken.any(|taken| pod.rules.ports.iter().any(|wanted| wanted.conflicts_with(taken)))
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use serde_json::{Value, json};

    /// A node with four CPUs, 8 GiB and room for ten pods, unless `more` says otherwise.
    pub(crate) fn node(name: &str, labels: &Value, more: &Value) -> NodeFacts {
        let mut node = json!({"metadata": {"name": name, "labels": labels},
            "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "10"}}});
        for (key, value) in more.as_object().into_iter().flatten() {
            node[key.as_str()] = value.clone();
        }
        NodeFacts::read(&serde_json::from_value(node).unwrap())
    }
}
