//! Which slices mirror an Endpoints object: pure; one slice for each set of ports and kind of address.

use crate::network::{
    slice_writes::{self, EndpointIdentity, MANAGED_BY, SERVICE_NAME, SliceWrites},
    subsets, trigger_time,
};
use k8s_openapi::{
    api::{
        core::v1::{EndpointAddress, Endpoints},
        discovery::v1::{Endpoint, EndpointConditions, EndpointPort, EndpointSlice},
    },
    apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference},
};
use kube::ResourceExt;
use std::{collections::BTreeMap, net::IpAddr, sync::Arc};

/// The value of the label `managed-by`.
pub(super) const CONTROLLER: &str = "endpointslicemirroring-controller.k8s.io";
/// Kubernetes: of each subset, so many addresses are mirrored.
const MOST_ADDRESSES: usize = 1000;
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// What to write, and what to tell the user: reasons and notes of events.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct MirrorPlan {
    pub(super) writes: SliceWrites,
    pub(super) warnings: Vec<(&'static str, String)>,
}

type SliceKey = (&'static str, Vec<(String, String, Option<i32>, String)>);
type MirroredSlices = BTreeMap<SliceKey, (Vec<EndpointPort>, BTreeMap<EndpointIdentity, Endpoint>)>;

pub(super) fn plan(endpoints: &Endpoints, existing: &[Arc<EndpointSlice>]) -> MirrorPlan {
    let (wanted, warnings) = wanted(endpoints);
    let mut by_key: BTreeMap<SliceKey, Vec<&Arc<EndpointSlice>>> = BTreeMap::new();
    for slice in existing {
        let address_type = if slice.address_type == "IPv6" { "IPv6" } else { "IPv4" };
        let ports = slice_writes::port_key(slice.ports.as_deref().unwrap_or_default());
        by_key.entry((address_type, ports)).or_default().push(slice);
    }
    let mut writes = SliceWrites::default();
    for (key, (ports, mirrored)) in wanted {
        let slices = by_key.remove(&key).unwrap_or_default();
        let (first, more) =
            slices.split_first().map_or((None, &[][..]), |(first, more)| (Some(*first), more));
        writes.delete.extend(more.iter().map(|slice| EndpointSlice::clone(slice)));
        let mut slice = new_slice(endpoints, key.0, ports);
        slice.endpoints = Some(mirrored.into_values().collect());
        match first {
            Some(first) if is_right(first, &slice) => {}
            Some(first) => {
                slice.metadata.name = first.metadata.name.clone();
                slice.metadata.generate_name = None;
                slice.metadata.resource_version = first.metadata.resource_version.clone();
                writes.update.push(slice);
            }
            None => writes.create.push(slice),
        }
    }
    writes.delete.extend(by_key.into_values().flatten().map(|slice| EndpointSlice::clone(slice)));
    writes.reuse(|_| true);
    MirrorPlan { writes, warnings }
}

fn wanted(endpoints: &Endpoints) -> (MirroredSlices, Vec<(&'static str, String)>) {
    let (mut wanted, mut invalid, mut skipped) = (MirroredSlices::new(), 0, 0);
    for subset in subsets::pack(endpoints.subsets.as_deref().unwrap_or_default()) {
        let ports: Vec<EndpointPort> = subset.ports.iter().flatten().map(mirrored_port).collect();
        let ready = subset.addresses.iter().flatten().map(|address| (address, true));
        let not_ready = subset.not_ready_addresses.iter().flatten().map(|address| (address, false));
        let mut mirrored = 0;
        for (address, is_ready) in ready.chain(not_ready) {
            if mirrored == MOST_ADDRESSES {
                skipped += 1;
                continue;
            }
            let Ok(ip) = address.ip.parse::<IpAddr>() else {
                invalid += 1;
                continue;
            };
            mirrored += 1;
            let key = (if ip.is_ipv6() { "IPv6" } else { "IPv4" }, slice_writes::port_key(&ports));
            let (_, endpoints) = wanted.entry(key).or_insert_with(|| (ports.clone(), BTreeMap::new()));
            let endpoint = mirrored_endpoint(address, ip, is_ready);
            endpoints.insert(slice_writes::identity(&endpoint), endpoint);
        }
    }
    let mut warnings = Vec::new();
    if invalid > 0 {
        let note = format!("Skipped {invalid} invalid IP addresses when mirroring to EndpointSlices");
        warnings.push(("InvalidIPAddress", note));
    }
    if skipped > 0 {
        let note = format!(
            "A max of {MOST_ADDRESSES} addresses can be mirrored to EndpointSlices per Endpoints subset. \
             {} addresses were skipped",
            skipped + invalid
        );
        warnings.push(("TooManyAddressesToMirror", note));
    }
    (wanted, warnings)
}

fn mirrored_port(port: &k8s_openapi::api::core::v1::EndpointPort) -> EndpointPort {
    EndpointPort {
        name: Some(port.name.clone().unwrap_or_default()),
        port: Some(port.port),
        protocol: port.protocol.clone().or_else(|| Some("TCP".to_owned())),
        app_protocol: port.app_protocol.clone(),
    }
}

fn mirrored_endpoint(address: &EndpointAddress, ip: IpAddr, is_ready: bool) -> Endpoint {
    Endpoint {
        addresses: vec![ip.to_string()],
        conditions: Some(EndpointConditions { ready: Some(is_ready), serving: None, terminating: None }),
        target_ref: address.target_ref.clone(),
        node_name: address.node_name.clone(),
        hostname: address.hostname.clone().filter(|hostname| !hostname.is_empty()),
        ..Endpoint::default()
    }
}

fn new_slice(endpoints: &Endpoints, address_type: &str, ports: Vec<EndpointPort>) -> EndpointSlice {
    let owner = OwnerReference {
        api_version: "v1".to_owned(),
        kind: "Endpoints".to_owned(),
        name: endpoints.name_any(),
        uid: endpoints.uid().unwrap_or_default(),
        controller: Some(true),
        block_owner_deletion: Some(true),
    };
    let mut labels = endpoints.labels().clone();
    labels.insert(SERVICE_NAME.to_owned(), endpoints.name_any());
    labels.insert(MANAGED_BY.to_owned(), CONTROLLER.to_owned());
    let mut annotations = endpoints.annotations().clone();
    annotations.retain(|name, _| name != trigger_time::ANNOTATION && name != LAST_APPLIED);
    let metadata = ObjectMeta {
        generate_name: Some(slice_writes::generate_name(&endpoints.name_any())),
        namespace: endpoints.namespace(),
        labels: Some(labels),
        annotations: Some(annotations),
        owner_references: Some(vec![owner]),
        ..ObjectMeta::default()
    };
    EndpointSlice { metadata, address_type: address_type.to_owned(), ports: Some(ports), endpoints: None }
}

fn is_right(slice: &EndpointSlice, wanted: &EndpointSlice) -> bool {
    let endpoints = |slice: &EndpointSlice| -> BTreeMap<EndpointIdentity, Endpoint> {
        let endpoints = slice.endpoints.iter().flatten();
        endpoints.map(|endpoint| (slice_writes::identity(endpoint), endpoint.clone())).collect()
    };
    let (present, wanted_endpoints) = (endpoints(slice), endpoints(wanted));
    let are_same = present.len() == wanted_endpoints.len()
        && present.iter().all(|(identity, endpoint)| {
            wanted_endpoints.get(identity).is_some_and(|wanted| slice_writes::is_same(wanted, endpoint))
        });
    are_same
        && slice.labels() == wanted.labels()
        && slice.annotations() == wanted.annotations()
        && slice.owner_references().iter().all(|it| it.uid == wanted.owner_references()[0].uid)
}

#[cfg(test)]
mod tests;
