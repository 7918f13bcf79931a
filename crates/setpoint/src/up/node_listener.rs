//! The listener of the simulated nodes' kubelet: TLS on loopback, for the API server only.

use super::{
    certificates::{self, Certificates, NodeCertificates},
    pod_network::SimulatedNodes,
};
use anyhow::{Context, Result};
use node::Kubelet;
use server::{KubeletSockets, KubeletTls, Kubelets};
use std::{
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
/// Connections at once: as many as the server opens, and some.
const MAX_CONNECTIONS: usize = 1100;
/// Pause when the system cannot open another socket.
const NO_ROOM: Duration = Duration::from_millis(50);

/// The simulated nodes of this process: how they are set up, and how the server reaches them.
#[derive(Default)]
pub(crate) struct Nodes {
    pub(crate) settings: node::Settings,
    pub(crate) kubelets: Option<Arc<dyn Kubelets>>,
    listener: Option<NodeListener>,
}

impl Nodes {
    /// So many nodes; with none, there is no listener.
    pub(crate) async fn open(world: &World, certificates: &Certificates, count: u32) -> Result<Nodes> {
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        if count == 0 {
            return Ok(Nodes {
                settings: node::Settings { count, ..Default::default() },
                ..Nodes::default()
            });
        }
        let (listener, kubelets) = open(world, certificates).await?;
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
}

/// A listener with new certificates of the cluster's CA, and what lets the server reach it.
async fn open(world: &World, certificates: &Certificates) -> Result<(NodeListener, KubeletSockets)> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await;
    let listener = listener.context("cannot listen on a port of 127.0.0.1 for the simulated nodes")?;
    let address = listener.local_addr()?;
    let NodeCertificates { node, node_key, client, client_key } =
        certificates.of_nodes(world.wall(), address.ip())?;
    let tls = certificates::node_config(&node, &node_key, &certificates.ca)?.into();
    let identity = KubeletTls { certificate: &client, key: &client_key, authority: &certificates.ca };
    Ok((NodeListener { listener, address, tls }, KubeletSockets::new(identity)?))
}

impl NodeListener {
    /// Serves until it is dropped.
    async fn serve(self, world: World, kubelet: Kubelet) {
        let room = Arc::new(Semaphore::new(MAX_CONNECTIONS));
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
            let Ok(permit) = Arc::clone(&room).try_acquire_owned() else { continue };
            let (tls, kubelet, own_world) = (self.tls.clone(), kubelet.clone(), world.clone());
            let connection = async move {
                drop(socket.set_nodelay(true));
                if let Ok(Ok(stream)) = own_world.timeout(HANDSHAKE, tls.accept(socket)).await {
                    let user = user(&stream).unwrap_or_default();
                    kubelet.serve(&own_world, stream, &user).await;
                }
                drop(permit);
            };
            world.spawn("connection to a simulated node", connection).detach();
        }
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
