//! Ten times the load that the server accepts, over real sockets: memory stays bounded, overloading clients
//! get 429, other clients are served, and so are the system and its watches.

use crate::harness::Up;
use bytes::Bytes;
use futures::future::join_all;
use http::{Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Full};
use hyper::{body::Incoming, client::conn::http2::SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo};
use kube::config::Kubeconfig;
use serde_json::json;
use std::{
    collections::BTreeMap,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};
use tokio::net::TcpStream;
use tokio_rustls::{
    TlsConnector,
    rustls::{
        ClientConfig, RootCertStore,
        pki_types::{CertificateDer, ServerName, pem::PemObject},
    },
};
use world::World;

const TOKENS: &str = "\
root,root,1,system:masters
noisy,noisy,2
quiet,quiet,3
node,system:node:n1,4,system:nodes
manager,system:kube-controller-manager,5
";
const MAPS: &str = "/api/v1/namespaces/default/configmaps";
/// One user's requests that are served or may wait: 49 seats, and six queues of fifty.
const TAKEN: usize = 49 + 6 * 50;
/// Concurrent streams of a connection.
const STREAMS: usize = 250;
const OBJECTS: usize = 40;
const OBJECT_BYTES: usize = 4096;
/// The memory of all responses to the overloading client at once.
const ALL_BYTES: u64 = (10 * TAKEN * OBJECTS * OBJECT_BYTES) as u64;

/// A control plane and connections to it.
struct Lab {
    world: World,
    up: Up,
    address: String,
    tls: TlsConnector,
}

/// One HTTP/2 connection of a user.
#[derive(Clone)]
struct Connection {
    sender: SendRequest<Full<Bytes>>,
    token: &'static str,
    base: String,
}

impl Lab {
    fn start(world: &World, directory: &Path) -> Lab {
        std::fs::write(directory.join("tokens"), TOKENS).unwrap();
        let up = Up::start(&["--ephemeral", "--token-auth-file", "tokens"], directory);
        let kubeconfig = Kubeconfig::read_from(&up.kubeconfig).unwrap();
        let cluster = kubeconfig.clusters[0].cluster.as_ref().unwrap();
        let data = cluster.certificate_authority_data.as_ref().unwrap();
        use base64::{Engine, engine::general_purpose::STANDARD};
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(&STANDARD.decode(data).unwrap()).unwrap()).unwrap();
        let mut config = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
        config.alpn_protocols = vec![b"h2".to_vec()];
        let address = up.url.strip_prefix("https://").unwrap().to_owned();
        Lab { world: world.clone(), up, address, tls: Arc::new(config).into() }
    }

    async fn connect(&self, token: &'static str) -> Connection {
        let socket = TcpStream::connect(&self.address).await.unwrap();
        let name = ServerName::try_from("127.0.0.1").unwrap();
        let stream = self.tls.connect(name, socket).await.unwrap();
        // Small windows: a client that does not read takes little.
        let mut builder = hyper::client::conn::http2::Builder::new(TokioExecutor::new());
        builder.initial_stream_window_size(32 << 10).initial_connection_window_size(4 << 20);
        let (sender, connection) = builder.handshake(TokioIo::new(stream)).await.unwrap();
        self.world.spawn("connection", async move { drop(connection.await) }).detach();
        Connection { sender, token, base: self.up.url.clone() }
    }

    /// Memory that the server holds, in bytes.
    fn resident(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.up.process.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
    }

    async fn fill(&self) {
        let root = self.connect("root").await;
        let value = "x".repeat(OBJECT_BYTES);
        for number in 0..OBJECTS {
            let map = json!({"metadata": {"name": format!("m{number}")}, "data": {"k": value}});
            assert_eq!(root.send("POST", MAPS, map.to_string()).await.status(), StatusCode::CREATED);
        }
        let binding = json!({
            "metadata": {"name": "viewers"}, "roleRef": {"kind": "ClusterRole", "name": "view"},
            "subjects": [{"kind": "Group", "name": "system:authenticated"}],
        });
        let path = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings";
        assert_eq!(root.send("POST", path, binding.to_string()).await.status(), StatusCode::CREATED);
    }

    /// Records the peak memory until the result is dropped.
    fn watch_memory(&self, most: &Arc<AtomicU64>) -> impl Drop + use<> {
        struct End(Arc<AtomicBool>);
        impl Drop for End {
            fn drop(&mut self) {
                self.0.store(true, Relaxed);
            }
        }
        let ended = Arc::new(AtomicBool::new(false));
        let (most, is_over, process) = (Arc::clone(most), Arc::clone(&ended), self.up.process.id());
        let world = self.world.clone();
        let noting = async move {
            while !is_over.load(Relaxed) {
                let status = std::fs::read_to_string(format!("/proc/{process}/statm")).unwrap_or_default();
                let pages: u64 = status.split(' ').nth(1).and_then(|it| it.parse().ok()).unwrap_or(0);
                most.fetch_max(pages * 4096, Relaxed);
                world.sleep(Duration::from_millis(20)).await;
            }
        };
        self.world.spawn("memory", noting).detach();
        End(ended)
    }
}

impl Connection {
    async fn send(&self, method: &str, path: &str, body: String) -> Response<Incoming> {
        let mut sender = self.sender.clone();
        sender.ready().await.unwrap();
        let request = Request::builder().method(method).uri(format!("{}{path}", self.base));
        let request = request.header(header::AUTHORIZATION, format!("Bearer {}", self.token));
        let request = request.header(header::CONTENT_TYPE, "application/json");
        sender.send_request(request.body(Full::new(body.into())).unwrap()).await.unwrap()
    }

