//! The listener of the simulated nodes, and Nodes that lead the server astray.

use crate::{harness::Up, kube_client::with_client_of, operators::in_a_runtime};
use futures::StreamExt;
use k8s_openapi::api::core::v1::Node;
use kube::{
    Api, Client, Config,
    api::{Patch, PatchParams, PostParams, WatchEvent, WatchParams},
    config::{KubeConfigOptions, Kubeconfig},
};
use serde_json::json;
use std::{path::Path, sync::Arc};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};
use tokio_rustls::{
    TlsConnector,
    rustls::{
        ClientConfig, RootCertStore,
        pki_types::{CertificateDer, PrivateKeyDer, ServerName, pem::PemObject},
    },
};

/// The port of the first node, once it has registered.
async fn node_port(client: &Client) -> u16 {
    let nodes: Api<Node> = Api::all(client.clone());
    let mut events = nodes.watch(&WatchParams::default(), "0").await.unwrap().boxed();
    loop {
        let event = events.next().await.expect("a node registers");
        if let WatchEvent::Added(node) | WatchEvent::Modified(node) = event.unwrap() {
            let endpoints = node.status.and_then(|status| status.daemon_endpoints);
            let port = endpoints.and_then(|it| it.kubelet_endpoint).map(|it| it.port);
            return u16::try_from(port.unwrap()).unwrap();
        }
    }
}

/// What a client with these certificates gets for a request to the nodes; the error is of TLS.
async fn ask(port: u16, data: &Path, has_certificate: bool) -> Result<String, std::io::Error> {
    use base64::{Engine, engine::general_purpose::STANDARD};
    let kubeconfig = Kubeconfig::read_from(data.join("kubeconfig")).unwrap();
    let ca = std::fs::read(data.join("pki/kubelet-ca.crt")).unwrap();
    let user = serde_json::to_value(&kubeconfig.auth_infos[0]).unwrap();
    let decoded = |field: &str| STANDARD.decode(user["user"][field].as_str().unwrap()).unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(&ca).unwrap()).unwrap();
    let builder = ClientConfig::builder().with_root_certificates(roots);
    let config = if has_certificate {
        let (certificate, key) = (decoded("client-certificate-data"), decoded("client-key-data"));
        builder
            .with_client_auth_cert(
                vec![CertificateDer::from_pem_slice(&certificate).unwrap()],
                PrivateKeyDer::from_pem_slice(&key).unwrap(),
            )
            .unwrap()
    } else {
        builder.with_no_client_auth()
    };
    let socket = TcpStream::connect(("127.0.0.1", port)).await?;
    let name = ServerName::try_from("127.0.0.1").unwrap();
    let mut stream = TlsConnector::from(Arc::new(config)).connect(name, socket).await?;
    stream.write_all(b"GET /pods HTTP/1.1\r\nHost: x\r\nx-setpoint-node: node-0\r\n\r\n").await?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await?;
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

#[test]
fn nodes_refuse_every_client_but_the_server() {
    let scratch = tempfile::tempdir().unwrap();
    let up = Up::start(&[], scratch.path());
    let data = scratch.path().join(".setpoint");
    with_client_of(up, |client| async move {
        let port = node_port(&client).await;
        assert!(ask(port, &data, false).await.is_err(), "a client without a certificate");
        let answer = ask(port, &data, true).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 403 Forbidden"), "{answer}");
        let said = "Forbidden (user=kubernetes-admin, verb=get, resource=nodes, subresource(s)=[proxy])";
        assert!(answer.contains(said), "{answer}");
    });
}

#[test]
fn a_node_with_the_address_of_the_server_does_not_make_it_ask_itself() {
    let scratch = tempfile::tempdir().unwrap();
    let up = Up::start(&["--ephemeral"], scratch.path());
    let port: u16 = up.url.rsplit(':').next().unwrap().parse().unwrap();
    in_a_runtime(async {
        let kubeconfig = Kubeconfig::read_from(&up.kubeconfig).unwrap();
        let options = KubeConfigOptions::default();
        let mut config = Config::from_custom_kubeconfig(kubeconfig, &options).await.unwrap();
        // The answer is a 503, after which clients try again.
        config.default_retry = false;
        let client = Client::try_from(config).unwrap();
        let nodes: Api<Node> = Api::all(client.clone());
        let evil: Node = serde_json::from_value(json!({"metadata": {"name": "evil"}})).unwrap();
        nodes.create(&PostParams::default(), &evil).await.unwrap();
        let status = json!({"status": {"addresses": [{"type": "Hostname", "address": "127.0.0.1"}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": port}}}});
        nodes.patch_status("evil", &PatchParams::default(), &Patch::Merge(&status)).await.unwrap();
        let path = "/api/v1/nodes/evil/proxy/api/v1/namespaces/kube-system/secrets";
        let request = http::Request::get(path).body(Vec::new()).unwrap();
        let refused = client.request_text(request).await.unwrap_err().to_string();
        let problem = "error trying to reach service: tls: failed to verify certificate";
        assert!(refused.contains(problem), "{refused}");
    });
}
