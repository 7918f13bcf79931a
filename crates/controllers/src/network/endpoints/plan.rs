//! What the Endpoints of a service should be: pure.

use crate::{
    network::{addressed_pod, subsets, trigger_time},
    pod,
};
use jiff::Timestamp;
use k8s_openapi::{
    api::core::v1::{EndpointAddress, EndpointPort, EndpointSubset, Endpoints, Pod, Service},
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use kube::ResourceExt;
use std::{collections::BTreeMap, sync::Arc};

/// Kubernetes: more addresses are cut, and an annotation says so.
const MOST_ADDRESSES: usize = 1000;
const OVER_CAPACITY: &str = "endpoints.kubernetes.io/over-capacity";
const MANAGED_BY: &str = "endpoints.kubernetes.io/managed-by";
const CONTROLLER: &str = "endpoint-controller";
const HEADLESS: &str = "service.kubernetes.io/headless";

/// The object to write; `None` if the current one is right.
pub(super) fn plan(
    service: &Service,
    pods: &[Arc<Pod>],
    current: Option<&Endpoints>,
    trigger_time: Option<Timestamp>,
) -> Option<Endpoints> {
    let subsets: Vec<EndpointSubset> = pods.iter().flat_map(|pod| subsets_of(service, pod)).collect();
    let mut wanted = subsets::pack(&subsets);
    let is_truncated = truncate(&mut wanted);
    let is_right = current.is_some_and(|current| {
        let subsets = current.subsets.as_deref().unwrap_or_default();
        subsets::pack(subsets) == wanted
            && are_labels_right(current.labels(), service.labels())
            && current.annotations().contains_key(OVER_CAPACITY) == is_truncated
    });
    if is_right {
        return None;
    }
    let new = || Endpoints {
        metadata: ObjectMeta {
            name: service.metadata.name.clone(),
            namespace: service.namespace(),
            ..ObjectMeta::default()
        },
        subsets: None,
    };
    let mut endpoints = current.cloned().unwrap_or_else(new);
    endpoints.subsets = (!wanted.is_empty()).then_some(wanted);
    let annotations = endpoints.metadata.annotations.get_or_insert_default();
    let mut annotate = |name: &str, value: Option<String>| match value {
        Some(value) => drop(annotations.insert(name.to_owned(), value)),
        None => drop(annotations.remove(name)),
    };
    annotate(trigger_time::ANNOTATION, trigger_time.map(trigger_time::text));
    annotate(OVER_CAPACITY, is_truncated.then(|| "truncated".to_owned()));
    let mut labels = service.labels().clone();
    labels.remove(HEADLESS);
    if addressed_pod::is_headless(service) {
        labels.insert(HEADLESS.to_owned(), String::new());
    }
    labels.insert(MANAGED_BY.to_owned(), CONTROLLER.to_owned());
    endpoints.metadata.labels = Some(labels);
    Some(endpoints)
}

/// One subset for each port of the service that the pod has.
fn subsets_of(service: &Service, pod: &Pod) -> Vec<EndpointSubset> {
    let publishes_all = addressed_pod::publishes_not_ready(service);
    let is_going = pod.metadata.deletion_timestamp.is_some() && !publishes_all;
    let Some(address) = address(service, pod).filter(|_| addressed_pod::has_address(pod) && !is_going) else {
        return Vec::new();
    };
    let subset = |port: Option<EndpointPort>| {
        let addresses = Some(vec![address.clone()]);
        let ports = port.map(|port| vec![port]);
        match publishes_all || pod::is_ready(pod) {
            true => EndpointSubset { addresses, not_ready_addresses: None, ports },
            false => EndpointSubset { addresses: None, not_ready_addresses: addresses, ports },
        }
    };
    let ports = addressed_pod::ports(service);
    if ports.is_empty() {
        return if addressed_pod::may_lack_ports(service) { vec![subset(None)] } else { Vec::new() };
    }
    let ports = ports.iter().filter_map(|port| {
        Some(EndpointPort {
            name: port.name.clone().filter(|name| !name.is_empty()),
            port: addressed_pod::target_port(pod, port)?,
            protocol: Some(port.protocol.clone().unwrap_or_else(|| "TCP".to_owned())),
            app_protocol: port.app_protocol.clone(),
        })
    });
    ports.map(|port| subset(Some(port))).collect()
}

/// The address of the pod in the first family of the service.
fn address(service: &Service, pod: &Pod) -> Option<EndpointAddress> {
    let spec = service.spec.as_ref()?;
    let family = spec.ip_families.as_ref().and_then(|families| families.first());
    let own = spec.cluster_ip.as_deref().filter(|ip| !ip.is_empty() && *ip != "None");
    let is_ipv6 = match (family, own) {
        (Some(family), _) => family == "IPv6",
        (None, Some(own)) => own.contains(':'),
        (None, None) => pod.status.as_ref()?.pod_ip.as_deref().unwrap_or_default().contains(':'),
    };
    let ip = addressed_pod::addresses(pod).find(|ip| ip.is_ipv6() == is_ipv6)?;
    Some(EndpointAddress {
        ip: ip.to_string(),
        hostname: addressed_pod::hostname(pod, service).map(str::to_owned),
        node_name: Some(pod::node_name(pod).to_owned()),
        target_ref: Some(addressed_pod::reference(pod)),
    })
}

/// Whether this control loop has written them.
pub(super) fn is_managed(endpoints: &Endpoints) -> bool {
    endpoints.metadata.labels.as_ref().is_some_and(has_own_label)
}

fn has_own_label(labels: &BTreeMap<String, String>) -> bool {
    labels.get(MANAGED_BY).is_some_and(|manager| manager == CONTROLLER)
}

fn are_labels_right(labels: &BTreeMap<String, String>, of_service: &BTreeMap<String, String>) -> bool {
    let is_own = |name: &str| matches!(name, HEADLESS | MANAGED_BY);
    has_own_label(labels) && labels.iter().filter(|(name, _)| !is_own(name)).eq(of_service.iter())
}

/// Cuts addresses, those that are not ready first, in proportion to the sizes of the subsets.
fn truncate(subsets: &mut [EndpointSubset]) -> bool {
    let count = |addresses: &Option<Vec<EndpointAddress>>| addresses.as_ref().map_or(0, Vec::len);
    let ready: usize = subsets.iter().map(|subset| count(&subset.addresses)).sum();
    let not_ready: usize = subsets.iter().map(|subset| count(&subset.not_ready_addresses)).sum();
    if ready + not_ready <= MOST_ADDRESSES {
        return false;
    }
    let cuts_ready = ready > MOST_ADDRESSES;
    let (room, total) =
        if cuts_ready { (MOST_ADDRESSES, ready) } else { (MOST_ADDRESSES - ready, not_ready) };
    let mut left = room;
    for subset in subsets {
        let cut = if cuts_ready { &mut subset.addresses } else { &mut subset.not_ready_addresses };
        // Rounded up: the last subset may get less.
        let share = (count(cut) * room).div_ceil(total).min(left);
        if let Some(addresses) = cut {
            addresses.truncate(share);
            left -= addresses.len();
        }
        *cut = cut.take().filter(|addresses| !addresses.is_empty());
        if cuts_ready {
            subset.not_ready_addresses = None;
        }
    }
    true
}

#[cfg(test)]
mod tests;
