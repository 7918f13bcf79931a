//! The way to kubelets over real sockets: who gets a request, what it contains, and what becomes of the answer.

use crate::client::{send, send_raw};
use rcgen::{CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, SanType};
use serde_json::{Value, json};
use server::{Caller, Config, KubeletSockets, KubeletTls, Server};
use std::{
    net::{IpAddr, Ipv4Addr, SocketAddr},
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};
use tokio_rustls::{
    TlsAcceptor,
    rustls::{
        RootCertStore, ServerConfig,
        crypto::aws_lc_rs,
        pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
        server::WebPkiClientVerifier,
    },
};
use world::{Task, World};

const PODS: &str = "/api/v1/namespaces/default/pods";
const PATIENCE: Duration = Duration::from_secs(20);

/// A CA that issues certificates.
struct Authority {
    pem: String,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    fn new(name: &str) -> Authority {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let pem = params.clone().self_signed(&key).unwrap().pem();
        Authority { pem, issuer: Issuer::new(params, key) }
    }

    /// A certificate and its key.
    fn issue(&self, usage: ExtendedKeyUsagePurpose, address: IpAddr) -> (String, String) {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.distinguished_name.push(DnType::CommonName, "kube-apiserver-kubelet-client");
        params.extended_key_usages = vec![usage];
        params.subject_alt_names = vec![SanType::IpAddress(address)];
        let key = KeyPair::generate().unwrap();
        (params.signed_by(&key, &self.issuer).unwrap().pem(), key.serialize_pem())
    }
}

/// A kubelet that gives one answer to everything.
struct Kubelet {
    address: SocketAddr,
    /// What it was sent, without TLS.
    received: Arc<Mutex<String>>,
    /// What the TLS layer of its clients has got through.
    connections: Arc<Mutex<usize>>,
    _serving: Task<()>,
}

impl Kubelet {
    async fn start(
        world: &World,
        ca: &Authority,
        named: IpAddr,
        clients: &Authority,
        answer: &str,
    ) -> Kubelet {
        let (certificate, key) = ca.issue(ExtendedKeyUsagePurpose::ServerAuth, named);
        let provider = Arc::new(aws_lc_rs::default_provider());
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(clients.pem.as_bytes()).unwrap()).unwrap();
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider))
            .build()
            .unwrap();
        let tls = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_client_cert_verifier(verifier)
            .with_single_cert(
                vec![CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap()],
                PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap(),
            )
            .unwrap();
        let acceptor = TlsAcceptor::from(Arc::new(tls));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (received, connections) = (Arc::new(Mutex::new(String::new())), Arc::new(Mutex::new(0)));
        let (seen, counted, answer) = (Arc::clone(&received), Arc::clone(&connections), answer.to_owned());
        let serving = world.spawn("kubelet", async move {
            loop {
                let (socket, _) = listener.accept().await.unwrap();
                *counted.lock().unwrap() += 1;
                let Ok(mut stream) = acceptor.accept(socket).await else { continue };
                let mut bytes = vec![0; 16384];
                let mut text = String::new();
                while !text.contains("\r\n\r\n") {
                    let Ok(count @ 1..) = stream.read(&mut bytes).await else { break };
                    text.push_str(&String::from_utf8_lossy(&bytes[..count]));
                }
                seen.lock().unwrap().push_str(&text);
                drop(stream.write_all(answer.as_bytes()).await);
                drop(stream.shutdown().await);
            }
        });
        Kubelet { address, received, connections, _serving: serving }
    }

    fn received(&self) -> String {
        self.received.lock().unwrap().clone()
    }
}

const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

struct Lab {
    world: World,
    server: Server,
    ca: Authority,
}

impl Lab {
    async fn start(world: &World) -> Lab {
        let ca = Authority::new("cluster");
        let (certificate, key) = ca.issue(ExtendedKeyUsagePurpose::ClientAuth, HERE);
        let tls = KubeletTls { certificate: &certificate, key: &key, authority: &ca.pem };
        let kubelets = Some(Arc::new(KubeletSockets::new(tls).unwrap()) as Arc<dyn server::Kubelets>);
        let store = Arc::new(store::Memory::new());
        let config = Config { kubelets, ..Config::default() };
        let server = Server::start(world, store, config).await.unwrap();
        Lab { world: world.clone(), server, ca }
    }

