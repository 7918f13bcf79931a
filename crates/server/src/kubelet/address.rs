//! The address of a kubelet, as its Node reports it.

use super::KubeletAddress;
use serde_json::Value;
use std::net::IpAddr;

/// The types of addresses, the best first.
// Kubernetes: the default of --kubelet-preferred-address-types.
const PREFERRED: [&str; 5] = ["Hostname", "InternalDNS", "InternalIP", "ExternalDNS", "ExternalIP"];

/// Which address of a Node is used for its kubelet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum AddressChoice {
    /// The first in the order of Kubernetes, which begins with the name of the host.
    #[default]
    NamesFirst,
    /// The first that is no name, in the same order; a name only if there is none. No server for names has to know nodes.
    AddressesFirst,
    /// The first of these types.
    Types(Vec<String>),
}

impl AddressChoice {
    /// The chosen one of addresses, given as type and text.
    fn choose<'a>(&self, addresses: &[(&str, &'a str)]) -> Option<&'a str> {
        let types: Vec<&str> = match self {
            AddressChoice::Types(types) => types.iter().map(String::as_str).collect(),
            _ => PREFERRED.to_vec(),
        };
        let sorted = || types.iter().filter_map(|wanted| addresses.iter().find(|(kind, _)| kind == wanted));
        let is_address = |text: &str| text.parse::<IpAddr>().is_ok();
        let first = match self {
            AddressChoice::AddressesFirst => sorted().find(|(_, text)| is_address(text)),
            _ => None,
        };
        first.or_else(|| sorted().next()).map(|(_, text)| *text)
    }
}
/// Kubernetes: the port of a kubelet that reports none.
const DEFAULT_PORT: u16 = 10250;

/// A Node without an address of a known type. The text is for users.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NoAddress(pub(crate) String);

pub(crate) fn address(node: &Value, choice: &AddressChoice) -> Result<KubeletAddress, NoAddress> {
    fn text<'a>(value: &'a Value, field: &str) -> &'a str {
        value[field].as_str().unwrap_or_default()
    }
    let addresses = node["status"]["addresses"].as_array().map(Vec::as_slice).unwrap_or_default();
    let addresses: Vec<_> = addresses.iter().map(|it| (text(it, "type"), text(it, "address"))).collect();
    let Some(host) = choice.choose(&addresses).map(str::to_owned) else {
        // Kubernetes: as Go prints a list of structs.
        let known: Vec<String> =
            addresses.iter().map(|(kind, address)| format!("{{{kind} {address}}}")).collect();
        let known = known.join(" ");
        return Err(NoAddress(format!("no preferred addresses found; known addresses: [{known}]")));
    };
    let port = node["status"]["daemonEndpoints"]["kubeletEndpoint"]["Port"].as_u64();
    let port = port.and_then(|port| u16::try_from(port).ok()).filter(|port| *port > 0);
    let node = text(&node["metadata"], "name").to_owned();
    Ok(KubeletAddress { node, host, port: port.unwrap_or(DEFAULT_PORT) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_preferred_address_of_a_node_is_used() {
        let internal = json!({"type": "InternalIP", "address": "172.18.0.2"});
        let name = json!({"type": "Hostname", "address": "web"});
        let six = json!({"type": "InternalIP", "address": "fd00::1"});
        let other = json!({"type": "Other", "address": "x"});
        for (addresses, port, expected) in [
            (json!([internal, name]), json!(1234), Ok("web:1234")),
            (json!([internal]), json!(0), Ok("172.18.0.2:10250")),
            (json!([internal]), json!(70000), Ok("172.18.0.2:10250")),
            (json!([six]), json!(null), Ok("[fd00::1]:10250")),
            (json!([]), json!(1), Err("no preferred addresses found; known addresses: []")),
            (
                json!([other, other]),
                json!(1),
                Err("no preferred addresses found; known addresses: [{Other x} {Other x}]"),
            ),
        ] {
            let endpoints = json!({"kubeletEndpoint": {"Port": port}});
            let node = json!({"metadata": {"name": "n"},
                "status": {"addresses": addresses, "daemonEndpoints": endpoints}});
            let found = address(&node, &AddressChoice::default())
                .map(|address| address.to_string())
                .map_err(|problem| problem.0);
            assert_eq!(found.as_deref().map_err(String::as_str), expected, "{node}");
        }
    }
    #[test]
    fn the_choice_of_an_address_is_that_of_the_server() {
        let named = [("InternalIP", "10.0.0.1"), ("ExternalIP", "192.0.2.1"), ("Hostname", "web")];
        // Simulated nodes have one address, as their Hostname.
        let simulated = [("InternalIP", "10.0.0.1"), ("Hostname", "127.0.0.1")];
        let nameless = [("ExternalIP", "192.0.2.1"), ("InternalIP", "fd00::1")];
        let only_names = [("ExternalDNS", "web.example.com"), ("InternalDNS", "web.local")];
        let types = |types: &[&str]| AddressChoice::Types(types.iter().map(|it| (*it).to_owned()).collect());
        for (choice, addresses, expected) in [
            (AddressChoice::NamesFirst, &named[..], Some("web")),
            (AddressChoice::AddressesFirst, &named, Some("10.0.0.1")),
            (AddressChoice::AddressesFirst, &simulated, Some("127.0.0.1")),
            (AddressChoice::AddressesFirst, &nameless, Some("fd00::1")),
            (AddressChoice::AddressesFirst, &only_names, Some("web.local")),
            (types(&["ExternalIP", "Hostname"]), &named, Some("192.0.2.1")),
            (types(&["ExternalIP", "Hostname"]), &only_names, None),
            (types(&[]), &named, None),
        ] {
            assert_eq!(choice.choose(addresses), expected, "{choice:?} {addresses:?}");
        }
    }
}
