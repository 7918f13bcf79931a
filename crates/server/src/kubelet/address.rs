//! The address of a kubelet, as its Node reports it.

use super::KubeletAddress;
use serde_json::Value;

/// The types of addresses, the best first.
// Kubernetes: the default of --kubelet-preferred-address-types.
const PREFERRED: [&str; 5] = ["Hostname", "InternalDNS", "InternalIP", "ExternalDNS", "ExternalIP"];
/// Kubernetes: the port of a kubelet that reports none.
const DEFAULT_PORT: u16 = 10250;

/// A Node without an address of a known type. The text is for users.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NoAddress(pub(crate) String);

pub(crate) fn address(node: &Value) -> Result<KubeletAddress, NoAddress> {
    let addresses = node["status"]["addresses"].as_array().map(Vec::as_slice).unwrap_or_default();
    let text = |value: &Value, field: &str| value[field].as_str().unwrap_or_default().to_owned();
    let mut preferred = PREFERRED
        .iter()
        .filter_map(|wanted| addresses.iter().find(|it| it["type"] == *wanted).map(|it| text(it, "address")));
    let Some(host) = preferred.next() else {
        // Kubernetes: as Go prints a list of structs.
        let known: Vec<String> =
            addresses.iter().map(|it| format!("{{{} {}}}", text(it, "type"), text(it, "address"))).collect();
        let known = known.join(" ");
        return Err(NoAddress(format!("no preferred addresses found; known addresses: [{known}]")));
    };
    let port = node["status"]["daemonEndpoints"]["kubeletEndpoint"]["Port"].as_u64();
    let port = port.and_then(|port| u16::try_from(port).ok()).filter(|port| *port > 0);
    let node = text(&node["metadata"], "name");
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
            let found = address(&node).map(|address| address.to_string()).map_err(|problem| problem.0);
            assert_eq!(found.as_deref().map_err(String::as_str), expected, "{node}");
        }
    }
}
