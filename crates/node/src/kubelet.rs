//! The server of a kubelet, one for all simulated nodes of a process: a connection in, answers out.
//!
//! | file | content |
//! |---|---|
//! | `answer` | a request → a response: which path is what |
//! | `follow` | a log, piece by piece, as it is read or grows |
//! | `session` | a command in a container, over the channels of a WebSocket |
//! | `port_forward` | the connections of a client to ports of a pod |
//! | `ports` | what listens on the ports of pods |
//! | `spdy` | bytes ↔ frames, for port forwarding |
//! | `tunnel` | a connection of bytes, plain or through the messages of a WebSocket |
//! | `web_socket` | bytes ↔ messages |
//! | `pages` | what a node tells of itself: its pods, its metrics |

mod answer;
mod follow;
mod pages;
mod port_forward;
mod ports;
mod session;
mod spdy;
mod tunnel;
mod web_socket;

use crate::workshop::Workshop;
use bytes::Bytes;
use http::Response;
use http_body_util::{BodyExt, Full, combinators::UnsyncBoxBody};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use k8s_openapi::api::core::v1::{Node, Pod};
use operator::{Key, cache::View};
use std::{
    collections::BTreeMap,
    convert::Infallible,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::Duration,
};
use tokio::io::{AsyncRead, AsyncWrite};
use world::{World, watch};

/// The user of the API server's certificate. No other may ask.
// Kubernetes: the name that kubeadm gives it.
pub const API_SERVER: &str = "kube-apiserver-kubelet-client";
/// The header in which the API server names the node: all nodes of a process have the same address.
pub const NODE_HEADER: &str = "x-setpoint-node";

/// A stream on which nothing has happened for so long is closed.
// Kubernetes: streamingConnectionIdleTimeout.
const IDLE: Duration = Duration::from_secs(4 * 3600);
/// All headers of a request, in bytes.
const MAX_HEADER_BYTES: usize = 64 << 10;
/// A user who may not ask is refused within this time.
const REFUSAL_TIME: Duration = Duration::from_secs(10);

type Body = UnsyncBoxBody<Bytes, Infallible>;

/// The kubelet's server of all simulated nodes of a process. Clones are the same one; controllers made with
/// [`Settings::kubelet`](crate::Settings::kubelet) fill it.
#[derive(Clone, Default)]
pub struct Kubelet(Arc<Inner>);

#[derive(Default)]
struct Inner {
    /// `None` until a pod was seen.
    views: Mutex<Option<Views>>,
    /// The pods whose logs are followed.
    followed: Mutex<BTreeMap<Key, watch::Sender<()>>>,
    workshop: Workshop,
}

#[derive(Clone)]
struct Views {
    pods: View<Pod>,
    nodes: View<Node>,
    simulates: Simulates,
}

/// Whether a node is simulated here.
pub(crate) type Simulates = Arc<dyn Fn(&Node) -> bool + Send + Sync>;

