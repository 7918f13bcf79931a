//! A server whose pods are listeners of the test, whatever their addresses.

use crate::{
    client::{send, send_with},
    socket::Lab,
};
use serde_json::{Value, json};
use server::{Config, Connecting, KubeletAddress, KubeletStream, Kubelets, accept::Limits};
use std::{
    collections::BTreeMap,
    net::{IpAddr, SocketAddr},
    ops::Deref,
    sync::{Arc, Mutex},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};
use world::{Task, World};

pub(crate) const PODS: &str = "/api/v1/namespaces/default/pods";
pub(crate) const SERVICES: &str = "/api/v1/namespaces/default/services";

/// Which listener has the address of a pod, and who was dialled.
#[derive(Debug, Default)]
pub(crate) struct PodNetwork {
    listeners: Mutex<BTreeMap<IpAddr, SocketAddr>>,
    dialled: Mutex<Vec<SocketAddr>>,
}

impl Kubelets for PodNetwork {
    fn connect<'a>(&'a self, address: &'a KubeletAddress) -> Connecting<'a> {
        self.connect_to_pod(SocketAddr::new(address.host.parse().unwrap(), address.port))
    }

    fn connect_to_pod(&self, address: SocketAddr) -> Connecting<'_> {
        self.dialled.lock().unwrap().push(address);
        let listener = self.listeners.lock().unwrap().get(&address.ip()).copied();
        Box::pin(async move {
            let refused = || format!("dial tcp {address}: connect: connection refused");
            let stream = TcpStream::connect(listener.ok_or_else(refused)?).await.map_err(|_| refused())?;
            Ok(Box::new(stream) as Box<dyn KubeletStream>)
        })
    }
}

pub(crate) struct PodLab {
    lab: Lab,
    network: Arc<PodNetwork>,
}

impl Deref for PodLab {
    type Target = Lab;
    fn deref(&self) -> &Lab {
        &self.lab
    }
}

/// A listener that is a pod; it ends with this.
pub(crate) struct TestPod {
    /// What it was sent.
    received: Arc<Mutex<String>>,
    /// Its connections that are still open.
    open: Arc<Mutex<usize>>,
    _serving: Task<()>,
}

impl TestPod {
    pub(crate) fn received(&self) -> String {
        self.received.lock().unwrap().clone()
    }

    pub(crate) fn open(&self) -> usize {
        *self.open.lock().unwrap()
    }
}

pub(crate) fn with_lab<F: Future<Output = ()>>(act: impl FnOnce(PodLab) -> F) {
    world::run(|world| async move { act(PodLab::start(&world).await).await }).unwrap();
}

impl PodLab {
    async fn start(world: &World) -> PodLab {
        let network = Arc::new(PodNetwork::default());
        let kubelets = Some(Arc::clone(&network) as Arc<dyn Kubelets>);
        let config = Config { kubelets, ..Config::default() };
        let lab = Lab::start_with(world, Limits::default(), Arc::new(store::Memory::new()), config).await;
        PodLab { lab, network }
    }

    pub(crate) fn dialled(&self) -> Vec<SocketAddr> {
        self.network.dialled.lock().unwrap().clone()
    }

    /// A pod with this address in its status, and a port in its spec.
    pub(crate) async fn pod(&self, name: &str, ip: &str, port: u16) {
        let pod = json!({"metadata": {"name": name}, "spec": {"containers": [
            {"name": "c", "image": "i", "ports": [{"containerPort": port, "name": "http"}]}]}});
        let (code, answer) = send(&self.server, "POST", PODS, pod.to_string()).await;
        assert_eq!(code, 201, "{answer}");
        self.set_ip(name, ip).await;
    }

    async fn set_ip(&self, name: &str, ip: &str) {
        let status = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "status": {
            "phase": "Running", "podIP": ip, "podIPs": [{"ip": ip}]}});
        let (path, patch) = (format!("{PODS}/{name}/status"), "application/merge-patch+json");
        let (code, answer) = send_with(&self.server, "PATCH", &path, patch, status.to_string()).await;
        assert_eq!(code, 200, "{}", String::from_utf8_lossy(&answer));
    }

    /// Creates an object of a namespace.
    pub(crate) async fn create(&self, resource: &str, object: Value) {
        let path = format!("/api/v1/namespaces/default/{resource}");
        let (code, answer) = send(&self.server, "POST", &path, object.to_string()).await;
        assert_eq!(code, 201, "{answer}");
    }

    /// Connections to this address reach a listener that sends these pieces once it has read the headers of a request,
    /// and then closes if `closes`, or reads on.
    pub(crate) async fn listen(&self, ip: &str, pieces: &[&str], closes: bool) -> TestPod {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        self.network.listeners.lock().unwrap().insert(ip.parse().unwrap(), address);
        let (received, open) = (Arc::new(Mutex::new(String::new())), Arc::new(Mutex::new(0)));
        let (seen, counted, world) = (Arc::clone(&received), Arc::clone(&open), self.world.clone());
        let pieces: Vec<String> = pieces.iter().map(|piece| (*piece).to_owned()).collect();
        let serving = self.world.spawn("pod", async move {
            loop {
                let (mut socket, _) = listener.accept().await.unwrap();
                let (seen, counted, pieces) = (Arc::clone(&seen), Arc::clone(&counted), pieces.clone());
                *counted.lock().unwrap() += 1;
                let connection = async move {
                    let mut bytes = vec![0; 65536];
                    let mut text = String::new();
                    let mut is_answered = false;
                    loop {
                        if !is_answered && text.contains("\r\n\r\n") {
                            is_answered = true;
                            for piece in &pieces {
                                drop(socket.write_all(piece.as_bytes()).await);
                                drop(socket.flush().await);
                            }
                            if closes {
                                drop(socket.shutdown().await);
                            }
                        }
                        let Ok(count @ 1..) = socket.read(&mut bytes).await else { break };
                        text.push_str(&String::from_utf8_lossy(&bytes[..count]));
                        seen.lock().unwrap().push_str(&String::from_utf8_lossy(&bytes[..count]));
                    }
                    *counted.lock().unwrap() -= 1;
                };
                world.spawn("connection to a pod", connection).detach();
            }
        });
        TestPod { received, open, _serving: serving }
    }
}

/// The answer of a pod.
pub(crate) fn answer(code: &str, headers: &str, body: &str) -> String {
    format!("HTTP/1.1 {code}\r\nContent-Length: {}\r\n{headers}\r\n{body}", body.len())
}
