//! The listener of the simulated nodes' kubelet: TLS on loopback, for the API server only.

use super::{
    certificates::{self, Certificates, NodeCertificates},
    pod_network::SimulatedNodes,
};
use anyhow::{Context, Result};
use node::Kubelet;
use server::{KubeletSockets, KubeletTls, Kubelets};
use std::{
    collections::VecDeque,
    net::{Ipv4Addr, SocketAddr},
    sync::Arc,
    time::Duration,
};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::Semaphore,
};
use tokio_rustls::{TlsAcceptor, server::TlsStream};
use world::{Task, World};
use x509_parser::prelude::{FromDer, X509Certificate};

/// From the first byte to the end of the TLS handshake.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// Connections of the server at once: as many as it opens, and some. As many handshakes, of whomever: beyond that the
/// oldest ends, so that a process of this machine that only connects does not keep the server out.
const MAX_CONNECTIONS: usize = 1100;
/// Connections at once of clients that are refused, whatever their certificates.
const MAX_REFUSALS: usize = 16;
/// Pause when the system cannot open another socket.
const NO_ROOM: Duration = Duration::from_millis(50);

/// The simulated nodes of this process: how they are set up, and how the server reaches them and real ones.
#[derive(Default)]
pub(crate) struct Nodes {
    pub(crate) settings: node::Settings,
    pub(crate) kubelets: Option<Arc<dyn Kubelets>>,
    listener: Option<NodeListener>,
}

impl Nodes {
    /// So many nodes; with none, there is no listener, and only real nodes are reached.
    pub(crate) async fn open(world: &World, certificates: &Certificates, count: u32) -> Result<Nodes> {
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        let (listener, kubelets) = open(world, certificates).await?;
        if count == 0 {
            let settings = node::Settings { count, ..Default::default() };
            return Ok(Nodes { settings, kubelets: Some(Arc::new(kubelets)), listener: None });
        }
        let kubelet_address = Some(listener.address);
        let settings = node::Settings { count, kubelet_address, ..node::Settings::default() };
        let kubelets = SimulatedNodes::new(world, kubelets, &settings.kubelet);
        Ok(Nodes { settings, kubelets: Some(Arc::new(kubelets)), listener: Some(listener) })
    }

    /// Answers for the nodes until the result is dropped.
    pub(crate) fn serve(&mut self, world: &World) -> Option<Task<()>> {
        let (listener, kubelet) = (self.listener.take()?, self.settings.kubelet.clone());
        Some(world.spawn("listener of simulated nodes", listener.serve(world.clone(), kubelet)))
    }
}

struct NodeListener {
    listener: TcpListener,
    address: SocketAddr,
    tls: TlsAcceptor,
    handshakes: usize,
}

/// A listener with new certificates, and what lets the server reach it and all other kubelets.
async fn open(world: &World, certificates: &Certificates) -> Result<(NodeListener, KubeletSockets)> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await;
    let listener = listener.context("cannot listen on a port of 127.0.0.1 for the simulated nodes")?;
    let address = listener.local_addr()?;
    let NodeCertificates { node, node_key, client, client_key } =
        certificates.of_nodes(world.wall(), address.ip())?;
    let tls = certificates::node_config(&node, &node_key, &certificates.ca)?.into();
    let identity =
        KubeletTls { certificate: &client, key: &client_key, authority: &certificates.kubelets.certificate };
    let listener = NodeListener { listener, address, tls, handshakes: MAX_CONNECTIONS };
    Ok((listener, KubeletSockets::new(identity)?))
}

impl NodeListener {
    /// Serves until it is dropped.
    async fn serve(self, world: World, kubelet: Kubelet) {
        let clients = Clients {
            world: world.clone(),
            kubelet,
            room: Arc::new(Semaphore::new(MAX_CONNECTIONS)),
            refusals: Arc::new(Semaphore::new(MAX_REFUSALS)),
        };
        // The latest ones, whether or not they are over.
        let mut handshakes = VecDeque::new();
        loop {
            let socket = match self.listener.accept().await {
                Ok((socket, _)) => socket,
                // Most likely out of file descriptors: wait until other connections close.
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a connection to a simulated node");
                    world.sleep(NO_ROOM).await;
                    continue;
                }
            };
            if handshakes.len() >= self.handshakes {
                handshakes.pop_front();
            }
            let handshake = clients.clone().shake_hands(self.tls.clone(), socket);
            handshakes.push_back(world.spawn("handshake with a simulated node", handshake));
        }
    }
}

/// What the clients of the listener share.
#[derive(Clone)]
struct Clients {
    world: World,
    kubelet: Kubelet,
    /// For connections of the API server, and of others.
    room: Arc<Semaphore>,
    refusals: Arc<Semaphore>,
}

impl Clients {
    async fn shake_hands(self, tls: TlsAcceptor, socket: TcpStream) {
        drop(socket.set_nodelay(true));
        let Ok(Ok(stream)) = self.world.timeout(HANDSHAKE, tls.accept(socket)).await else { return };
        let user = user(&stream).unwrap_or_default();
        let room = if user == node::kubelet::API_SERVER { &self.room } else { &self.refusals };
        let Ok(permit) = Arc::clone(room).try_acquire_owned() else { return };
        let Clients { world, kubelet, .. } = self;
        let own_world = world.clone();
        let connection = async move {
            kubelet.serve(&own_world, stream, &user).await;
            drop(permit);
        };
        world.spawn("connection to a simulated node", connection).detach();
    }
}

/// The user of a verified client certificate.
fn user(stream: &TlsStream<TcpStream>) -> Option<String> {
    let der = stream.get_ref().1.peer_certificates()?.first()?;
    let (_, certificate) = X509Certificate::from_der(der).ok()?;
    // Two names: none.
    let mut names = certificate.subject().iter_common_name();
    let name = names.next()?.as_str().ok()?.to_owned();
    names.next().is_none().then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use server::KubeletAddress;
    use tokio::io::AsyncReadExt;

    #[test]
    fn connections_without_a_handshake_make_room_and_do_not_keep_the_server_out() {
        world::run(|world| async move {
            let certificates = Certificates::make(world.wall(), &[]).unwrap();
            let (mut listener, kubelets) = open(&world, &certificates).await.unwrap();
            let (address, handshakes) = (listener.address, 4);
            listener.handshakes = handshakes;
            let _serving = world.spawn("listener", listener.serve(world.clone(), Kubelet::default()));
            let mut silent = Vec::new();
            for _ in 0..20 {
                silent.push(TcpStream::connect(address).await.unwrap());
            }
            let kubelet =
                KubeletAddress { node: "n".to_owned(), host: address.ip().to_string(), port: address.port() };
            let connected = world.timeout(HANDSHAKE / 2, kubelets.connect(&kubelet)).await.unwrap();
            assert!(connected.is_ok(), "the server gets its connection");
            for socket in &mut silent[..20 - handshakes] {
                let ended = world.timeout(HANDSHAKE / 2, socket.read(&mut [0])).await.unwrap();
                assert!(ended.is_ok_and(|count| count == 0), "an older connection has ended");
            }
        })
        .unwrap();
    }
}
