//! Which slices a service needs: pure, as few writes as possible.

use super::hints;
use crate::{
    network::{
        addressed_pod,
        slice_writes::{self, EndpointIdentity, MANAGED_BY, SERVICE_NAME, SliceWrites},
        trigger_time,
    },
    pod,
};
use jiff::Timestamp;
use k8s_openapi::{
    api::{
        core::v1::{Pod, Service},
        discovery::v1::{Endpoint, EndpointConditions, EndpointPort, EndpointSlice},
    },
    apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference},
};
use kube::ResourceExt;
use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

/// The value of the label `managed-by`.
pub(super) const CONTROLLER: &str = "endpointslice-controller.k8s.io";
/// Kubernetes: no slice gets more endpoints.
const MOST_ENDPOINTS: usize = 100;
const HEADLESS: &str = "service.kubernetes.io/headless";

/// What the slices should say.
#[derive(Clone, Copy, Debug)]
pub(super) struct DesiredSlices<'a> {
    pub(super) service: &'a Service,
    pub(super) pods: &'a [Arc<Pod>],
    /// The zones of the nodes that exist.
    pub(super) zones: &'a BTreeMap<String, Option<String>>,
    pub(super) trigger_time: Option<Timestamp>,
}

/// Endpoints that share their ports, and so their slices.
#[derive(Debug, Default)]
struct PortGroup {
    ports: Vec<EndpointPort>,
    endpoints: BTreeMap<EndpointIdentity, Endpoint>,
}

pub(super) fn plan(desired: &DesiredSlices<'_>, existing: &[Arc<EndpointSlice>]) -> SliceWrites {
    let types = address_types(desired.service);
    let mut writes = SliceWrites::default();
    for address_type in &types {
        let existing: Vec<_> =
            existing.iter().filter(|slice| slice.address_type == *address_type).cloned().collect();
        writes.extend(plan_of_type(desired, address_type, &existing));
    }
    for slice in writes.create.iter_mut().chain(&mut writes.update) {
        let annotations = slice.metadata.annotations.get_or_insert_default();
        match desired.trigger_time {
            Some(time) => drop(annotations.insert(trigger_time::ANNOTATION.into(), trigger_time::text(time))),
            None => drop(annotations.remove(trigger_time::ANNOTATION)),
        }
    }
    let foreign = existing.iter().filter(|slice| !types.contains(&slice.address_type.as_str()));
    writes.delete.extend(foreign.map(|slice| EndpointSlice::clone(slice)));
    writes
}

fn plan_of_type(
    desired: &DesiredSlices<'_>,
    address_type: &str,
    existing: &[Arc<EndpointSlice>],
) -> SliceWrites {
    let service = desired.service;
    let (mut by_ports, mut writes) = (BTreeMap::new(), SliceWrites::default());
    for slice in existing {
        if is_owned(slice, service) {
            let key = slice_writes::port_key(slice.ports.as_deref().unwrap_or_default());
            by_ports.entry(key).or_insert_with(Vec::new).push(Arc::clone(slice));
        } else {
            writes.delete.push(EndpointSlice::clone(slice));
        }
    }
    for (key, group) in groups(desired, address_type) {
        let slices = by_ports.remove(&key).unwrap_or_default();
        writes.extend(pack(service, address_type, group, &slices));
    }
    let unwanted = by_ports.into_values().flatten();
    writes.delete.extend(unwanted.map(|slice| EndpointSlice::clone(&slice)));
    if existing.len() == writes.delete.len() && writes.create.is_empty() {
        let placeholder = new_slice(service, address_type, Vec::new());
        match &writes.delete[..] {
            [only] if is_placeholder(only, &placeholder) => writes.delete.clear(),
            _ => writes.create.push(placeholder),
        }
    }
    let is_changed = |slice: &EndpointSlice| {
        let mut changed = writes.update.iter().chain(&writes.delete);
        changed.any(|it| it.metadata.name == slice.metadata.name)
    };
    let unchanged: Vec<_> = existing.iter().filter(|slice| !is_changed(slice)).cloned().collect();
    hints::set(service, &mut writes, &unchanged);
    writes.reuse(|slice| is_owned(slice, service));
    writes
}

type PortGroups = BTreeMap<Vec<(String, String, Option<i32>, String)>, PortGroup>;

