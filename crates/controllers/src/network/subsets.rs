//! Subsets of Endpoints in their canonical form: addresses with the same ports and states together, sorted.

use k8s_openapi::api::core::v1::{EndpointAddress, EndpointPort, EndpointSubset};
use std::collections::BTreeMap;

/// An address is the same if its pod is.
type AddressKey = (String, String);
type PortKey = (String, i32, String, String);
/// The addresses that offer a port, and whether they are ready.
type PortAddresses<'a> = (Option<&'a EndpointPort>, BTreeMap<AddressKey, bool>);

/// Packs the subsets: each address appears once for each of its ports.
pub(super) fn pack(subsets: &[EndpointSubset]) -> Vec<EndpointSubset> {
    let mut addresses: BTreeMap<AddressKey, &EndpointAddress> = BTreeMap::new();
    let mut by_port: BTreeMap<Option<PortKey>, PortAddresses<'_>> = BTreeMap::new();
    for subset in subsets {
        let ports = subset.ports.as_deref().unwrap_or_default();
        let ports: Vec<Option<&EndpointPort>> =
            if ports.is_empty() { vec![None] } else { ports.iter().map(Some).collect() };
        let ready = subset.addresses.iter().flatten().map(|address| (address, true));
        let not_ready = subset.not_ready_addresses.iter().flatten().map(|address| (address, false));
        for (address, is_ready) in ready.chain(not_ready) {
            let key = address_key(address);
            addresses.entry(key.clone()).or_insert(address);
            for port in &ports {
                let (_, states) =
                    by_port.entry(port.map(port_key)).or_insert_with(|| (*port, BTreeMap::new()));
                // Not ready has precedence.
                *states.entry(key.clone()).or_insert(true) &= is_ready;
            }
        }
    }
    let mut packed: BTreeMap<Vec<(AddressKey, bool)>, Vec<EndpointPort>> = BTreeMap::new();
    for (port, states) in by_port.into_values() {
        packed.entry(states.into_iter().collect()).or_default().extend(port.cloned());
    }
    let mut packed: Vec<EndpointSubset> = packed
        .into_iter()
        .map(|(states, ports)| {
            let of = |wanted: bool| -> Option<Vec<EndpointAddress>> {
                let states = states.iter().filter(|(_, is_ready)| *is_ready == wanted);
                let found: Vec<_> = states.map(|(key, _)| EndpointAddress::clone(addresses[key])).collect();
                (!found.is_empty()).then_some(found)
            };
            EndpointSubset {
                addresses: of(true),
                not_ready_addresses: of(false),
                ports: (!ports.is_empty()).then_some(ports),
            }
        })
        .collect();
    packed.sort_by_key(|subset| subset.ports.iter().flatten().map(port_key).collect::<Vec<_>>());
    packed
}

fn address_key(address: &EndpointAddress) -> AddressKey {
    let uid = address.target_ref.as_ref().and_then(|target| target.uid.clone());
    (address.ip.clone(), uid.unwrap_or_default())
}

fn port_key(port: &EndpointPort) -> PortKey {
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    (text(&port.name), port.port, text(&port.protocol), text(&port.app_protocol))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn addresses_with_the_same_ports_are_together() {
        let (a, b) = (json!({"ip": "10.0.0.1"}), json!({"ip": "10.0.0.2"}));
        let (http, dns) = (json!({"name": "http", "port": 80}), json!({"name": "dns", "port": 53}));
        for (subsets, expected) in [
            (json!([]), json!([])),
            (
                json!([{"addresses": [b], "ports": [http]}, {"addresses": [a], "ports": [http]}]),
                json!([{"addresses": [a, b], "ports": [http]}]),
            ),
            (
                json!([{"addresses": [a], "ports": [http]}, {"addresses": [a], "ports": [dns]}]),
                json!([{"addresses": [a], "ports": [dns, http]}]),
            ),
            (
                json!([{"addresses": [a], "ports": [http]}, {"notReadyAddresses": [b], "ports": [http]}]),
                json!([{"addresses": [a], "notReadyAddresses": [b], "ports": [http]}]),
            ),
            (
                json!([{"addresses": [a], "ports": [http]}, {"addresses": [a, b], "ports": [dns]}]),
                json!([{"addresses": [a, b], "ports": [dns]}, {"addresses": [a], "ports": [http]}]),
            ),
            (json!([{"addresses": [a]}, {"addresses": [b]}]), json!([{"addresses": [a, b]}])),
            (
                json!([{"addresses": [a], "notReadyAddresses": [a], "ports": [dns]}]),
                json!([{"notReadyAddresses": [a], "ports": [dns]}]),
            ),
        ] {
            let read: Vec<EndpointSubset> = serde_json::from_value(subsets.clone()).unwrap();
            let found: Value = serde_json::to_value(pack(&read)).unwrap();
            assert_eq!(found, expected, "{subsets}");
        }
    }
}