    /// A kubelet of this cluster.
    async fn kubelet(&self, answer: &str) -> Kubelet {
        Kubelet::start(&self.world, &self.ca, HERE, &self.ca, answer).await
    }

    /// A node that reports this address, and a pod on it.
    async fn node(&self, name: &str, host: &str, port: u16) {
        let node = json!({"metadata": {"name": name}});
        assert_eq!(send(&self.server, "POST", "/api/v1/nodes", node.to_string()).await.0, 201);
        let status = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "status": {
            "addresses": [{"type": "InternalIP", "address": host}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": port}}}});
        let path = format!("/api/v1/nodes/{name}/status");
        let (code, answer) = send(&self.server, "PUT", &path, status.to_string()).await;
        assert_eq!(code, 200, "{answer}");
        let pod = json!({"metadata": {"name": name}, "spec": {"nodeName": name, "containers": [
            {"name": "c", "image": "i"}]}});
        let (code, answer) = send(&self.server, "POST", PODS, pod.to_string()).await;
        assert_eq!(code, 201, "{answer}");
    }

    /// The code and the text of a log, or the message of its Status.
    async fn log(&self, pod: &str, query: &str) -> (u16, String) {
        let path = format!("{PODS}/{pod}/log{query}");
        let (code, body) =
            self.world.timeout(PATIENCE, send_raw(&self.server, "GET", &path, "")).await.unwrap();
        let text = String::from_utf8_lossy(&body).into_owned();
        let status: Option<Value> = serde_json::from_str(&text).ok();
        (code, status.and_then(|it| it["message"].as_str().map(str::to_owned)).unwrap_or(text))
    }
}

fn with_lab<F: Future<Output = ()>>(act: impl FnOnce(Lab) -> F) {
    world::run(|world| async move { act(Lab::start(&world).await).await }).unwrap();
}

fn answer(code: &str, headers: &str, body: &str) -> String {
    format!("HTTP/1.1 {code}\r\nContent-Length: {}\r\n{headers}\r\n{body}", body.len())
}

#[test]
fn a_log_is_asked_of_the_kubelet_without_the_callers_credentials() {
    with_lab(|lab| async move {
        let kubelet = lab.kubelet(&answer("200 OK", "", "one\ntwo\n")).await;
        lab.node("n", "127.0.0.1", kubelet.address.port()).await;
        let query = "?container=c&follow=true&tailLines=2&timestamps=1&sinceTime=2026-01-01T00:00:00Z";
        let path = format!("{PODS}/n/log{query}");
        let mut request = http::Request::get(&path)
            .header("authorization", "Bearer secret")
            .header("cookie", "secret=1")
            .header("impersonate-user", "")
            .body(http_body_util::Empty::<bytes::Bytes>::new())
            .unwrap();
        request.headers_mut().remove("impersonate-user");
        request.extensions_mut().insert(Caller::known("admin", "", vec!["system:masters".to_owned()]));
        let response = lab.server.handle(request).await;
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()["content-type"], "text/plain");
        let body = http_body_util::BodyExt::collect(response.into_body()).await.unwrap().to_bytes();
        assert_eq!(body, "one\ntwo\n");
        let received = kubelet.received();
        let wanted = "GET /containerLogs/default/n/c?follow=true&timestamps=true&tailLines=2\
                      &sinceTime=2026-01-01T00%3A00%3A00Z HTTP/1.1\r\n";
        assert!(received.starts_with(wanted), "{received}");
        assert!(!received.contains("secret") && !received.contains("admin"), "{received}");
    });
}

#[test]
fn answers_of_kubelets_become_those_of_kube_apiserver() {
    with_lab(|lab| async move {
        for (name, kubelet_answer, code, expected) in [
            ("bad", answer("400 Bad Request", "", "waiting to start"), 400, "waiting to start"),
            ("broken", answer("500 X", "", "boom"), 500, "Internal error occurred: boom"),
            (
                "missing",
                answer("404 Not Found", "", "gone"),
                404,
                "the server could not find the requested resource ( pods/log missing)",
            ),
            ("hangs-up", String::new(), 500, "EOF"),
            (
                "redirect",
                answer("302 Found", "Location: https://example.com/\r\n", ""),
                500,
                "redirects forbidden",
            ),
        ] {
            let kubelet = lab.kubelet(&kubelet_answer).await;
            lab.node(name, "127.0.0.1", kubelet.address.port()).await;
            let (found, text) = lab.log(name, "").await;
            assert_eq!(found, code, "{name}: {text}");
            assert!(text.ends_with(expected), "{name}: {text}");
            assert_eq!(*kubelet.connections.lock().unwrap(), 1, "{name}: it is asked once");
        }
    });
}

#[test]
fn a_host_without_a_certificate_of_the_ca_gets_no_request() {
    with_lab(|lab| async move {
        let other = Authority::new("other");
        let elsewhere = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));
        let ok = answer("200 OK", "", "stolen");
        let foreign = Kubelet::start(&lab.world, &other, HERE, &lab.ca, &ok).await;
        let misnamed = Kubelet::start(&lab.world, &lab.ca, elsewhere, &lab.ca, &ok).await;
        lab.node("foreign", "127.0.0.1", foreign.address.port()).await;
        lab.node("misnamed", "127.0.0.1", misnamed.address.port()).await;
        for (pod, query, expected) in [
            ("foreign", "", "x509: certificate signed by unknown authority"),
            (
                "foreign",
                "?insecureSkipTLSVerifyBackend=true",
                "x509: certificate signed by unknown authority",
            ),
            ("misnamed", "", "x509: certificate is valid for 192.0.2.1, not 127.0.0.1"),
        ] {
            let (code, text) = lab.log(pod, query).await;
            assert_eq!(code, 500, "{pod}: {text}");
            assert!(text.ends_with(expected), "{pod}: {text}");
        }
        let proxied = send(&lab.server, "GET", "/api/v1/nodes/foreign/proxy/metrics", "").await;
        assert_eq!((proxied.0, &proxied.1["reason"]), (503, &json!("ServiceUnavailable")), "{}", proxied.1);
        assert_eq!((foreign.received(), misnamed.received()), (String::new(), String::new()));
    });
}

