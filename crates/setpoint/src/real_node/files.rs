//! The files of a machine that joins: the cluster's CA, a kubeconfig with the token, and the kubelet's configuration.

use crate::client::yaml;
use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::{Value, json};
use std::net::IpAddr;

// Names of the files. The configuration names the CA without a folder: it is the one beside it, wherever that is.
pub(crate) const CA: &str = "ca.crt";
pub(crate) const BOOTSTRAP_KUBECONFIG: &str = "bootstrap.kubeconfig";
pub(crate) const KUBELET: &str = "kubelet.yaml";
pub(crate) const POD_NETWORK: &str = "pod-network.conflist";

/// The bridge of a machine's pods.
pub(crate) const BRIDGE: &str = "setpoint0";

/// Kubernetes: the usual domain of a cluster's names.
pub(crate) const DOMAIN: &str = "cluster.local";

/// What the files say.
#[derive(Clone, Debug)]
pub(crate) struct MachineFacts {
    pub(crate) server: String,
    /// PEM.
    pub(crate) authority: String,
    pub(crate) token: String,
    pub(crate) dns: Option<IpAddr>,
    pub(crate) domain: String,
    /// The addresses of this machine's pods, if a bridge on the machine is to be their network.
    pub(crate) pod_range: Option<PodNetworkRange>,
    /// Kubernetes: a kubelet refuses such a machine unless it is told not to.
    pub(crate) is_on_cgroup_v1: bool,
}

/// A range of addresses for the pods of one machine, as in `10.100.1.0/24`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PodNetworkRange(String);

impl std::str::FromStr for PodNetworkRange {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<PodNetworkRange, &'static str> {
        const FORM: &str = "it must be a range of IPv4 addresses from /8 to /28, as in 10.100.1.0/24";
        let (address, bits) = text.split_once('/').ok_or(FORM)?;
        let address: std::net::Ipv4Addr = address.parse().map_err(|_| FORM)?;
        let bits: u32 = bits.parse().ok().filter(|bits| (8..=28).contains(bits)).ok_or(FORM)?;
        let rest = u32::BITS - bits;
        let first = std::net::Ipv4Addr::from_bits(address.to_bits() >> rest << rest);
        Ok(PodNetworkRange(format!("{first}/{bits}")))
    }
}

impl MachineFacts {
    /// Names and texts.
    pub(crate) fn files(&self) -> Vec<(&'static str, String)> {
        let mut files = vec![
            (CA, self.authority.clone()),
            (BOOTSTRAP_KUBECONFIG, self.bootstrap_kubeconfig()),
            (KUBELET, yaml::document(&self.kubelet())),
        ];
        files.extend(self.pod_range.as_ref().map(|range| (POD_NETWORK, pod_network(range))));
        files
    }

    fn bootstrap_kubeconfig(&self) -> String {
        let cluster =
            json!({"server": self.server, "certificate-authority-data": STANDARD.encode(&self.authority)});
        yaml::document(&json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "bootstrap",
            "clusters": [{"name": "setpoint", "cluster": cluster}],
            "users": [{"name": "bootstrap", "user": {"token": self.token}}],
            "contexts": [{"name": "bootstrap", "context": {"cluster": "setpoint", "user": "bootstrap"}}],
        }))
    }

    fn kubelet(&self) -> Value {
        let mut configuration = json!({
            "apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration",
            // Who asks the kubelet shows a certificate of the cluster's CA or a token, and the server says what they may.
            "authentication": {
                "anonymous": {"enabled": false}, "webhook": {"enabled": true}, "x509": {"clientCAFile": CA},
            },
            "authorization": {"mode": "Webhook"},
            "clusterDomain": self.domain,
            "containerRuntimeEndpoint": "unix:///run/containerd/containerd.sock",
            // Both certificates come from the cluster, and are renewed.
            "rotateCertificates": true, "serverTLSBootstrap": true,
        });
        if self.is_on_cgroup_v1 {
            configuration["failCgroupV1"] = false.into();
        }
        if let Some(dns) = self.dns {
            configuration["clusterDNS"] = json!([dns]);
        }
        configuration
    }
}

/// A network for the pods of one machine: they reach each other, the machine, and through it the world.
fn pod_network(PodNetworkRange(range): &PodNetworkRange) -> String {
    let bridge = json!({
        "type": "bridge", "bridge": BRIDGE, "isGateway": true, "ipMasq": true, "hairpinMode": true,
        // The bridge of an earlier range gets the new address.
        "forceAddress": true,
        "ipam": {"type": "host-local", "ranges": [[{"subnet": range}]], "routes": [{"dst": "0.0.0.0/0"}]},
    });
    let ports = json!({"type": "portmap", "capabilities": {"portMappings": true}});
    let list = json!({"cniVersion": "1.0.0", "name": "setpoint", "plugins": [bridge, ports]});
    format!("{list:#}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts() -> MachineFacts {
        MachineFacts {
            server: "https://192.0.2.1:6443".to_owned(),
            authority: "-----BEGIN CERTIFICATE-----\n".to_owned(),
            token: "abcdef.0123456789abcdef".to_owned(),
            dns: "10.96.0.10".parse().ok(),
            domain: DOMAIN.to_owned(),
            pod_range: None,
            is_on_cgroup_v1: false,
        }
    }

    #[test]
    fn the_configuration_of_the_kubelet_asks_for_certificates_and_trusts_only_the_cluster() {
        let files = facts().files();
        assert_eq!(
            files.iter().map(|(name, _)| *name).collect::<Vec<_>>(),
            [CA, BOOTSTRAP_KUBECONFIG, KUBELET]
        );
        let expected = "\
apiVersion: kubelet.config.k8s.io/v1beta1
authentication:
  anonymous:
    enabled: false
  webhook:
    enabled: true
  x509:
    clientCAFile: ca.crt
authorization:
  mode: Webhook
clusterDNS:
- 10.96.0.10
clusterDomain: cluster.local
containerRuntimeEndpoint: unix:///run/containerd/containerd.sock
kind: KubeletConfiguration
rotateCertificates: true
serverTLSBootstrap: true
";
        assert_eq!(files[2].1, expected);
        assert!(files[1].1.contains("    token: abcdef.0123456789abcdef\n"), "{}", files[1].1);
    }

    #[test]
    fn the_network_of_pods_has_the_given_range() {
        let range = "10.100.1.77/24".parse().unwrap();
        let files = MachineFacts { pod_range: Some(range), ..facts() }.files();
        let list: Value = serde_json::from_str(&files[3].1).unwrap();
        assert_eq!(list["plugins"][0]["ipam"]["ranges"][0][0]["subnet"], "10.100.1.0/24");
        for odd in ["", "10.100.1.0", "10.100.1.0/", "10.100.1.0/33", "10.100.1.0/4", "fd00::/64", "x/24"] {
            assert!(odd.parse::<PodNetworkRange>().is_err(), "{odd}");
        }
    }
}
