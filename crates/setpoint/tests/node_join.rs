//! `setpoint node join`: with its files and nothing else, a machine becomes a node.

use crate::{harness::SETPOINT, harness::Up, operators::in_a_runtime};
use futures::StreamExt;
use k8s_openapi::{
    ByteString,
    api::{
        certificates::v1::CertificateSigningRequest,
        core::v1::{Node, Secret},
        rbac::v1::ClusterRoleBinding,
    },
};
use kube::{
    Api, Client, Config,
    api::{ListParams, PostParams, WatchEvent, WatchParams},
    config::{KubeConfigOptions, Kubeconfig},
};
use rcgen::{CertificateParams, DnType, KeyPair};
use serde_json::json;
use std::{fs, path::Path, process::Command};
use x509_parser::pem::parse_x509_pem;

/// What the command prints; its failure.
fn join(up: &Up, folder: &Path, arguments: &[&str]) -> Result<String, String> {
    let mut command = Command::new(SETPOINT);
    command.args(["node", "join", "--kubeconfig"]).arg(&up.kubeconfig).args(arguments);
    let output = command.current_dir(folder).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    match output.status.success() {
        true => Ok(text(output.stdout)),
        false => Err(text(output.stderr)),
    }
}

async fn client(file: &Path) -> Client {
    let kubeconfig = Kubeconfig::read_from(file).unwrap();
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap();
    Client::try_from(config).unwrap()
}

/// A node's request for a certificate, sent with `client`; the certificate that the cluster issues.
async fn certificate(client: &Client, name: &str, key: &KeyPair, addresses: &[&str]) -> String {
    let addresses: Vec<String> = addresses.iter().map(|it| (*it).to_owned()).collect();
    let is_serving = !addresses.is_empty();
    let mut params = CertificateParams::new(addresses).unwrap();
    params.distinguished_name.push(DnType::CommonName, "system:node:worker");
    params.distinguished_name.push(DnType::OrganizationName, "system:nodes");
    let request = params.serialize_request(key).unwrap().pem().unwrap();
    let (signer, usage) = match is_serving {
        true => ("kubernetes.io/kubelet-serving", "server auth"),
        false => ("kubernetes.io/kube-apiserver-client-kubelet", "client auth"),
    };
    let csr = json!({"metadata": {"name": name}, "spec": {"request": ByteString(request.into_bytes()),
        "signerName": signer, "usages": [usage, "digital signature"]}});
    let requests: Api<CertificateSigningRequest> = Api::all(client.clone());
    requests.create(&PostParams::default(), &serde_json::from_value(csr).unwrap()).await.unwrap();
    let only = WatchParams::default().fields(&format!("metadata.name={name}")).timeout(60);
    let mut events = requests.watch(&only, "0").await.unwrap().boxed();
    loop {
        let event = events.next().await.expect("the certificate is issued within a minute").unwrap();
        let (WatchEvent::Added(csr) | WatchEvent::Modified(csr)) = event else { continue };
        if let Some(issued) = csr.status.and_then(|status| status.certificate) {
            return String::from_utf8(issued.0).unwrap();
        }
    }
}

fn is_signed_by(certificate: &str, authority: &Path) -> bool {
    let (_, authority) = parse_x509_pem(&fs::read(authority).unwrap()).unwrap();
    let (_, certificate) = parse_x509_pem(certificate.as_bytes()).unwrap();
    let authority = authority.parse_x509().unwrap();
    certificate.parse_x509().unwrap().verify_signature(Some(authority.public_key())).is_ok()
}

