//! What listens on the ports of simulated pods: an HTTP server for each text in the script of a container.

use super::{Kubelet, is_running, page};
use crate::{fleet::is_stopped, script::Script};
use bytes::Bytes;
use futures::future::select;
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use k8s_openapi::api::core::v1::Pod;
use operator::cache::{Item, View};
use serde::Deserialize;
use std::{
    collections::BTreeMap,
    convert::Infallible,
    net::SocketAddr,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::Duration,
};
use tokio::io::{AsyncRead, AsyncWrite, DuplexStream};
use world::World;

/// Bytes in transit, for each direction: a reader that is slow stops the writer.
pub(super) const BUFFER: usize = 4 << 10;
/// All headers of a request, in bytes.
const MAX_HEADERS: usize = 16 << 10;
/// What one connection may hold, in bytes: both directions, a piece that is passed on, the headers, and its tasks.
pub(super) const MAX_HELD: usize = 3 * BUFFER + MAX_HEADERS + (4 << 10);
/// A connection on which no request has come for so long is closed.
const PATIENCE: Duration = Duration::from_secs(30);
/// The index of pods by the addresses that they report.
const BY_ADDRESS: &str = "address";

/// What the HTTP servers on the ports of a pod answer.
pub(super) struct Ports(BTreeMap<u16, Bytes>);

impl Ports {
    pub(super) fn of(pod: &Pod) -> Ports {
        let mut ports = BTreeMap::new();
        let script = Script::of(pod).unwrap_or_default();
        let containers = pod.spec.iter().flat_map(|spec| &spec.containers);
        for container in containers.filter(|container| is_running(pod, &container.name)) {
            for (port, answer) in &script.part(&container.name).http {
                // The first container that listens has the port.
                ports.entry(*port).or_insert_with(|| Bytes::copy_from_slice(answer.as_bytes()));
            }
        }
        Ports(ports)
    }

    /// `None` if nothing listens there.
    pub(super) fn answer(&self, port: u16) -> Option<Bytes> {
        self.0.get(&port).cloned()
    }
}

/// A connection in memory to the server on a port, and what runs that server.
pub(super) fn open(
    world: &World,
    answer: Bytes,
) -> (DuplexStream, impl Future<Output = ()> + Send + 'static) {
    let (near, far) = tokio::io::duplex(BUFFER);
    (near, serve(world.clone(), far, answer))
}

/// Answers every request on one connection with this text.
async fn serve(world: World, stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static, answer: Bytes) {
    let is_asked = Arc::new(AtomicBool::new(false));
    let asked = Arc::clone(&is_asked);
    let service = service_fn(move |_: http::Request<Incoming>| {
        asked.store(true, Relaxed);
        let answer = page(200, "text/plain; charset=utf-8", answer.clone());
        async move { Ok::<_, Infallible>(answer) }
    });
    let connection = http1::Builder::new()
        .header_read_timeout(None)
        .max_buf_size(MAX_HEADERS)
        // A client may end its side once it has asked.
        .half_close(true)
        .serve_connection(TokioIo::new(stream), service);
    let idle = async {
        loop {
            world.sleep(PATIENCE).await;
            if !is_asked.swap(false, Relaxed) {
                return;
            }
        }
    };
    // A client that hangs up is no error.
    drop(select(pin!(connection), pin!(idle)).await);
}

/// The part of a pod that has its addresses.
#[derive(Default, Deserialize)]
#[serde(default)]
struct AddressedPod {
    status: ReportedAddresses,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ReportedAddresses {
    #[serde(rename = "podIP")]
    pod_ip: String,
    #[serde(rename = "podIPs")]
    pod_ips: Vec<ReportedAddress>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ReportedAddress {
    ip: String,
}

/// Lets pods be found by their addresses: to search all of them for each request takes long.
pub(super) fn index_by_address(pods: &View<Pod>) {
    pods.index_items(BY_ADDRESS, |item: &Item| {
        let pod: AddressedPod = item.decode().unwrap_or_default();
        let ReportedAddresses { pod_ip, pod_ips } = pod.status;
        let all = pod_ips.into_iter().map(|it| it.ip).chain([pod_ip]);
        let mut addresses: Vec<String> = all.filter(|address| !address.is_empty()).collect();
        addresses.sort();
        addresses.dedup();
        addresses
    });
}

impl Kubelet {
    /// A connection to a port of a pod on a simulated node, or why there is none in the words of Go's dialer; `None` if
    /// no such pod has the address.
    pub fn connect_to_pod(&self, world: &World, address: SocketAddr) -> Option<Result<DuplexStream, String>> {
        let pods = self.simulated_at(address);
        let refused = |problem: &str| Some(Err(format!("dial tcp {address}: connect: {problem}")));
        if pods.is_empty() {
            return None;
        }
        let is_reachable = |pod: &&Arc<Pod>| {
            let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
            let node = pod.spec.as_ref().and_then(|spec| self.node(spec.node_name.as_deref()?));
            matches!(phase, Some("Pending" | "Running")) && node.is_some_and(|node| !is_stopped(&node))
        };
        let reachable: Vec<&Arc<Pod>> = pods.iter().filter(is_reachable).collect();
        if reachable.is_empty() {
            return refused("no route to host");
        }
        // Pods with the address of their host share it.
        let answer = reachable.iter().find_map(|pod| Ports::of(pod).answer(address.port()));
        let Some(answer) = answer else { return refused("connection refused") };
        let (stream, serve) = open(world, answer);
        world.spawn("port of a simulated pod", serve).detach();
        Some(Ok(stream))
    }

    /// The pods on simulated nodes that report this address.
    fn simulated_at(&self, address: SocketAddr) -> Vec<Arc<Pod>> {
        let Some(views) = self.views() else { return Vec::new() };
        let is_simulated = |pod: &Arc<Pod>| {
            let node = pod.spec.as_ref().and_then(|spec| self.node(spec.node_name.as_deref()?));
            node.is_some_and(|node| (views.simulates)(&node))
        };
        // A pod that cannot be decoded is none of ours: no loop could start it.
        let ip = address.ip().to_canonical().to_string();
        let found = views.pods.indexed(BY_ADDRESS, &ip).unwrap_or_default();
        found.into_iter().filter(is_simulated).collect()
    }
}
