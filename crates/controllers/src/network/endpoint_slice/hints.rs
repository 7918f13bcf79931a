//! Hints for `trafficDistribution`: the zone or the node whose clients should use an endpoint.

use crate::network::slice_writes::SliceWrites;
use k8s_openapi::api::{
    core::v1::Service,
    discovery::v1::{Endpoint, EndpointHints, EndpointSlice, ForNode, ForZone},
};
use kube::ResourceExt;
use std::sync::Arc;

const TOPOLOGY_MODE: &str = "service.kubernetes.io/topology-mode";
const OLD_TOPOLOGY_MODE: &str = "service.kubernetes.io/topology-aware-hints";

/// Who should use an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Distribution {
    Everybody,
    SameZone,
    SameNode,
}

/// Sets the hints of all slices; unchanged ones with wrong hints are updated, too.
pub(super) fn set(service: &Service, writes: &mut SliceWrites, unchanged: &[Arc<EndpointSlice>]) {
    let distribution = distribution(service);
    let is_wrong = |slice: &&Arc<EndpointSlice>| {
        slice.endpoints.iter().flatten().any(|endpoint| hints(endpoint, distribution) != endpoint.hints)
    };
    writes.update.extend(unchanged.iter().filter(is_wrong).map(|slice| EndpointSlice::clone(slice)));
    for slice in writes.create.iter_mut().chain(&mut writes.update) {
        for endpoint in slice.endpoints.iter_mut().flatten() {
            endpoint.hints = hints(endpoint, distribution);
        }
    }
}

fn distribution(service: &Service) -> Distribution {
    let annotations = service.annotations();
    let mode = annotations.get(OLD_TOPOLOGY_MODE).or_else(|| annotations.get(TOPOLOGY_MODE));
    // The annotation has precedence. Its own hints, by the CPUs of zones, are left out: Kubernetes discourages it.
    if mode.is_some_and(|mode| mode == "Auto" || mode == "auto") {
        return Distribution::Everybody;
    }
    match service.spec.as_ref().and_then(|spec| spec.traffic_distribution.as_deref()) {
        Some("PreferClose" | "PreferSameZone") => Distribution::SameZone,
        Some("PreferSameNode") => Distribution::SameNode,
        _ => Distribution::Everybody,
    }
}

/// Kubernetes: the hints of endpoints that are not ready stay as they are.
fn hints(endpoint: &Endpoint, distribution: Distribution) -> Option<EndpointHints> {
    if distribution == Distribution::Everybody {
        return None;
    }
    if endpoint.conditions.as_ref().and_then(|conditions| conditions.ready) != Some(true) {
        return endpoint.hints.clone();
    }
    let for_zones = endpoint.zone.clone().map(|name| vec![ForZone { name }]);
    let node = endpoint.node_name.clone().filter(|_| distribution == Distribution::SameNode);
    let for_nodes = node.map(|name| vec![ForNode { name }]);
    (for_zones.is_some() || for_nodes.is_some()).then_some(EndpointHints { for_nodes, for_zones })
}