#[test]
fn a_machine_with_the_files_gets_both_certificates_of_a_node() {
    let scratch = tempfile::tempdir().unwrap();
    let up = Up::start(&["--nodes", "0"], scratch.path());
    let said = join(&up, scratch.path(), &["--dir", "files", "--server", &up.url]).unwrap();
    assert!(said.contains("wrote files/bootstrap.kubeconfig\n"), "{said}");
    assert!(said.contains("kubelet --config=/etc/setpoint/kubelet.yaml"), "{said}");
    let pki = scratch.path().join(".setpoint/pki");
    let files = scratch.path().join("files");
    assert_eq!(fs::read(files.join("ca.crt")).unwrap(), fs::read(pki.join("ca.crt")).unwrap());
    in_a_runtime(async {
        let bootstrapper = client(&files.join("bootstrap.kubeconfig")).await;
        let secrets: Api<Secret> = Api::namespaced(bootstrapper.clone(), "kube-system");
        assert!(secrets.list(&ListParams::default()).await.is_err(), "a token reads no secrets");
        let key = KeyPair::generate().unwrap();
        let issued = certificate(&bootstrapper, "client", &key, &[]).await;
        assert!(is_signed_by(&issued, &pki.join("ca.crt")));

        // From here on with the certificate, as a kubelet.
        let mut config = Config::new(up.url.parse().unwrap());
        config.root_cert_file = Some(files.join("ca.crt"));
        let (certificate_file, key_file) = (scratch.path().join("node.crt"), scratch.path().join("node.key"));
        fs::write(&certificate_file, issued).unwrap();
        fs::write(&key_file, key.serialize_pem()).unwrap();
        config.auth_info.client_certificate = Some(certificate_file.display().to_string());
        config.auth_info.client_key = Some(key_file.display().to_string());
        let worker = Client::try_from(config).unwrap();
        let addresses = json!([{"type": "InternalIP", "address": "192.0.2.7"}, {"type": "Hostname", "address": "worker"}]);
        let node = json!({"metadata": {"name": "worker"}, "status": {"addresses": addresses}});
        let nodes: Api<Node> = Api::all(worker.clone());
        nodes.create(&PostParams::default(), &serde_json::from_value(node).unwrap()).await.unwrap();
        let serving = certificate(&worker, "serving", &key, &["worker", "192.0.2.7"]).await;
        assert!(
            is_signed_by(&serving, &pki.join("kubelet-ca.crt")),
            "the server trusts this CA for kubelets"
        );
        assert!(!is_signed_by(&serving, &pki.join("ca.crt")), "no pod takes the node for the server");
    });
    drop(up);
}

#[test]
fn a_second_join_makes_another_token_and_leaves_the_rights_as_they_are() {
    let scratch = tempfile::tempdir().unwrap();
    let up = Up::start(&["--ephemeral", "--nodes", "0"], scratch.path());
    let once = |ttl: &str| join(&up, scratch.path(), &["--server", &up.url, "--ttl", ttl]).unwrap();
    let first = once("1h");
    let versions = || {
        in_a_runtime(async {
            let bindings: Api<ClusterRoleBinding> = Api::all(client(&up.kubeconfig).await);
            let all = bindings.list(&ListParams::default()).await.unwrap().items.into_iter();
            let ours =
                all.filter(|it| it.metadata.name.as_deref().is_some_and(|it| it.starts_with("setpoint:")));
            ours.map(|it| it.metadata.resource_version).collect::<Vec<_>>()
        })
    };
    let before = versions();
    assert_eq!(before.len(), 6);
    let second = once("0");
    assert_eq!(versions(), before);
    assert!(first.contains("Run it as root until 20") && second.contains("Run it as root.\n"), "{second}");
    let token = |script: &str| script.lines().find(|line| line.contains("token: ")).unwrap().to_owned();
    assert_ne!(token(&first), token(&second));
    in_a_runtime(async {
        let secrets: Api<Secret> = Api::namespaced(client(&up.kubeconfig).await, "kube-system");
        let tokens = ListParams::default().fields("type=bootstrap.kubernetes.io/token");
        let tokens = secrets.list(&tokens).await.unwrap().items;
        let with_end = tokens.iter().filter(|it| it.data.as_ref().unwrap().contains_key("expiration"));
        assert_eq!((tokens.len(), with_end.count()), (2, 1));
    });
}

#[test]
fn a_server_that_no_machine_reaches_gets_no_token() {
    let scratch = tempfile::tempdir().unwrap();
    // It listens on loopback only.
    let up = Up::start(&["--ephemeral", "--nodes", "0"], scratch.path());
    let problem = join(&up, scratch.path(), &[]).unwrap_err();
    assert!(problem.contains("--server"), "{problem}");
    in_a_runtime(async {
        let secrets: Api<Secret> = Api::namespaced(client(&up.kubeconfig).await, "kube-system");
        let tokens = ListParams::default().fields("type=bootstrap.kubernetes.io/token");
        assert!(secrets.list(&tokens).await.unwrap().items.is_empty());
    });
}

#[test]
fn a_machine_without_a_kubelet_is_told_what_to_install() {
    let scratch = tempfile::tempdir().unwrap();
    let mut command = Command::new(SETPOINT);
    command.args(["up", "--ephemeral", "--node", "--listen", "127.0.0.1:0"]);
    let output = command.env("PATH", scratch.path()).current_dir(scratch.path()).output().unwrap();
    let problem = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success());
    let is_told =
        problem.contains("a kubelet of Kubernetes v1.36") && problem.contains("install what is missing");
    assert!(is_told || problem.contains("--node needs root"), "{problem}");
    assert_eq!(problem.lines().count(), 1, "{problem}");
}