    /// The status code of a response, read to its end.
    async fn get(&self, path: &str) -> (u16, Option<String>) {
        let response = self.send("GET", path, String::new()).await;
        let retry = response.headers().get(header::RETRY_AFTER).map(|it| it.to_str().unwrap().to_owned());
        let code = response.status().as_u16();
        response.into_body().collect().await.unwrap();
        (code, retry)
    }
}

/// All well-behaved clients are served.
async fn assert_alive(lab: &Lab, during: &str) {
    for (token, path) in [
        ("quiet", "/api/v1/namespaces/default/configmaps/m1"),
        ("quiet", MAPS),
        ("node", "/api/v1/nodes/n1"),
        ("manager", "/api/v1/namespaces/kube-system/configmaps"),
        ("root", "/readyz"),
    ] {
        let (code, _) = lab.connect(token).await.get(path).await;
        let expected = if token == "node" { 404 } else { 200 };
        assert_eq!(code, expected, "{token} asks for {path} during {during}");
    }
}

#[test]
fn overload_by_one_user_affects_only_that_user() {
    let scratch = tempfile::tempdir().unwrap();
    let run = world::run(async |world| {
        let lab = Lab::start(&world, scratch.path());
        lab.fill().await;
        let mut watch = lab
            .connect("manager")
            .await
            .send("GET", &format!("{MAPS}?watch=1&resourceVersion=1"), String::new())
            .await;
        assert_eq!(watch.status(), StatusCode::OK);
        let (most, before) = (Arc::new(AtomicU64::new(0)), lab.resident());
        let noting = lab.watch_memory(&most);
        let mut storm = Vec::new();
        for _ in 0..(10 * TAKEN).div_ceil(STREAMS) {
            let connection = lab.connect("noisy").await;
            storm.extend((0..STREAMS).map(|_| {
                let connection = connection.clone();
                world.spawn("noisy", async move { connection.get(MAPS).await })
            }));
        }
        assert_alive(&lab, "the storm").await;
        let mut codes: BTreeMap<u16, usize> = BTreeMap::new();
        for (code, retry) in join_all(storm).await.into_iter().map(Result::unwrap) {
            *codes.entry(code).or_default() += 1;
            let seconds = retry.map(|retry| retry.parse::<u64>().unwrap());
            assert_eq!(seconds.is_some(), code == 429, "{code}: {seconds:?}");
        }
        assert!(codes.keys().all(|code| [200, 429].contains(code)), "{codes:?}");
        assert!(codes[&200] >= TAKEN / 4, "requests that have a place are served: {codes:?}");
        assert!(codes[&429] >= TAKEN, "requests that have none get 429: {codes:?}");
        drop(noting);
        let grown = most.load(Relaxed).saturating_sub(before);
        println!("it grew by {} MB, of {} MB", grown >> 20, ALL_BYTES >> 20);
        assert!(grown < ALL_BYTES / 4, "it grew by {grown} of {ALL_BYTES} bytes");
        let made = json!({"metadata": {"name": "after"}}).to_string();
        assert_eq!(lab.connect("root").await.send("POST", MAPS, made).await.status(), StatusCode::CREATED);
        let delivered = world.timeout(Duration::from_secs(20), async {
            let mut text = String::new();
            while !text.contains("\"name\":\"after\"") {
                let frame = watch.body_mut().frame().await.unwrap().unwrap();
                text.push_str(&String::from_utf8_lossy(frame.data_ref().unwrap()));
            }
        });
        delivered.await.expect("the watch lives on");
        assert_eq!(lab.connect("noisy").await.get(MAPS).await.0, 200, "when it is over, it is over");
        assert_eq!(lab.up.stop(), Some(0));
    });
    run.unwrap();
}

#[test]
fn a_client_that_asks_for_much_and_reads_nothing_fills_no_memory() {
    let scratch = tempfile::tempdir().unwrap();
    let run = world::run(async |world| {
        let lab = Lab::start(&world, scratch.path());
        lab.fill().await;
        let (most, before) = (Arc::new(AtomicU64::new(0)), lab.resident());
        let noting = lab.watch_memory(&most);
        let answered = Arc::new(AtomicU64::new(0));
        let mut silent = Vec::new();
        for _ in 0..(10 * TAKEN).div_ceil(STREAMS) {
            let connection = lab.connect("noisy").await;
            silent.extend((0..STREAMS).map(|_| {
                let (connection, answered) = (connection.clone(), Arc::clone(&answered));
                world.spawn("silent", async move {
                    let response = connection.send("GET", MAPS, String::new()).await;
                    answered.fetch_add(1, Relaxed);
                    if response.status() == StatusCode::OK {
                        std::future::pending::<()>().await;
                    }
                })
            }));
        }
        // Requests beyond seats and queues get 429; unread responses hold the seats of the others.
        let enough = (10 * TAKEN - 2 * TAKEN) as u64;
        let rejected = world.timeout(Duration::from_secs(60), async {
            while answered.load(Relaxed) < enough {
                world.sleep(Duration::from_millis(20)).await;
            }
        });
        rejected.await.expect("requests without a place get 429");
        assert_alive(&lab, "the silence").await;
        drop(noting);
        let grown = most.load(Relaxed).saturating_sub(before);
        println!("it grew by {} MB, of {} MB", grown >> 20, ALL_BYTES >> 20);
        assert!(grown < ALL_BYTES / 4, "it grew by {grown} of {ALL_BYTES} bytes");
        drop(silent);
        let again = world.timeout(Duration::from_secs(60), async {
            while lab.connect("noisy").await.get(MAPS).await.0 != 200 {
                world.sleep(Duration::from_millis(100)).await;
            }
        });
        again.await.expect("seats of closed connections are released");
        assert_eq!(lab.up.stop(), Some(0));
    });
    run.unwrap();
}
