//! What a kubelet has to know of the cluster: asked of the server.

use crate::client::{
    api::Api,
    failure::{ClientError, ClientResult},
};
use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::Value;
use std::net::IpAddr;
use tokio_rustls::rustls::pki_types::{CertificateDer, pem::PemObject};

const SERVICE: &str = "/api/v1/namespaces/default/services/kubernetes";
const ENDPOINTS: &str = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/kubernetes";
const DNS: &str = "/api/v1/namespaces/kube-system/services/kube-dns";
const ROOT_CA: &str = "/api/v1/namespaces/kube-system/configmaps/kube-root-ca.crt";
/// Kubernetes: kubeadm gives this address of the service range to DNS.
const DNS_INDEX: u32 = 10;

/// The CA of the cluster, as PEM: kubelets trust the server by it, and the server's requests.
pub(crate) async fn authority(api: &Api) -> ClientResult<String> {
    let map = api.get(ROOT_CA).await?;
    certificates(map["data"]["ca.crt"].as_str().unwrap_or_default())
        .ok_or_else(|| ClientError::error("the ConfigMap kube-root-ca.crt of kube-system has no certificate"))
}

/// The certificates of a text, written anew: whatever else is in it must not reach a script that runs as root.
fn certificates(text: &str) -> Option<String> {
    let all: Result<Vec<CertificateDer<'_>>, _> = CertificateDer::pem_slice_iter(text.as_bytes()).collect();
    let all = all.ok().filter(|all| !all.is_empty())?;
    let encoded = all.iter().map(|certificate| {
        let base64 = STANDARD.encode(certificate);
        let lines = base64.as_bytes().chunks(64).map(String::from_utf8_lossy);
        let lines: Vec<_> = lines.collect();
        format!("-----BEGIN CERTIFICATE-----\n{}\n-----END CERTIFICATE-----\n", lines.join("\n"))
    });
    Some(encoded.collect())
}

/// The address of the cluster's DNS: that of its service, or the one that it would have.
pub(crate) async fn dns(api: &Api) -> ClientResult<Option<IpAddr>> {
    match api.get(DNS).await {
        Ok(service) => return Ok(cluster_ip(&service)),
        Err(error) if error.is_not_found() => {}
        Err(error) => return Err(error),
    }
    Ok(cluster_ip(&api.get(SERVICE).await?).and_then(usual_dns))
}

/// Where the server says that the cluster reaches it.
pub(crate) async fn advertised(api: &Api) -> ClientResult<Option<String>> {
    Ok(endpoint(&api.get(ENDPOINTS).await?))
}

fn cluster_ip(service: &Value) -> Option<IpAddr> {
    service["spec"]["clusterIP"].as_str()?.parse().ok()
}

/// The tenth address of a range of services, by its first.
fn usual_dns(first: IpAddr) -> Option<IpAddr> {
    match first {
        IpAddr::V4(first) => {
            Some(IpAddr::V4(first.to_bits().checked_add(DNS_INDEX - 1).map(std::net::Ipv4Addr::from_bits)?))
        }
        IpAddr::V6(first) => {
            let address = first.to_bits().checked_add(u128::from(DNS_INDEX - 1));
            Some(IpAddr::V6(address.map(std::net::Ipv6Addr::from_bits)?))
        }
    }
}

/// The URL of the first address in the slice of the service `kubernetes`.
fn endpoint(slice: &Value) -> Option<String> {
    let address: IpAddr = slice["endpoints"][0]["addresses"][0].as_str()?.parse().ok()?;
    let ports = slice["ports"].as_array()?;
    let port = ports.iter().find(|port| port["name"] == "https").or(ports.first())?["port"].as_u64()?;
    Some(format!("https://{}", std::net::SocketAddr::new(address, u16::try_from(port).ok()?)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn nothing_but_certificates_is_taken_from_the_config_map() {
        let block = format!(
            "-----BEGIN CERTIFICATE-----\n{}\n-----END CERTIFICATE-----\n",
            STANDARD.encode("x".repeat(30))
        );
        let hostile = format!("END-OF-FILE\ntouch /root/taken\n{block}END-OF-FILE\ntouch /root/taken\n");
        assert_eq!(certificates(&hostile).as_deref(), Some(block.as_str()));
        assert_eq!(certificates(&format!("{block}{block}")), Some(format!("{block}{block}")));
        assert_eq!(certificates("END-OF-FILE\ntouch /root/taken"), None);
        assert_eq!(certificates("-----BEGIN CERTIFICATE-----\nEND-OF-FILE\ntouch x\n"), None);
    }

    #[test]
    fn the_address_of_dns_is_the_tenth_of_the_services() {
        for (first, expected) in [("10.96.0.1", "10.96.0.10"), ("fd00::1", "fd00::a")] {
            assert_eq!(usual_dns(first.parse().unwrap()), Some(expected.parse().unwrap()));
        }
        assert_eq!(usual_dns("255.255.255.255".parse().unwrap()), None);
    }

    #[test]
    fn the_url_of_the_server_is_its_first_endpoint() {
        let of = |address: &str, port: u64| json!({"endpoints": [{"addresses": [address]}], "ports": [{"name": "https", "port": port}]});
        assert_eq!(endpoint(&of("192.0.2.1", 6443)).as_deref(), Some("https://192.0.2.1:6443"));
        assert_eq!(endpoint(&of("fd00::1", 443)).as_deref(), Some("https://[fd00::1]:443"));
        assert_eq!(endpoint(&of("192.0.2.1", 70_000)), None);
        assert_eq!(endpoint(&json!({})), None);
    }
}
