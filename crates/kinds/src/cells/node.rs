//! Nodes: whether they are ready, what they are for and what they run.

use std::collections::BTreeSet;

use api::object;
use serde_json::Value;

use super::row::{NONE, Row, UNKNOWN, items, row, text};

const ROLE_PREFIX: &str = "node-role.kubernetes.io/";
const ROLE: &str = "kubernetes.io/role";

pub(super) fn node(node: &Row<'_>) -> Vec<Value> {
    let info = |member: &str| node.text_or(&format!("/status/nodeInfo/{member}"), UNKNOWN);
    let kernel = match node.text("/status/nodeInfo/architecture") {
        "" => info("kernelVersion").to_owned(),
        architecture => format!("{} ({architecture})", info("kernelVersion")),
    };
    row![
        node.name(),
        status(node),
        roles(node),
        node.age(),
        node.text("/status/nodeInfo/kubeletVersion"),
        address(node, "InternalIP"),
        address(node, "ExternalIP"),
        info("osImage"),
        kernel,
        info("containerRuntimeVersion"),
    ]
}

fn status(node: &Row<'_>) -> String {
    // Kubernetes: of several conditions of one type the last one counts here.
    let ready = items(node.at("/status/conditions")).iter().rfind(|it| it["type"] == "Ready");
    let status = match ready {
        None => "Unknown",
        Some(ready) if ready["status"] == "True" => "Ready",
        Some(_) => "NotReady",
    };
    if node.flag("/spec/unschedulable") { format!("{status},SchedulingDisabled") } else { status.to_owned() }
}

fn roles(node: &Row<'_>) -> String {
    let labels = object::labels(node.object).into_iter().flatten();
    let roles: BTreeSet<&str> = labels
        .filter_map(|(key, value)| match key.strip_prefix(ROLE_PREFIX) {
            Some(role) => Some(role),
            None => (key == ROLE).then(|| text(value)),
        })
        .filter(|role| !role.is_empty())
        .collect();
    if roles.is_empty() { NONE.to_owned() } else { Vec::from_iter(roles).join(",") }
}

fn address<'a>(node: &Row<'a>, kind: &str) -> &'a str {
    let mut addresses = node.items("/status/addresses").iter();
    addresses.find(|it| it["type"] == kind).map_or(NONE, |it| text(&it["address"]))
}