#[test]
fn a_node_that_cannot_be_reached_is_an_error_that_names_it() {
    with_lab(|lab| async move {
        let free = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = free.local_addr().unwrap().port();
        drop(free);
        lab.node("off", "127.0.0.1", port).await;
        let (code, text) = lab.log("off", "").await;
        let url = format!("https://127.0.0.1:{port}/containerLogs/default/off/c");
        let expected = format!("Get \"{url}\": dial tcp 127.0.0.1:{port}: connect: connection refused");
        assert_eq!((code, text), (500, expected));
        lab.node("odd", "no host/../x", port).await;
        let (code, text) = lab.log("odd", "").await;
        assert_eq!(code, 500, "{text}");
        assert!(text.ends_with("dial tcp: lookup no host/../x: no such host"), "{text}");
    });
}

#[test]
fn pages_of_a_node_are_passed_on_but_not_its_redirects() {
    with_lab(|lab| async move {
        let pages =
            lab.kubelet(&answer("200 OK", "Content-Type: text/x\r\nSet-Cookie: a=b\r\n", "page")).await;
        let away = lab.kubelet(&answer("302 Found", "Location: https://example.com/\r\n", "")).await;
        lab.node("n", "127.0.0.1", pages.address.port()).await;
        lab.node("away", "127.0.0.1", away.address.port()).await;
        let own_port = pages.address.port();
        for (path, code, expected) in [
            ("n/proxy/stats/summary?a=b".to_owned(), 200, "page"),
            (format!("n:{own_port}/proxy/metrics"), 200, "page"),
            ("n%2fproxy%2Fhealthz".to_owned(), 200, "page"),
            ("/n/proxy/healthz".to_owned(), 404, ""),
            (format!("https:n:{own_port}/proxy/metrics"), 200, "page"),
            ("n:1/proxy/metrics".to_owned(), 400, "address not allowed"),
            ("a:b:c:d/proxy/metrics".to_owned(), 400, "invalid node request"),
            ("none/proxy/metrics".to_owned(), 404, "nodes \\\"none\\\" not found"),
            ("n/proxy".to_owned(), 301, ""),
            ("away/proxy/metrics".to_owned(), 502, "the backend attempted to redirect this request"),
        ] {
            let (found, body) = send_raw(&lab.server, "GET", &format!("/api/v1/nodes/{path}"), "").await;
            let text = String::from_utf8_lossy(&body);
            assert_eq!(found, code, "{path}: {text}");
            assert!(text.contains(expected), "{path}: {text}");
        }
        let received = pages.received();
        assert!(received.starts_with("GET /stats/summary?a=b HTTP/1.1\r\n"), "{received}");
        let (code, _) = send_raw(&lab.server, "GET", "//api/v1/nodes/n/proxy/pods", "").await;
        assert_eq!(code, 200);
        for path in ["/healthz", "/pods"] {
            let first = format!("GET {path} HTTP/1.1\r\n");
            assert!(pages.received().contains(&first), "{path}: {}", pages.received());
        }
        let (code, _) = send_raw(&lab.server, "POST", "/api/v1/nodes/n/proxy/run", "the body").await;
        assert_eq!(code, 200);
        assert!(pages.received().contains("POST /run HTTP/1.1\r\n"), "{}", pages.received());
    });
}

