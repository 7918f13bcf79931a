//! Certificate requests: approved for nodes, signed, and deleted when they are old.

use crate::rig;
use k8s_openapi::{
    ByteString,
    api::{
        certificates::v1::{CertificateSigningRequest, CertificateSigningRequestStatus},
        core::v1::Node,
    },
};
use kube::{Api, Client, api::PostParams};
use rcgen::{CertificateParams, DnType, KeyPair};
use serde_json::{Value, json};
use std::time::Duration;
use testkit::Cluster;
use x509_parser::pem::parse_x509_pem;

const SIGNING: &str = "certificatesigningrequest-signing-controller";
const APPROVING: &str = "certificatesigningrequest-approving-controller";
const CLEANER: &str = "certificatesigningrequest-cleaner-controller";
const HOUR: Duration = Duration::from_secs(3600);

const CLIENT: &str = "kubernetes.io/kube-apiserver-client";
const KUBELET_CLIENT: &str = "kubernetes.io/kube-apiserver-client-kubelet";

fn pem(name: &str, group: &str) -> ByteString {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, name);
    params.distinguished_name.push(DnType::OrganizationName, group);
    let request = params.serialize_request(&KeyPair::generate().unwrap()).unwrap();
    ByteString(request.pem().unwrap().into_bytes())
}

/// Asks for a certificate named `csr`, with more fields of the spec.
async fn ask(client: Client, request: &ByteString, signer: &str, more: &Value) {
    let mut csr = json!({"metadata": {"name": "csr"}, "spec": {"request": request, "signerName": signer,
        "usages": ["client auth", "digital signature"]}});
    for (name, value) in more.as_object().unwrap() {
        csr["spec"][name] = value.clone();
    }
    let csr: CertificateSigningRequest = serde_json::from_value(csr).unwrap();
    Api::all(client).create(&PostParams::default(), &csr).await.unwrap();
}

/// What an administrator decides.
async fn decide(cluster: &Cluster, decision: &str) {
    let csr: CertificateSigningRequest = cluster.get(None, "csr").await;
    let mut decided = serde_json::to_value(csr).unwrap();
    decided["status"] = json!({"conditions": [{"type": decision, "status": "True", "reason": "Test"}]});
    let requests = Api::<CertificateSigningRequest>::all(cluster.client());
    requests.replace_subresource("approval", "csr", &PostParams::default(), &decided).await.unwrap();
}

async fn status(cluster: &Cluster) -> CertificateSigningRequestStatus {
    cluster.get::<CertificateSigningRequest>(None, "csr").await.status.unwrap_or_default()
}

#[test]
fn an_approved_request_gets_a_certificate_of_the_ca() {
    testkit::run(|cluster| async move {
        let _running = rig::start(&cluster, &[SIGNING]);
        ask(cluster.client(), &pem("jane", "devs"), CLIENT, &json!({"expirationSeconds": 3600})).await;
        cluster.settle().await;
        assert_eq!(status(&cluster).await.certificate, None, "not before it is approved");
        decide(&cluster, "Approved").await;
        cluster.settle().await;
        let issued = status(&cluster).await.certificate.unwrap().0;
        let (rest, block) = parse_x509_pem(&issued).unwrap();
        assert!(rest.is_empty());
        let certificate = block.parse_x509().unwrap();
        assert_eq!(certificate.subject().to_string(), "O=devs, CN=jane");
        let (_, ca) = parse_x509_pem(rig::ca().certificate.as_bytes()).unwrap();
        let ca = ca.parse_x509().unwrap();
        certificate.verify_signature(Some(ca.public_key())).unwrap();
        let lasts = certificate.validity().not_after.timestamp() - cluster.world().wall().as_second();
        assert!((3590..=3600).contains(&lasts), "{lasts}");
        // It stays the same certificate.
        cluster.advance(Duration::from_secs(60)).await;
        assert_eq!(status(&cluster).await.certificate.unwrap().0, issued);
    });
}

#[test]
fn a_request_that_breaks_a_rule_of_its_signer_fails() {
    testkit::run(|cluster| async move {
        let _running = rig::start(&cluster, &[SIGNING]);
        ask(cluster.client(), &pem("jane", "devs"), CLIENT, &json!({"usages": ["server auth"]})).await;
        decide(&cluster, "Approved").await;
        cluster.settle().await;
        let status = status(&cluster).await;
        assert_eq!(status.certificate, None);
        let failed = status.conditions.unwrap().into_iter().find(|it| it.type_ == "Failed").unwrap();
        assert_eq!(failed.reason.as_deref(), Some("SignerValidationFailure"));
        assert_eq!(failed.message.as_deref(), Some("invalid usage for client certificate: server auth"));
    });
}

