//! Ports of the node that pods claim: a pod → its host ports, and whether they are free.

use k8s_openapi::api::core::v1::{Container, Pod};

/// Kubernetes: an empty `hostIP` means all addresses of the node.
const ALL_ADDRESSES: &str = "0.0.0.0";

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HostPort {
    address: String,
    protocol: String,
    port: i32,
}

impl HostPort {
    fn conflicts_with(&self, other: &HostPort) -> bool {
        let is_shared = [self, other].iter().any(|it| it.address == ALL_ADDRESSES);
        (&self.protocol, self.port) == (&other.protocol, other.port)
            && (is_shared || self.address == other.address)
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

/// Whether none of the wanted ports is among those in use.
pub(crate) fn are_free(wanted: &[HostPort], used: &[HostPort]) -> bool {
    !wanted.iter().any(|port| used.iter().any(|other| port.conflicts_with(other)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_host_port_is_free_if_protocol_address_or_number_differ() {
        let ports = |ports: serde_json::Value| {
            let spec = json!({"containers": [{"name": "c", "ports": ports}]});
            of_pod(&serde_json::from_value(json!({"spec": spec})).unwrap())
        };
        let used = ports(json!([
            {"containerPort": 1, "hostPort": 80},
            {"containerPort": 1, "hostPort": 90, "hostIP": "10.0.0.1"}]));
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
            assert_eq!(are_free(&ports(wanted.clone()), &used), expected, "{wanted}");
        }
    }
}
