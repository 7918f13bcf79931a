//! Ports of the node that pods claim: a pod → its host ports, and whether they are free.

use k8s_openapi::api::core::v1::{Container, Pod};
use std::collections::BTreeSet;

/// Kubernetes: an empty `hostIP` means all addresses of the node.
const ALL_ADDRESSES: &str = "0.0.0.0";

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct HostPort {
    port: i32,
    protocol: String,
    address: String,
}

/// Host ports that a pod wants.
pub(crate) struct Wanted(BTreeSet<HostPort>);

impl Wanted {
    pub(crate) fn by(pod: &Pod) -> Wanted {
        Wanted(of_pod(pod).into_iter().collect())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether none of the ports is among those in use.
    pub(crate) fn are_free(&self, used: &[HostPort]) -> bool {
        !used.iter().any(|used| {
            let on = |address: &str| HostPort { address: address.to_owned(), ..used.clone() };
            // The text of an address begins with the smallest one.
            let mut same_port = self.0.range(on("")..);
            let is_same = |it: &HostPort| it.port == used.port && it.protocol == used.protocol;
            self.0.contains(used)
                || self.0.contains(&on(ALL_ADDRESSES))
                || (used.address == ALL_ADDRESSES && same_port.next().is_some_and(is_same))
        })
    }
}

/// The host ports of a pod's containers and sidecars.
pub(crate) fn of_pod(pod: &Pod) -> Vec<HostPort> {
    let Some(spec) = &pod.spec else { return Vec::new() };
    let is_sidecar = |container: &&Container| container.restart_policy.as_deref() == Some("Always");
    let sidecars = spec.init_containers.iter().flatten().filter(is_sidecar);
    let ports = spec.containers.iter().chain(sidecars).flat_map(|it| it.ports.iter().flatten());
    let claimed = ports.filter_map(|it| {
        Some(HostPort {
            address: it
                .host_ip
                .clone()
                .filter(|ip| !ip.is_empty())
                .unwrap_or_else(|| ALL_ADDRESSES.to_owned()),
            protocol: it.protocol.clone().unwrap_or_else(|| "TCP".to_owned()),
            port: it.host_port.filter(|port| *port > 0)?,
        })
    });
    claimed.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_host_port_is_free_if_protocol_address_or_number_differ() {
        let pod = |ports: serde_json::Value| -> Pod {
            let spec = json!({"containers": [{"name": "c", "ports": ports}]});
            serde_json::from_value(json!({"spec": spec})).unwrap()
        };
        let used = of_pod(&pod(json!([
            {"containerPort": 1, "hostPort": 80},
            {"containerPort": 1, "hostPort": 90, "hostIP": "10.0.0.1"}])));
        for (wanted, expected) in [
            (json!([]), true),
            (json!([{"containerPort": 80}]), true),
            (json!([{"containerPort": 1, "hostPort": 80}]), false),
            (json!([{"containerPort": 1, "hostPort": 80, "hostIP": "10.0.0.2"}]), false),
            (json!([{"containerPort": 1, "hostPort": 80, "protocol": "UDP"}]), true),
            (json!([{"containerPort": 1, "hostPort": 90, "hostIP": "10.0.0.1"}]), false),
            (json!([{"containerPort": 1, "hostPort": 90, "hostIP": "10.0.0.2"}]), true),
            (json!([{"containerPort": 1, "hostPort": 70}, {"containerPort": 2, "hostPort": 90}]), false),
        ] {
            assert_eq!(Wanted::by(&pod(wanted.clone())).are_free(&used), expected, "{wanted}");
        }
    }
}