fn groups(desired: &DesiredSlices<'_>, address_type: &str) -> PortGroups {
    let service = desired.service;
    let mut groups = PortGroups::new();
    for pod in desired.pods.iter().filter(|pod| addressed_pod::has_address(pod)) {
        let ports = ports(service, pod);
        let group = groups.entry(slice_writes::port_key(&ports)).or_default();
        group.ports = ports;
        let node = pod::node_name(pod);
        // Kubernetes: a pod on a node that does not exist is probably gone.
        if !desired.zones.contains_key(node) && !addressed_pod::publishes_not_ready(service) {
            continue;
        }
        let zone = desired.zones.get(node).cloned().flatten();
        let endpoint = endpoint(service, pod, address_type, zone);
        if !endpoint.addresses.is_empty() {
            group.endpoints.insert(slice_writes::identity(&endpoint), endpoint);
        }
    }
    groups
}

fn endpoint(service: &Service, pod: &Pod, address_type: &str, zone: Option<String>) -> Endpoint {
    let (serving, terminating) = (pod::is_ready(pod), pod.metadata.deletion_timestamp.is_some());
    let addresses = addressed_pod::addresses(pod).filter(|ip| ip.is_ipv6() == (address_type == "IPv6"));
    let conditions = EndpointConditions {
        // Kubernetes: a pod that is being deleted is never ready, unless all pods are to be published.
        ready: Some(addressed_pod::publishes_not_ready(service) || serving && !terminating),
        serving: Some(serving),
        terminating: Some(terminating),
    };
    Endpoint {
        addresses: addresses.map(|ip| ip.to_string()).collect(),
        conditions: Some(conditions),
        hostname: addressed_pod::hostname(pod, service).map(str::to_owned),
        node_name: Some(pod::node_name(pod).to_owned()).filter(|name| !name.is_empty()),
        target_ref: Some(addressed_pod::reference(pod)),
        zone,
        ..Endpoint::default()
    }
}

fn ports(service: &Service, pod: &Pod) -> Vec<EndpointPort> {
    let ports = addressed_pod::ports(service).iter().filter_map(|port| {
        Some(EndpointPort {
            name: Some(port.name.clone().unwrap_or_default()),
            port: Some(addressed_pod::target_port(pod, port)?),
            protocol: Some(port.protocol.clone().unwrap_or_else(|| "TCP".to_owned())),
            app_protocol: port.app_protocol.clone(),
        })
    });
    ports.collect()
}

/// Changes existing slices where their endpoints have changed, fills those up, and makes new ones for the rest.
fn pack(
    service: &Service,
    address_type: &str,
    group: PortGroup,
    existing: &[Arc<EndpointSlice>],
) -> SliceWrites {
    let PortGroup { ports, endpoints: mut missing } = group;
    let (mut writes, mut unchanged) = (SliceWrites::default(), Vec::new());
    for slice in existing {
        let (mut kept, mut is_changed) = (Vec::new(), false);
        for endpoint in slice.endpoints.iter().flatten() {
            if let Some(wanted) = missing.remove(&slice_writes::identity(endpoint)) {
                is_changed |= !slice_writes::is_same(&wanted, endpoint);
                // Hints stay until all slices get theirs.
                kept.push(Endpoint { hints: endpoint.hints.clone(), ..wanted });
            }
        }
        is_changed |= kept.len() != slice.endpoints.iter().flatten().count();
        let mut slice = EndpointSlice::clone(slice);
        let are_labels_changed = set_labels(&mut slice, service);
        if is_changed && kept.is_empty() {
            writes.delete.push(slice);
        } else if is_changed || are_labels_changed {
            slice.endpoints = Some(kept);
            writes.update.push(slice);
        } else {
            unchanged.push(slice);
        }
    }
    let mut missing: Vec<Endpoint> = missing.into_values().rev().collect();
    // The fullest first.
    writes.update.sort_by_key(|slice| (Reverse(len(slice)), slice.name_any()));
    writes.update.iter_mut().for_each(|slice| fill(slice, &mut missing));
    while !missing.is_empty() {
        let fits = |slice: &EndpointSlice| len(slice) + missing.len() <= MOST_ENDPOINTS && len(slice) > 0;
        let fullest = unchanged.iter().enumerate().filter(|(_, slice)| fits(slice));
        let fullest = fullest.max_by_key(|(_, slice)| (len(slice), Reverse(slice.name_any())));
        match fullest.map(|(position, _)| position).filter(|_| missing.len() < MOST_ENDPOINTS) {
            Some(position) => {
                let mut slice = unchanged.remove(position);
                fill(&mut slice, &mut missing);
                writes.update.push(slice);
            }
            None => {
                let mut slice = new_slice(service, address_type, ports.clone());
                fill(&mut slice, &mut missing);
                writes.create.push(slice);
            }
        }
    }
    writes
}