impl Kubelet {
    /// Answers on one connection until the client closes it. `user` is the name in the client's certificate.
    pub async fn serve<S>(&self, world: &World, stream: S, user: &str)
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let is_allowed = user == API_SERVER;
        let (kubelet, own_world, user) = (self.clone(), world.clone(), user.to_owned());
        let service = service_fn(move |request: http::Request<Incoming>| {
            let (kubelet, world, user) = (kubelet.clone(), own_world.clone(), user.clone());
            async move {
                match is_allowed {
                    true => kubelet.answer(&world, request).await,
                    false => Ok(answer::forbidden(&user, &request)),
                }
            }
        });
        let connection = http1::Builder::new()
            .header_read_timeout(None)
            .max_buf_size(MAX_HEADER_BYTES)
            .keep_alive(is_allowed)
            .serve_connection(TokioIo::new(stream), service)
            .with_upgrades();
        // A client that hangs up is no error.
        match is_allowed {
            true => drop(connection.await),
            false => drop(world.timeout(REFUSAL_TIME, connection).await),
        }
    }

    /// Looks for pods and nodes in these caches from now on.
    pub(crate) fn read(&self, pods: View<Pod>, nodes: View<Node>, simulates: Simulates) {
        ports::index_by_address(&pods);
        // The cache keeps its subscribers: a strong reference would be a circle.
        let inner: Weak<Inner> = Arc::downgrade(&self.0);
        pods.subscribe(Arc::new(move |delta| {
            let followed = inner.upgrade().zip(delta.item());
            if let Some((inner, item)) = followed
                && let Some(sender) = lock(&inner.followed).get(item.key())
            {
                sender.set(());
            }
        }));
        *lock(&self.0.views) = Some(Views { pods, nodes, simulates });
    }

    /// Where pods are simulated, for their statuses and for those who ask.
    pub(crate) fn workshop(&self) -> &Workshop {
        &self.0.workshop
    }

    fn views(&self) -> Option<Views> {
        lock(&self.0.views).clone()
    }

    fn pod(&self, key: &Key) -> Option<Arc<Pod>> {
        // A pod that cannot be decoded is none of ours: no loop could start it.
        self.views()?.pods.get(key).ok().flatten()
    }

    fn node(&self, name: &str) -> Option<Arc<Node>> {
        self.views()?.nodes.get(&Key::new(None, name)).ok().flatten()
    }

    /// Tells of changes of a pod.
    fn changes(&self, key: &Key) -> Changes {
        let mut followed = lock(&self.0.followed);
        let sender = followed.entry(key.clone()).or_insert_with(|| watch::Sender::new(()));
        let mut receiver = sender.subscribe();
        // The caller has read the pod before: what has changed since then must not be missed.
        receiver.mark_changed();
        Changes { receiver: Some(receiver), key: key.clone(), kubelet: self.clone() }
    }
}

/// The changes of a pod. Dropped, it is forgotten.
struct Changes {
    receiver: Option<watch::Receiver<()>>,
    key: Key,
    kubelet: Kubelet,
}

impl Changes {
    /// Resolves after the next change since the last call.
    async fn next(&mut self) {
        if let Some(receiver) = &mut self.receiver
            && receiver.changed().await.is_ok()
        {
            return;
        }
        std::future::pending().await
    }
}

impl Drop for Changes {
    fn drop(&mut self) {
        let mut followed = lock(&self.kubelet.0.followed);
        drop(self.receiver.take());
        if followed.get(&self.key).is_some_and(|sender| sender.receiver_count() == 0) {
            followed.remove(&self.key);
        }
    }
}

fn is_running(pod: &Pod, container: &str) -> bool {
    let mut statuses = pod.status.iter().flat_map(|it| {
        let lists = [&it.init_container_statuses, &it.container_statuses, &it.ephemeral_container_statuses];
        lists.into_iter().flatten().flatten()
    });
    statuses.any(|it| it.name == container && it.state.as_ref().is_some_and(|state| state.running.is_some()))
}

fn text(code: u16, text: impl Into<Bytes>) -> Response<Body> {
    page(code, "text/plain; charset=utf-8", text)
}

fn page(code: u16, content_type: &'static str, body: impl Into<Bytes>) -> Response<Body> {
    let mut response = Response::new(Full::new(body.into()).boxed_unsync());
    *response.status_mut() =
        http::StatusCode::from_u16(code).unwrap_or(http::StatusCode::INTERNAL_SERVER_ERROR);
    let content_type = http::HeaderValue::from_static(content_type);
    response.headers_mut().insert(http::header::CONTENT_TYPE, content_type);
    response
}

/// No code panics while it holds the lock, so poisoning means nothing.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl fmt::Debug for Kubelet {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Kubelet").field("followed", &lock(&self.0.followed).len()).finish_non_exhaustive()
    }
}
