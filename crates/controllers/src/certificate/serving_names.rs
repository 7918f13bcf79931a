//! Whether a node may have a serving certificate for the names that it asks for: a request and the Nodes → yes, or why not.

use super::{request::CertificateRequest, signer};
use k8s_openapi::api::{certificates::v1::CertificateSigningRequest, core::v1::Node};
use std::{collections::BTreeSet, net::IpAddr, sync::Arc};

/// Whether each name of the request is an address of its node's own, and the node itself asks.
///
/// A node writes its own addresses, so they prove little. What a false one is good for is limited by the CA: it is
/// trusted for kubelets only, and no other Node may have the address.
pub(super) fn check(
    csr: &CertificateSigningRequest,
    request: &CertificateRequest,
    nodes: &[Arc<Node>],
) -> Result<(), String> {
    signer::check_kubelet_serving(request, csr.spec.usages.as_deref().unwrap_or_default())?;
    let user = csr.spec.username.as_deref().unwrap_or_default();
    let groups = csr.spec.groups.as_deref().unwrap_or_default();
    if user != request.subject.common_name() || !groups.iter().any(|group| group == signer::NODES) {
        return Err("the node itself has to ask".to_owned());
    }
    let name = node_name(user).ok_or("the user is no node")?;
    let (own, others): (Vec<&Arc<Node>>, Vec<&Arc<Node>>) =
        nodes.iter().partition(|node| node.metadata.name.as_deref() == Some(name));
    let own: BTreeSet<HostName> = own.into_iter().flat_map(|node| addresses(node)).collect();
    if own.is_empty() {
        return Err("its Node has no addresses yet".to_owned());
    }
    let taken: BTreeSet<HostName> = others.into_iter().flat_map(|node| addresses(node)).collect();
    for wanted in names(request)? {
        if !own.contains(&wanted) {
            return Err(format!("{wanted} is no address of its Node"));
        }
        if taken.contains(&wanted) {
            return Err(format!("{wanted} is an address of another Node, too"));
        }
        if wanted.is_pattern() {
            return Err(format!("{wanted} may stand for other hosts, too"));
        }
        if wanted.is_local() {
            return Err(format!("{wanted} is an address of every machine"));
        }
    }
    Ok(())
}

/// The name of the node that a user is.
fn node_name(user: &str) -> Option<&str> {
    user.strip_prefix(signer::NODE_PREFIX).filter(|name| !name.is_empty())
}

/// A name of a host, or its address.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum HostName {
    Address(IpAddr),
    /// In small letters.
    Name(String),
}

impl HostName {
    fn of(text: &str) -> HostName {
        match text.parse::<IpAddr>() {
            Ok(address) => HostName::Address(address.to_canonical()),
            Err(_) => HostName::Name(text.to_ascii_lowercase()),
        }
    }

    /// Whether it is no plain name: `*.example.com` would be good for the names of other nodes.
    fn is_pattern(&self) -> bool {
        match self {
            HostName::Address(_) => false,
            HostName::Name(name) => {
                let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
                !name.split('.').all(|label| !label.is_empty() && label.bytes().all(is_plain))
            }
        }
    }

    /// Whether each machine calls itself so.
    fn is_local(&self) -> bool {
        match self {
            HostName::Address(address) => address.is_loopback() || address.is_unspecified(),
            HostName::Name(name) => name == "localhost" || name.ends_with(".localhost"),
        }
    }
}

impl std::fmt::Display for HostName {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            HostName::Address(address) => address.fmt(out),
            HostName::Name(name) => name.fmt(out),
        }
    }
}

/// What a Node says that it is called.
fn addresses(node: &Node) -> impl Iterator<Item = HostName> {
    let listed = node.status.iter().flat_map(|status| status.addresses.iter().flatten());
    listed.map(|it| HostName::of(&it.address))
}