#[test]
fn denied_requests_and_those_of_other_signers_are_not_signed() {
    testkit::run(|cluster| async move {
        let _running = rig::start(&cluster, &[SIGNING]);
        ask(cluster.client(), &pem("jane", "devs"), CLIENT, &json!({})).await;
        decide(&cluster, "Denied").await;
        cluster.settle().await;
        assert_eq!(status(&cluster).await.certificate, None);
        cluster.delete::<CertificateSigningRequest>(None, "csr").await;
        ask(cluster.client(), &pem("jane", "devs"), "example.com/mine", &json!({})).await;
        decide(&cluster, "Approved").await;
        cluster.settle().await;
        assert_eq!(status(&cluster).await.certificate, None);
    });
}

/// Lets a group ask for certificates of nodes.
async fn allow(cluster: &Cluster, group: &str, role: &str) {
    let role = format!("system:certificates.k8s.io:certificatesigningrequests:{role}");
    let binding = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
        "metadata": {"name": "ask"}, "subjects": [{"kind": "Group", "name": group, "apiGroup": "rbac.authorization.k8s.io"}],
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role}});
    cluster.apply_object(&binding).await;
}

#[test]
fn a_joining_node_gets_its_certificate_once_its_token_may_ask_for_it() {
    testkit::run(|cluster| async move {
        let _running = rig::start(&cluster, &[APPROVING, SIGNING]);
        // Kubernetes: tokens with the permission to create requests.
        let bootstrap = ["system:bootstrappers", "system:authenticated"];
        cluster.apply("{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: bootstrap},
            subjects: [{kind: Group, name: 'system:bootstrappers', apiGroup: rbac.authorization.k8s.io}],
            roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: 'system:node-bootstrapper'}}").await;
        let client = cluster.client_as("system:bootstrap:abcdef", &bootstrap);
        ask(client, &pem("system:node:n", "system:nodes"), KUBELET_CLIENT, &json!({})).await;
        cluster.settle().await;
        assert_eq!(status(&cluster).await.conditions, None);
        // The permission comes later: no one has to ask again.
        allow(&cluster, "system:bootstrappers", "nodeclient").await;
        cluster.settle().await;
        let status = status(&cluster).await;
        let approved = &status.conditions.unwrap()[0];
        assert_eq!((approved.type_.as_str(), approved.reason.as_deref()), ("Approved", Some("AutoApproved")));
        let message = "Auto approving kubelet client certificate after SubjectAccessReview.";
        assert_eq!(approved.message.as_deref(), Some(message));
        assert!(status.certificate.is_some());
    });
}

#[test]
fn a_node_renews_its_own_certificate_and_no_other() {
    testkit::run(|cluster| async move {
        let _running = rig::start(&cluster, &[APPROVING]);
        allow(&cluster, "system:nodes", "selfnodeclient").await;
        let node = cluster.client_as("system:node:n", &["system:nodes", "system:authenticated"]);
        ask(node.clone(), &pem("system:node:n", "system:nodes"), KUBELET_CLIENT, &json!({})).await;
        cluster.settle().await;
        let message = status(&cluster).await.conditions.unwrap()[0].message.clone();
        assert_eq!(
            message.as_deref(),
            Some("Auto approving self kubelet client certificate after SubjectAccessReview.")
        );
        cluster.delete::<CertificateSigningRequest>(None, "csr").await;
        let admin = cluster.client();
        ask(admin, &pem("system:node:other", "system:nodes"), KUBELET_CLIENT, &json!({})).await;
        cluster.settle().await;
        assert!(status(&cluster).await.conditions.is_some(), "an administrator may ask for any node");
    });
}

/// Lets all nodes ask for serving certificates, as `setpoint node join` does.
async fn allow_serving(cluster: &Cluster) {
    for object in [
        json!({"kind": "ClusterRole", "metadata": {"name": "serve"}, "rules": [{"verbs": ["create"],
            "apiGroups": ["certificates.k8s.io"], "resources": ["certificatesigningrequests/selfnodeserver"]}]}),
        json!({"kind": "ClusterRoleBinding", "metadata": {"name": "serve"},
            "subjects": [{"kind": "Group", "name": "system:nodes", "apiGroup": "rbac.authorization.k8s.io"}],
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "serve"}}),
        json!({"kind": "ClusterRoleBinding", "metadata": {"name": "approve"},
            "subjects": [{"kind": "ServiceAccount", "namespace": "kube-system", "name": "certificate-controller"}],
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole",
                "name": "system:certificates.k8s.io:kubelet-serving-approver"}}),
    ] {
        let mut object = object;
        object["apiVersion"] = "rbac.authorization.k8s.io/v1".into();
        cluster.apply_object(&object).await;
    }
}

/// A node asks for a serving certificate with these names.
async fn ask_to_serve(cluster: &Cluster, node: &str, names: &[&str]) {
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let mut params = CertificateParams::new(names).unwrap();
    params.distinguished_name.push(DnType::CommonName, format!("system:node:{node}"));
    params.distinguished_name.push(DnType::OrganizationName, "system:nodes");
    let request = params.serialize_request(&KeyPair::generate().unwrap()).unwrap();
    let request = ByteString(request.pem().unwrap().into_bytes());
    let client = cluster.client_as(&format!("system:node:{node}"), &["system:nodes", "system:authenticated"]);
    let usages = json!({"usages": ["server auth", "digital signature"]});
    ask(client, &request, "kubernetes.io/kubelet-serving", &usages).await;
}

