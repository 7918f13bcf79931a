//! What listens on the ports of simulated pods: an HTTP server for each text in the script of a container.

use super::{Kubelet, MAX_HEADER_BYTES, is_running, page};
use crate::{fleet::is_stopped, script::Script};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use k8s_openapi::api::core::v1::Pod;
use std::{convert::Infallible, net::SocketAddr, sync::Arc};
use tokio::io::{AsyncRead, AsyncWrite, DuplexStream};
use world::World;

/// Bytes in transit: a reader that is slow stops the writer.
const BUFFER: usize = 64 << 10;

/// What the HTTP server on a port answers; `None` if nothing listens there.
pub(super) fn answer_of(pod: &Pod, port: u16) -> Option<String> {
    let script = Script::of(pod).ok()?;
    let spec = pod.spec.as_ref()?;
    let mut running = spec.containers.iter().filter(|container| is_running(pod, &container.name));
    running.find_map(|container| script.part(&container.name).http.get(&port).cloned())
}

/// Answers every request on one connection with this text.
pub(super) async fn serve(stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static, answer: String) {
    let service = service_fn(move |_: http::Request<Incoming>| {
        let answer = page(200, "text/plain; charset=utf-8", answer.clone());
        async move { Ok::<_, Infallible>(answer) }
    });
    let connection = http1::Builder::new()
        .header_read_timeout(None)
        .max_buf_size(MAX_HEADER_BYTES)
        // A client may end its side once it has asked.
        .half_close(true)
        .serve_connection(TokioIo::new(stream), service);
    // A client that hangs up is no error.
    drop(connection.await);
}

/// A connection in memory to the server on a port, and what runs that server.
pub(super) fn open(answer: String) -> (DuplexStream, impl Future<Output = ()> + Send + 'static) {
    let (near, far) = tokio::io::duplex(BUFFER);
    (near, serve(far, answer))
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
        let answer = reachable.iter().find_map(|pod| answer_of(pod, address.port()));
        let Some(answer) = answer else { return refused("connection refused") };
        let (stream, serve) = open(answer);
        world.spawn("port of a simulated pod", serve).detach();
        Some(Ok(stream))
    }

    /// The pods on simulated nodes that report this address.
    fn simulated_at(&self, address: SocketAddr) -> Vec<Arc<Pod>> {
        let Some(views) = self.views() else { return Vec::new() };
        let ip = address.ip().to_canonical().to_string();
        let quoted = format!("\"{ip}\"");
        let has_address = |pod: &Arc<Pod>| {
            let status = pod.status.as_ref();
            let mut ips = status.iter().flat_map(|status| status.pod_ips.iter().flatten());
            ips.any(|it| it.ip == ip) || status.is_some_and(|status| status.pod_ip.as_deref() == Some(&ip))
        };
        let is_simulated = |pod: &Arc<Pod>| {
            let node = pod.spec.as_ref().and_then(|spec| self.node(spec.node_name.as_deref()?));
            node.is_some_and(|node| (views.simulates)(&node))
        };
        // Their text is searched first: few have the address, and to decode all takes long.
        let keys = views.pods.keys().into_iter();
        let named = keys.filter(|key| views.pods.item(key).is_some_and(|item| item.json().contains(&quoted)));
        let found = named.filter_map(|key| self.pod(&key));
        found.filter(has_address).filter(is_simulated).collect()
    }
}