#[test]
fn requests_for_containers_are_checked_before_a_kubelet_is_asked() {
    with_lab(|lab| async move {
        let kubelet = lab.kubelet(&answer("200 OK", "", "")).await;
        lab.node("n", "127.0.0.1", kubelet.address.port()).await;
        let two = json!({"metadata": {"name": "two"}, "spec": {"nodeName": "n",
            "initContainers": [{"name": "i", "image": "i"}],
            "containers": [{"name": "c", "image": "i"}, {"name": "d", "image": "i"}]}});
        send(&lab.server, "POST", PODS, two.to_string()).await;
        let choose = "a container name must be specified for pod two, choose one of: [i c d]";
        for (path, code, expected) in [
            ("two/log", 400, choose),
            ("two/exec?command=ls&stdout=true", 400, choose),
            ("two/log?container=../../../pods", 400, "container ../../../pods is not valid for pod two"),
            ("two/log?container=c%2Fd", 400, "container c/d is not valid for pod two"),
            ("two/exec?container=x%3Fa%3Db", 400, "container x?a=b is not valid for pod two"),
            ("n/log?tailLines=x", 400, "strconv.ParseInt: parsing \"x\": invalid syntax"),
            ("n/log?sinceSeconds=1&sinceTime=2026-01-01T00:00:00Z", 422, "at most one of"),
            ("n/log?sinceTime=yesterday", 400, "yesterday"),
            ("n/log?stream=Stdout", 422, "stream: Forbidden: may not be specified"),
            ("n/exec?command=ls&stdout=true", 400, "Upgrade request required"),
            ("n/attach?stdout=true", 400, "Upgrade request required"),
            ("n/exec?command=ls&stdout=true&dryRun=All", 400, "dryRun is not supported"),
            ("n/attach?stdout=true&dryRun=All", 400, "dryRun is not supported"),
            ("n/portforward?ports=80&dryRun=", 400, "dryRun is not supported"),
            ("n/portforward?ports=80", 400, "Upgrade request required"),
            ("none/log", 404, "pods \"none\" not found"),
        ] {
            let (found, status) = send(&lab.server, "GET", &format!("{PODS}/{path}"), "").await;
            assert_eq!(found, code, "{path}: {status}");
            assert!(status["message"].as_str().unwrap_or_default().contains(expected), "{path}: {status}");
        }
        assert_eq!(kubelet.received(), "");
    });
}