fn fill(slice: &mut EndpointSlice, missing: &mut Vec<Endpoint>) {
    let endpoints = slice.endpoints.get_or_insert_default();
    while endpoints.len() < MOST_ENDPOINTS
        && let Some(endpoint) = missing.pop()
    {
        endpoints.push(endpoint);
    }
}

fn len(slice: &EndpointSlice) -> usize {
    slice.endpoints.as_ref().map_or(0, Vec::len)
}

fn new_slice(service: &Service, address_type: &str, ports: Vec<EndpointPort>) -> EndpointSlice {
    let owner = OwnerReference {
        api_version: "v1".to_owned(),
        kind: "Service".to_owned(),
        name: service.name_any(),
        uid: service.uid().unwrap_or_default(),
        controller: Some(true),
        block_owner_deletion: Some(true),
    };
    let metadata = ObjectMeta {
        generate_name: Some(slice_writes::generate_name(&service.name_any())),
        namespace: service.namespace(),
        owner_references: Some(vec![owner]),
        ..ObjectMeta::default()
    };
    let address_type = address_type.to_owned();
    let mut slice = EndpointSlice { metadata, address_type, ports: Some(ports), endpoints: Some(Vec::new()) };
    set_labels(&mut slice, service);
    slice
}

/// Sets the labels of the service and those of this loop. Returns whether the former have changed: Kubernetes does
/// not update slices for the latter.
fn set_labels(slice: &mut EndpointSlice, service: &Service) -> bool {
    let is_own = |name: &str| matches!(name, SERVICE_NAME | MANAGED_BY | HEADLESS);
    let of_users = |labels: &BTreeMap<String, String>| -> BTreeMap<String, String> {
        labels
            .iter()
            .filter(|(name, _)| !is_own(name))
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect()
    };
    let mut labels = of_users(service.labels());
    let is_changed = of_users(slice.labels()) != labels;
    if addressed_pod::is_headless(service) {
        labels.insert(HEADLESS.to_owned(), String::new());
    }
    labels.insert(SERVICE_NAME.to_owned(), service.name_any());
    labels.insert(MANAGED_BY.to_owned(), CONTROLLER.to_owned());
    slice.metadata.labels = Some(labels);
    is_changed
}

fn is_owned(slice: &EndpointSlice, service: &Service) -> bool {
    let uid = service.uid().unwrap_or_default();
    slice.owner_references().iter().any(|it| it.uid == uid && it.kind == "Service" && it.api_version == "v1")
}

/// Whether the slice says that there is nothing, as it should.
fn is_placeholder(slice: &EndpointSlice, placeholder: &EndpointSlice) -> bool {
    let is_empty = len(slice) == 0 && slice.ports.as_ref().is_none_or(Vec::is_empty);
    is_empty
        && slice.address_type == placeholder.address_type
        && slice.labels() == placeholder.labels()
        && slice.owner_references() == placeholder.owner_references()
}

/// The kinds of addresses that the service has.
fn address_types(service: &Service) -> BTreeSet<&'static str> {
    let spec = service.spec.as_ref();
    let families = spec.and_then(|spec| spec.ip_families.as_deref()).unwrap_or_default();
    let types: BTreeSet<_> =
        families.iter().map(|family| if family == "IPv6" { "IPv6" } else { "IPv4" }).collect();
    if !types.is_empty() {
        return types;
    }
    let address = spec.and_then(|spec| spec.cluster_ip.as_deref()).unwrap_or_default();
    match address {
        "" | "None" => BTreeSet::from(["IPv4", "IPv6"]),
        address if address.contains(':') => BTreeSet::from(["IPv6"]),
        _ => BTreeSet::from(["IPv4"]),
    }
}

#[cfg(test)]
mod tests;
