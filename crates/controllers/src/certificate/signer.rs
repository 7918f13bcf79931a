//! The signers of Kubernetes, and what each demands of a request.

use super::request::CertificateRequest;
use std::collections::BTreeSet;

// Kubernetes: names of its signers.
pub(super) const API_CLIENT: &str = "kubernetes.io/kube-apiserver-client";
pub(super) const KUBELET_CLIENT: &str = "kubernetes.io/kube-apiserver-client-kubelet";
pub(super) const KUBELET_SERVING: &str = "kubernetes.io/kubelet-serving";
pub(super) const LEGACY_UNKNOWN: &str = "kubernetes.io/legacy-unknown";

pub(super) const NODES: &str = "system:nodes";
pub(super) const NODE_PREFIX: &str = "system:node:";
const SERVING_USAGES: [&str; 3] = ["digital signature", "key encipherment", "server auth"];
const CLIENT_USAGES: [&str; 3] = ["client auth", "digital signature", "key encipherment"];
/// The usage that keys other than RSA do not need.
const OPTIONAL_USAGE: &str = "key encipherment";

/// Why a signer refuses the request; `None` for signers that are not those of Kubernetes.
pub(super) fn check(
    signer: &str,
    request: &CertificateRequest,
    usages: &[String],
) -> Option<Result<(), String>> {
    match signer {
        API_CLIENT => Some(check_api_client(usages)),
        KUBELET_CLIENT => Some(check_kubelet_client(request, usages)),
        KUBELET_SERVING => Some(check_kubelet_serving(request, usages)),
        // Kubernetes: no demands.
        LEGACY_UNKNOWN => Some(Ok(())),
        _ => None,
    }
}

fn check_api_client(usages: &[String]) -> Result<(), String> {
    if let Some(other) = usages.iter().find(|usage| !CLIENT_USAGES.contains(&usage.as_str())) {
        return Err(format!("invalid usage for client certificate: {other}"));
    }
    match usages.iter().any(|usage| usage == "client auth") {
        true => Ok(()),
        false => Err("missing required usage for client certificate: client auth".to_owned()),
    }
}

pub(super) fn check_kubelet_client(request: &CertificateRequest, usages: &[String]) -> Result<(), String> {
    check_organization(request)?;
    let names = &request.names;
    for (is_free, kind) in [
        (names.dns.is_empty(), "DNS"),
        (names.emails.is_empty(), "Email"),
        (names.addresses.is_empty(), "IP"),
        (names.uris.is_empty(), "URI"),
    ] {
        forbid(is_free, kind)?;
    }
    check_common_name(request)?;
    check_usages(usages, CLIENT_USAGES)
}

pub(super) fn check_kubelet_serving(request: &CertificateRequest, usages: &[String]) -> Result<(), String> {
    check_organization(request)?;
    let names = &request.names;
    if names.dns.is_empty() && names.addresses.is_empty() {
        return Err("DNS or IP subjectAltName is required".to_owned());
    }
    forbid(names.emails.is_empty(), "Email")?;
    forbid(names.uris.is_empty(), "URI")?;
    check_usages(usages, SERVING_USAGES)?;
    check_common_name(request)
}

fn check_organization(request: &CertificateRequest) -> Result<(), String> {
    match request.subject.organizations() {
        [only] if only == NODES => Ok(()),
        _ => Err(format!("subject organization is not {NODES}")),
    }
}

fn check_common_name(request: &CertificateRequest) -> Result<(), String> {
    match request.subject.common_name().starts_with(NODE_PREFIX) {
        true => Ok(()),
        false => Err(format!("subject common name does not begin with {NODE_PREFIX}")),
    }
}

fn forbid(is_free: bool, kind: &str) -> Result<(), String> {
    if is_free { Ok(()) } else { Err(format!("{kind} subjectAltNames are not allowed")) }
}

fn check_usages(usages: &[String], wanted: [&str; 3]) -> Result<(), String> {
    let has: BTreeSet<&str> = usages.iter().map(String::as_str).collect();
    let all = BTreeSet::from(wanted);
    let least = all.iter().copied().filter(|usage| *usage != OPTIONAL_USAGE).collect();
    match has == all || has == least {
        true => Ok(()),
        false => Err(format!("usages did not match [{}]", wanted.join(" "))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::certificate::request;
    use rcgen::{CertificateParams, DnType, KeyPair};

    fn request(name: &str, organization: &str, names: &[&str]) -> CertificateRequest {
        let names: Vec<String> = names.iter().map(|it| (*it).to_owned()).collect();
        let mut params = CertificateParams::new(names).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        params.distinguished_name.push(DnType::OrganizationName, organization);
        let pem = params.serialize_request(&KeyPair::generate().unwrap()).unwrap().pem().unwrap();
        request::parse(pem.as_bytes()).unwrap()
    }

    #[test]
    fn each_signer_has_its_own_demands() {
        let client = ["client auth", "digital signature", "key encipherment"];
        let serving = ["server auth", "digital signature"];
        let node = |names: &[&str]| request("system:node:n", "system:nodes", names);
        let (plain, named) = (node(&[]), node(&["n", "10.0.0.1"]));
        let (person, other_name) = (request("jane", "devs", &[]), request("n", "system:nodes", &[]));
        for (signer, request, usages, expected) in [
            (API_CLIENT, &person, &client[..], Some(None)),
            (API_CLIENT, &person, &client[..1], Some(None)),
            (API_CLIENT, &person, &serving, Some(Some("invalid usage for client certificate: server auth"))),
            (
                API_CLIENT,
                &person,
                &client[1..],
                Some(Some("missing required usage for client certificate: client auth")),
            ),
            (KUBELET_CLIENT, &plain, &client, Some(None)),
            (KUBELET_CLIENT, &plain, &client[..2], Some(None)),
            (
                KUBELET_CLIENT,
                &plain,
                &client[..1],
                Some(Some("usages did not match [client auth digital signature key encipherment]")),
            ),
            (KUBELET_CLIENT, &named, &client, Some(Some("DNS subjectAltNames are not allowed"))),
            (KUBELET_CLIENT, &person, &client, Some(Some("subject organization is not system:nodes"))),
            (
                KUBELET_CLIENT,
                &other_name,
                &client,
                Some(Some("subject common name does not begin with system:node:")),
            ),
            (KUBELET_SERVING, &named, &serving, Some(None)),
            (KUBELET_SERVING, &plain, &serving, Some(Some("DNS or IP subjectAltName is required"))),
            (
                KUBELET_SERVING,
                &named,
                &client,
                Some(Some("usages did not match [digital signature key encipherment server auth]")),
            ),
            (LEGACY_UNKNOWN, &person, &["any"], Some(None)),
            ("example.com/mine", &person, &client, None),
        ] {
            let usages: Vec<String> = usages.iter().map(|it| (*it).to_owned()).collect();
            let checked = check(signer, request, &usages);
            let problem = checked.as_ref().map(|it| it.as_ref().err().map(String::as_str));
            assert_eq!(problem, expected, "{signer} {usages:?}");
        }
    }
}