/// A Node that reports this address.
async fn node(cluster: &Cluster, name: &str, address: &str) {
    let status = json!({"addresses": [{"type": "InternalIP", "address": address}]});
    let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "status": status});
    Api::<Node>::all(cluster.client())
        .create(&PostParams::default(), &serde_json::from_value(node).unwrap())
        .await
        .unwrap();
}

#[test]
fn a_node_gets_a_serving_certificate_of_its_own_ca_once_its_node_has_the_address() {
    testkit::run(|cluster| async move {
        let _running = rig::start(&cluster, &[APPROVING, SIGNING]);
        allow_serving(&cluster).await;
        ask_to_serve(&cluster, "n", &["10.0.0.1"]).await;
        cluster.settle().await;
        assert_eq!(status(&cluster).await.conditions, None, "there is no Node");
        node(&cluster, "n", "10.0.0.1").await;
        cluster.settle().await;
        let status = status(&cluster).await;
        assert_eq!(status.conditions.unwrap()[0].type_, "Approved");
        let issued = status.certificate.unwrap().0;
        let (_, block) = parse_x509_pem(&issued).unwrap();
        let certificate = block.parse_x509().unwrap();
        for (ca, is_signer) in [(rig::kubelet_ca(), true), (rig::ca(), false)] {
            let (_, block) = parse_x509_pem(ca.certificate.as_bytes()).unwrap();
            let ca = block.parse_x509().unwrap();
            assert_eq!(
                certificate.verify_signature(Some(ca.public_key())).is_ok(),
                is_signer,
                "{}",
                ca.subject()
            );
        }
    });
}

#[test]
fn serving_certificates_are_left_to_others_for_false_addresses_and_without_the_permission() {
    for (name, is_allowed, address) in
        [("no permission", false, "10.0.0.1"), ("the address of another node", true, "10.0.0.2")]
    {
        testkit::run(|cluster| async move {
            let _running = rig::start(&cluster, &[APPROVING, SIGNING]);
            if is_allowed {
                allow_serving(&cluster).await;
            }
            node(&cluster, "n", "10.0.0.1").await;
            node(&cluster, "m", "10.0.0.2").await;
            ask_to_serve(&cluster, "n", &[address]).await;
            cluster.settle().await;
            let status = status(&cluster).await;
            assert_eq!((status.conditions, status.certificate), (None, None), "{name}");
        });
    }
}

#[test]
fn a_serving_certificate_waits_until_no_other_node_has_the_address() {
    testkit::run(|cluster| async move {
        let _running = rig::start(&cluster, &[APPROVING, SIGNING]);
        allow_serving(&cluster).await;
        node(&cluster, "old", "10.0.0.1").await;
        node(&cluster, "new", "10.0.0.1").await;
        ask_to_serve(&cluster, "new", &["10.0.0.1"]).await;
        cluster.settle().await;
        assert_eq!(status(&cluster).await.conditions, None);
        cluster.delete::<Node>(None, "old").await;
        cluster.settle().await;
        assert_eq!(status(&cluster).await.conditions.unwrap()[0].type_, "Approved");
    });
}

#[test]
fn old_requests_are_deleted() {
    for (decision, kept) in [(None, 24), (Some("Approved"), 1), (Some("Denied"), 1)] {
        testkit::run(|cluster| async move {
            let _running = rig::start(&cluster, &[SIGNING, CLEANER]);
            ask(cluster.client(), &pem("jane", "devs"), CLIENT, &json!({})).await;
            if let Some(decision) = decision {
                decide(&cluster, decision).await;
            }
            let is_there = async || cluster.find::<CertificateSigningRequest>(None, "csr").await.is_some();
            cluster.advance(kept * HOUR - Duration::from_secs(10)).await;
            assert!(is_there().await, "{decision:?}");
            cluster.advance(Duration::from_secs(20)).await;
            assert!(!is_there().await, "{decision:?}");
        });
    }
}

#[test]
fn a_request_is_approved_and_signed_once_wherever_the_loops_crash() {
    let crashes = testkit::crash_everywhere(
        &rig::user("certificate-controller"),
        async |cluster: &Cluster| rig::start(cluster, &[APPROVING, SIGNING]),
        |cluster| async move {
            allow(&cluster, "system:nodes", "selfnodeclient").await;
            let node = cluster.client_as("system:node:n", &["system:nodes", "system:authenticated"]);
            ask(node, &pem("system:node:n", "system:nodes"), KUBELET_CLIENT, &json!({})).await;
            cluster.settle().await;
            let status = status(&cluster).await;
            assert_eq!(status.conditions.unwrap().len(), 1);
            assert!(status.certificate.is_some());
        },
    );
    assert!(crashes.writes >= 2, "{crashes}");
}
