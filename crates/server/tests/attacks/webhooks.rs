//! Webhooks that loop, redirect or send endless answers: their own request fails, other requests do not
//! wait.

use crate::{
    client::send,
    socket::{Lab, request},
};
use bytes::Bytes;
use futures::future::BoxFuture;
use http::Request;
use http_body_util::Full;
use rcgen::generate_simple_self_signed;
use serde_json::{Value, json};
use server::{Answer, Caller, Config, Exchange, Outbound, Server, accept::Limits};
use std::{
    sync::{
        Arc, OnceLock,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};
use tokio_rustls::{
    TlsAcceptor,
    rustls::{ServerConfig, crypto::aws_lc_rs, pki_types::PrivateKeyDer},
};
use world::{Task, World};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const HOOKS: &str = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";

fn hook(client: Value) -> String {
    let rule = json!({"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]});
    let hook = json!({
        "name": "evil.example.com", "admissionReviewVersions": ["v1"], "sideEffects": "None", "timeoutSeconds": 2,
        "clientConfig": client, "rules": [rule],
    });
    json!({"metadata": {"name": "evil"}, "webhooks": [hook]}).to_string()
}

/// A webhook that creates an object for each review, and waits for it.
#[derive(Debug)]
struct Looping {
    world: World,
    server: OnceLock<Server>,
    requests: AtomicUsize,
}

impl Outbound for Looping {
    fn post(&self, _: Exchange) -> BoxFuture<'_, Result<Answer, String>> {
        Box::pin(async move {
            let number = self.requests.fetch_add(1, Relaxed);
            let server = self.server.get().unwrap().clone();
            // As over a socket: each call has its own task.
            let nested =
                self.world.spawn("nested", async move { make(&server, &format!("nested-{number}")).await });
            let code = nested.await.unwrap();
            Err(format!("the next one got {code}"))
        })
    }
}

async fn make(server: &Server, name: &str) -> u16 {
    let body = json!({"metadata": {"name": name}}).to_string();
    let request = Request::post(MAPS).header("content-type", "application/json");
    let mut request = request.body(Full::<Bytes>::from(body)).unwrap();
    request.extensions_mut().insert(Caller::known("hook", "", vec!["hooks".to_owned()]));
    server.handle(request).await.status().as_u16()
}

#[test]
fn a_webhook_that_calls_itself_ends_and_does_not_block_others() {
    let run = world::simulate(3, |world| async move {
        let hooks = Arc::new(Looping {
            world: world.clone(),
            server: OnceLock::new(),
            requests: AtomicUsize::new(0),
        });
        let config = Config { outbound: Arc::<Looping>::clone(&hooks), ..Config::default() };
        let server = Server::start(&world, Arc::new(store::Memory::new()), config).await.unwrap();
        hooks.server.set(server.clone()).unwrap();
        let binding = json!({
            "metadata": {"name": "hooks"}, "roleRef": {"kind": "ClusterRole", "name": "edit"},
            "subjects": [{"kind": "Group", "name": "hooks"}],
        });
        let path = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings";
        assert_eq!(send(&server, "POST", path, binding.to_string()).await.0, 201);
        let client = json!({"url": "https://hooks.example.com/"});
        assert_eq!(send(&server, "POST", HOOKS, hook(client)).await.0, 201);
        let begun = world.now();
        assert_eq!(make(&server, "first").await, 500);
        assert!(world.now().since(begun) <= Duration::from_secs(4), "as long as a webhook has");
        // One after the other until all seats of its level are taken.
        let requests = hooks.requests.load(Relaxed);
        assert!((2..600).contains(&requests), "{requests}");
        assert_eq!(send(&server, "GET", "/api/v1/namespaces/default", "").await.0, 200);
        world.sleep(Duration::from_secs(60)).await;
        let (_, found) = send(&server, "GET", MAPS, "").await;
        assert_eq!(found["items"], json!([]), "nothing came of it");
        assert_eq!(send(&server, "DELETE", &format!("{HOOKS}/evil"), "").await.0, 200);
        assert_eq!(make(&server, "after").await, 201, "every seat is free again");
    });
    run.unwrap();
}

/// A TLS server that reads a request and then sends a fixed response.
struct Rogue {
    address: String,
    certificate: String,
    _serving: Task<()>,
}

/// What it sends: the first text once, then the bytes as long as they are read.
type Speech = (&'static str, &'static [u8]);

async fn rogue(world: &World, speech: Speech, requests: Arc<AtomicUsize>) -> Rogue {
    let made = generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
    let tls = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(tls));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let serving = world.spawn("rogue", async move {
        while let Ok((socket, _)) = listener.accept().await {
            let Ok(mut stream) = acceptor.accept(socket).await else { continue };
            requests.fetch_add(1, Relaxed);
            let mut some = [0; 16 << 10];
            drop(stream.read(&mut some).await);
            let (first, again) = speech;
            let mut open = stream.write_all(first.as_bytes()).await.is_ok();
            while open && !again.is_empty() {
                open = stream.write_all(again).await.is_ok() && stream.flush().await.is_ok();
            }
            drop(stream.flush().await);
        }
    });
    Rogue { address, certificate: made.cert.pem(), _serving: serving }
}

#[test]
fn webhooks_that_redirect_or_send_endless_answers_fail() {
    const CHUNK: &[u8] = &[b' '; 32 << 10];
    let cases: [(&str, Speech); 8] = [
        ("a redirect", ("HTTP/1.1 302 Found\r\nLocation: https://OTHER/\r\nContent-Length: 0\r\n\r\n", b"")),
        (
            "a redirect that keeps the body",
            ("HTTP/1.1 307 Temporary Redirect\r\nLocation: https://OTHER/\r\nContent-Length: 0\r\n\r\n", b""),
        ),
        (
            "a redirect for good",
            ("HTTP/1.1 308 Permanent Redirect\r\nLocation: http://OTHER/\r\nContent-Length: 0\r\n\r\n", b""),
        ),
        (
            "megabytes",
            ("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100000000\r\n\r\n", CHUNK),
        ),
        ("an answer without end", ("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n", CHUNK)),
        ("megabytes of text in an error", ("HTTP/1.1 500 Oh\r\nContent-Type: text/plain\r\n\r\n", CHUNK)),
        (
            "headers without end",
            ("HTTP/1.1 200 OK\r\n", b"X: yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy\r\n"),
        ),
        ("half an answer", ("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{\"response\":", b"")),
    ];
    world::run(async |world| {
        let lab = Lab::start(&world, Limits::default()).await;
        let (others, requests) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let other = rogue(&world, ("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", b""), Arc::clone(&others)).await;
        for (attack, (first, again)) in cases {
            let first: &'static str = first.replace("OTHER", &other.address).leak();
            let evil = rogue(&world, (first, again), Arc::clone(&requests)).await;
            use base64::{Engine, engine::general_purpose::STANDARD};
            let client = json!({"url": format!("https://{}/", evil.address), "caBundle": STANDARD.encode(&evil.certificate)});
            let body = hook(client);
            let length = format!("Content-Type: application/json\r\nContent-Length: {}\r\n", body.len());
            let made = lab.ask(&request("POST", HOOKS, &length, body.as_bytes())).await;
            assert!(made.starts_with("HTTP/1.1 201 "), "{made}");
            let before = requests.load(Relaxed);
            let answer = lab.post(br#"{"metadata":{"name":"x"}}"#).await;
            assert!(answer.starts_with("HTTP/1.1 500 "), "{attack}: {answer}");
            assert!(answer.contains("failed calling webhook"), "{attack}: {answer}");
            assert!(answer.len() < 4096, "{attack}: it is not repeated: {}", answer.len());
            assert!(requests.load(Relaxed) > before, "{attack}: it was called");
            lab.assert_well(attack).await;
            let gone = lab.ask(&request("DELETE", &format!("{HOOKS}/evil"), "", b"")).await;
            assert!(gone.starts_with("HTTP/1.1 200 "), "{gone}");
        }
        assert_eq!(others.load(Relaxed), 0, "no redirect is followed");
    })
    .unwrap();
}
