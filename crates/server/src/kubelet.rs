//! Requests to kubelets and pods: to the address that a Node or a Pod reports, over a connection that is opened for
//! each.
//!
//! | file | content |
//! |---|---|
//! | `address` | a Node → host and port |
//! | `sockets` | TLS with the server's client certificate, to kubelets with a certificate of the CA |
//! | `pods` | connections to pods, which no certificate identifies |

mod address;
mod pods;
mod sockets;

pub use address::AddressChoice;
pub(crate) use address::address;
pub use pods::connect_to_pod;
pub(crate) use pods::{PodAddress, send_to_pod};
pub use sockets::{BadKubeletTls, KubeletSockets, KubeletTls};

use crate::{Inner, authenticate::Caller, shared_places::SharedPlace};
use bytes::Bytes;
use futures::future::{BoxFuture, select};
use http::{HeaderValue, Request, Response, header};
use http_body_util::Full;
use hyper::{body::Incoming, client::conn::http1};
use hyper_util::rt::TokioIo;
use std::{error::Error, fmt, net::SocketAddr, pin::pin, sync::Arc, time::Duration};
use tokio::io::{AsyncRead, AsyncWrite};

/// From the first packet to the end of the TLS handshake.
// Kubernetes: the limit of its dialer.
const CONNECT: Duration = Duration::from_secs(30);
/// From the request to the headers of the response: no kubelet needs so long.
const HEADERS: Duration = Duration::from_secs(30);
/// Connections to kubelets at once, each with a socket: followed logs and commands, mostly. As many again to pods.
pub(crate) const MAX_CONNECTIONS: usize = 1024;
/// All headers of a response, in bytes: a pod is not trusted.
const MAX_HEADER_BYTES: usize = 64 << 10;
const MAX_HEADERS: usize = 200;
/// Tells simulated nodes, which have one address together, which of them is asked.
const NODE_HEADER: &str = "x-setpoint-node";

/// Where a kubelet listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KubeletAddress {
    /// The name of its node.
    pub node: String,
    pub host: String,
    pub port: u16,
}

/// `host:port`, as in a URL.
impl fmt::Display for KubeletAddress {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.host.contains(':') {
            true => write!(out, "[{}]:{}", self.host, self.port),
            false => write!(out, "{}:{}", self.host, self.port),
        }
    }
}

/// A connection to a kubelet.
pub trait KubeletStream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> KubeletStream for S {}

/// What a connection is opened for: the connection, or why there is none, in words for users.
pub type Connecting<'a> = BoxFuture<'a, Result<Box<dyn KubeletStream>, String>>;

/// Opens connections to kubelets, and to pods on their nodes.
pub trait Kubelets: Send + Sync + fmt::Debug {
    /// A connection to the kubelet at this address, whose identity is verified. The error text is for users.
    fn connect<'a>(&'a self, address: &'a KubeletAddress) -> Connecting<'a>;

    /// A connection to a port of a pod. Any program that has the address may answer.
    fn connect_to_pod(&self, address: SocketAddr) -> Connecting<'_> {
        connect_to_pod(address)
    }
}

/// Why there is no response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum NoResponse {
    /// No connection.
    Unreachable(String),
    /// The connection broke before the response.
    Broken(String),
    TooManyConnections,
}

impl fmt::Display for NoResponse {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NoResponse::Unreachable(problem) | NoResponse::Broken(problem) => out.write_str(problem),
            NoResponse::TooManyConnections => {
                out.write_str("too many connections to nodes are open: end a followed log or a session first")
            }
        }
    }
}

/// Sends a request to a kubelet. A redirect is answered as it is, never followed. The connection is one of this caller.
pub(crate) async fn send(
    inner: &Inner,
    caller: &Caller,
    address: &KubeletAddress,
    mut request: Request<Full<Bytes>>,
) -> Result<Response<Incoming>, NoResponse> {
    let Some(kubelets) = &inner.kubelets else {
        return Err(NoResponse::Unreachable("no node answers here".to_owned()));
    };
    let place = inner.kubelet_connections.take_for(caller.sharer()).ok_or(NoResponse::TooManyConnections)?;
    let timed_out = || format!("dial tcp {address}: i/o timeout");
    let stream = inner.world.timeout(CONNECT, kubelets.connect(address)).await;
    let stream = stream.unwrap_or_else(|_| Err(timed_out())).map_err(NoResponse::Unreachable)?;
    let headers = request.headers_mut();
    if let Ok(host) = HeaderValue::from_str(&address.to_string()) {
        headers.insert(header::HOST, host);
    }
    if let Ok(node) = HeaderValue::from_str(&address.node) {
        headers.insert(NODE_HEADER, node);
    }
    match inner.world.timeout(HEADERS, exchange(inner, stream, place, request)).await {
        Ok(response) => response,
        Err(_) => Err(NoResponse::Broken("net/http: timeout awaiting response headers".to_owned())),
    }
}

/// One request over a connection of its own, which lasts until the response is read or dropped, or its place is needed for
/// another. The response has the place with it, for a connection that switches protocols.
async fn exchange<B>(
    inner: &Inner,
    stream: impl KubeletStream + 'static,
    place: SharedPlace,
    request: Request<B>,
) -> Result<Response<Incoming>, NoResponse>
where
    B: http_body::Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    let broken = |error: hyper::Error| NoResponse::Broken(in_go(&error));
    let mut builder = http1::Builder::new();
    builder.max_buf_size(MAX_HEADER_BYTES).max_headers(MAX_HEADERS);
    let (mut sender, connection) = builder.handshake(TokioIo::new(stream)).await.map_err(broken)?;
    let connection = connection.with_upgrades();
    let place = Arc::new(place);
    let own_place = Arc::clone(&place);
    let serve = async move {
        // Its errors are those of the response.
        drop(select(pin!(connection), pin!(own_place.end().wait())).await);
    };
    inner.world.spawn("connection to a kubelet or pod", serve).detach();
    let mut response = sender.send_request(request).await.map_err(broken)?;
    response.extensions_mut().insert(place);
    Ok(response)
}

// Kubernetes: Go's text where there is one.
fn in_go(error: &hyper::Error) -> String {
    if error.is_incomplete_message() || error.is_closed() { "EOF".to_owned() } else { error.to_string() }
}
