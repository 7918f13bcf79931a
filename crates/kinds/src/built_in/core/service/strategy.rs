//! A service that changes its type loses what came with the old one, unless the update says otherwise.

use serde_json::Value;
use std::collections::HashSet;

use crate::defaults::member::{self, Members};
use crate::strategy::{Circumstances, service_address};

const BALANCED: &str = "LoadBalancer";

pub(super) fn prepare_create(service: &mut Members, _: &Circumstances<'_>) {
    service_address::agree(service, None);
}

pub(super) fn prepare_update(service: &mut Members, old: &Members, _: &Circumstances<'_>) {
    let nothing = Members::new();
    let before = member::object(old, "spec").unwrap_or(&nothing);
    service_address::keep_allocated(member::made(service, "spec"), before);
    service_address::agree(service, Some(old));
    let spec = member::made(service, "spec");
    drop_what_type_brought(spec, before);
    if !is_balanced(spec)
        && let Some(status) = member::present(service, "status")
    {
        status.remove("loadBalancer");
        if status.is_empty() {
            service.remove("status");
        }
    }
}

fn drop_what_type_brought(spec: &mut Members, before: &Members) {
    let lost = |needs: fn(&Members) -> bool, spec: &Members| needs(before) && !needs(spec);
    if lost(has_cluster_ip, spec) {
        if same(spec, before, "clusterIP") && same(spec, before, "clusterIPs") {
            spec.remove("clusterIP");
            spec.remove("clusterIPs");
        }
        drop_if_same(spec, before, "ipFamilies");
        drop_if_same(spec, before, "ipFamilyPolicy");
        drop_if_same(spec, before, "internalTrafficPolicy");
    }
    if lost(has_node_ports, spec)
        && node_ports(spec).collect::<HashSet<_>>().is_subset(&node_ports(before).collect())
    {
        member::items_mut(spec, "ports").for_each(|port| drop(port.remove("nodePort")));
    }
    if lost(has_health_check_port, spec) {
        drop_if_same(spec, before, "healthCheckNodePort");
    }
    if lost(is_balanced, spec) {
        drop_if_same(spec, before, "allocateLoadBalancerNodePorts");
        drop_if_same(spec, before, "loadBalancerClass");
    }
    if lost(is_exposed, spec) {
        drop_if_same(spec, before, "externalTrafficPolicy");
    }
}

pub(crate) fn has_cluster_ip(spec: &Members) -> bool {
    member::text(spec, "type") != "ExternalName"
}

pub(crate) fn has_node_ports(spec: &Members) -> bool {
    matches!(member::text(spec, "type"), "NodePort" | BALANCED)
}

/// Whether ports without a node port get one.
pub(crate) fn is_given_node_ports(spec: &Members) -> bool {
    has_node_ports(spec)
        && !(is_balanced(spec) && spec.get("allocateLoadBalancerNodePorts") == Some(&Value::Bool(false)))
}

pub(crate) fn has_health_check_port(spec: &Members) -> bool {
    is_balanced(spec) && member::text(spec, "externalTrafficPolicy") == "Local"
}

fn is_balanced(spec: &Members) -> bool {
    member::text(spec, "type") == BALANCED
}

fn is_exposed(spec: &Members) -> bool {
    has_node_ports(spec) || member::text(spec, "type") == "ClusterIP" && member::is_set(spec, "externalIPs")
}

pub(crate) fn node_ports(spec: &Members) -> impl Iterator<Item = i64> {
    member::items(spec, "ports")
        .filter_map(|port| port.get("nodePort").and_then(Value::as_i64))
        .filter(|it| *it != 0)
}

pub(crate) fn same(spec: &Members, before: &Members, name: &str) -> bool {
    spec.get(name) == before.get(name)
}

fn drop_if_same(spec: &mut Members, before: &Members, name: &str) {
    if same(spec, before, name) {
        spec.remove(name);
    }
}