/// The names that a certificate is asked for.
fn names(request: &CertificateRequest) -> Result<Vec<HostName>, String> {
    let addresses = request.names.addresses.iter().map(|bytes| match bytes.len() {
        4 => <[u8; 4]>::try_from(&bytes[..]).map(IpAddr::from),
        _ => <[u8; 16]>::try_from(&bytes[..]).map(IpAddr::from),
    });
    let addresses = addresses
        .map(|address| address.map(|address| HostName::Address(address.to_canonical())))
        .collect::<Result<Vec<_>, _>>()
        .map_err(|_| "an address is not well-formed".to_owned())?;
    let dns = request.names.dns.iter().map(|name| HostName::Name(name.to_ascii_lowercase()));
    Ok(addresses.into_iter().chain(dns).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::certificate::request;
    use k8s_openapi::ByteString;
    use rcgen::{CertificateParams, DnType, KeyPair};
    use serde_json::json;

    fn node(name: &str, addresses: &[(&str, &str)]) -> Arc<Node> {
        let addresses: Vec<_> =
            addresses.iter().map(|(kind, address)| json!({"type": kind, "address": address})).collect();
        let node = json!({"metadata": {"name": name}, "status": {"addresses": addresses}});
        Arc::new(serde_json::from_value(node).unwrap())
    }

    fn asked(user: &str, group: &str, subject: &str, names: &[&str]) -> CertificateSigningRequest {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut params = CertificateParams::new(names).unwrap();
        params.distinguished_name.push(DnType::CommonName, subject);
        params.distinguished_name.push(DnType::OrganizationName, "system:nodes");
        let pem = params.serialize_request(&KeyPair::generate().unwrap()).unwrap().pem().unwrap();
        let spec = json!({"request": ByteString(pem.into_bytes()), "signerName": signer::KUBELET_SERVING,
            "username": user, "groups": [group], "usages": ["server auth", "digital signature"]});
        serde_json::from_value(json!({ "spec": spec })).unwrap()
    }

    /// What becomes of `NODE: NAMES`, or `NODE as SUBJECT: NAMES`, in a cluster with these Nodes.
    fn outcome(nodes: &[Arc<Node>], group: &str, wish: &str) -> String {
        let (who, names) = wish.split_once(':').unwrap();
        let (user, subject) = who.split_once(" as ").unwrap_or((who, who));
        let names: Vec<&str> = names.split_whitespace().collect();
        let csr = asked(&format!("system:node:{user}"), group, &format!("system:node:{subject}"), &names);
        let request = request::parse(&csr.spec.request.0).unwrap();
        check(&csr, &request, nodes).err().unwrap_or_default()
    }

    #[test]
    fn a_node_gets_a_certificate_for_its_own_addresses_and_no_others() {
        let a = node(
            "a",
            &[
                ("Hostname", "a"),
                ("InternalIP", "10.0.0.1"),
                ("InternalIP", "fd00::1"),
                ("ExternalDNS", "A.example.com"),
            ],
        );
        let b = node("b", &[("Hostname", "b"), ("InternalIP", "10.0.0.2")]);
        let nodes = [a, b, node("bare", &[])];
        for (wish, expected) in [
            ("a: a 10.0.0.1 fd00::1", ""),
            ("a: a.EXAMPLE.com", ""),
            ("a: 10.0.0.2", "10.0.0.2 is no address of its Node"),
            ("a: a 10.0.0.1 10.0.0.9", "10.0.0.9 is no address of its Node"),
            ("a: kubernetes", "kubernetes is no address of its Node"),
            ("a: a.b", "a.b is no address of its Node"),
            ("a as b: 10.0.0.2", "the node itself has to ask"),
            ("z: z", "its Node has no addresses yet"),
            ("bare: bare", "its Node has no addresses yet"),
            ("a:", "DNS or IP subjectAltName is required"),
        ] {
            assert_eq!(outcome(&nodes, "system:nodes", wish), expected, "{wish}");
        }
        assert_eq!(outcome(&nodes, "devs", "a: a"), "the node itself has to ask");
    }

    #[test]
    fn an_address_that_two_nodes_claim_is_approved_for_neither() {
        let claims = [
            ("InternalIP", "10.0.0.2"),
            ("ExternalIP", "127.0.0.1"),
            ("InternalDNS", "localhost"),
            ("Hostname", "*.example.com"),
            ("ExternalDNS", "b."),
        ];
        let nodes = [node("b", &[("Hostname", "b"), ("InternalIP", "10.0.0.2")]), node("c", &claims)];
        for (wish, expected) in [
            ("b: b", ""),
            ("b: b 10.0.0.2", "10.0.0.2 is an address of another Node, too"),
            ("c: 10.0.0.2", "10.0.0.2 is an address of another Node, too"),
            ("c: 127.0.0.1", "127.0.0.1 is an address of every machine"),
            ("c: localhost", "localhost is an address of every machine"),
            ("c: *.example.com", "*.example.com may stand for other hosts, too"),
            ("c: b.", "b. may stand for other hosts, too"),
        ] {
            assert_eq!(outcome(&nodes, "system:nodes", wish), expected, "{wish}");
        }
    }

    #[test]
    fn an_ipv4_address_in_an_ipv6_one_is_the_same() {
        let nodes =
            [node("a", &[("InternalIP", "10.0.0.1")]), node("b", &[("InternalIP", "::ffff:10.0.0.1")])];
        let problem = "10.0.0.1 is an address of another Node, too";
        assert_eq!(outcome(&nodes, "system:nodes", "b: ::ffff:10.0.0.1"), problem);
    }
}
