//! Nodes: their health, the pods on nodes that are gone, and annotations for kubelets.

pub(crate) mod health;
pub(crate) mod ipam;
pub(crate) mod taint_eviction;
pub(crate) mod ttl;

use k8s_openapi::api::core::v1::{Node, NodeCondition, Taint};

const NO_EXECUTE: &str = "NoExecute";
const NO_SCHEDULE: &str = "NoSchedule";

fn taints(node: &Node) -> &[Taint] {
    node.spec.as_ref().and_then(|spec| spec.taints.as_deref()).unwrap_or_default()
}

fn condition<'a>(node: &'a Node, condition_type: &str) -> Option<&'a NodeCondition> {
    let conditions = node.status.as_ref()?.conditions.as_deref()?;
    conditions.iter().find(|condition| condition.type_ == condition_type)
}
