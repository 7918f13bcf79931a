//! Accepts connections: TLS, HTTP/1.1 and HTTP/2, client certificates, graceful shutdown.

mod breakable;
mod connections;
mod front;
mod lent;
mod limits;
mod streams;
mod unstalled;

pub use front::{Broken, Front, FrontBody, FrontRequest, WebSocketEvents};
pub use limits::Limits;

use crate::{
    Body, Caller, Server,
    answer::Holding,
    authenticate::{CREDENTIAL_ID, ExpiredCertificate},
    refusal::Refusal,
    request::{ClientAddress, ClientConnection},
};
use aws_lc_rs::digest::{SHA256, digest};
use breakable::breakable;
use connections::{ConnectionSlot, Connections, UnderWay};
use http::{Method, StatusCode, header};
use http_body::Body as _;
use http_body_util::{BodyExt, Either, Empty};
use hyper::{body::Incoming, service::service_fn};
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    server::{
        conn::auto,
        graceful::{GracefulShutdown, Watcher},
    },
};
use lent::Lender;
use std::{
    future::Future,
    sync::{Arc, atomic::Ordering::Relaxed},
    time::Duration,
};
use streams::{PiecewiseBody, StreamTasks, ThisStream};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::{TlsAcceptor, rustls::ServerConfig, server::TlsStream};
use unstalled::Unstalled;
use world::World;
use x509_parser::{
    der_parser::{Oid, oid},
    prelude::{FromDer, X509Certificate},
};

/// How long running requests may take when the server stops.
const DRAIN: Duration = Duration::from_secs(20);
/// Pause when the system cannot open another socket.
const NO_ROOM: Duration = Duration::from_millis(50);

/// Serves until `stop` resolves, then lets running requests finish.
pub async fn serve(
    world: &World,
    server: Server,
    listener: TcpListener,
    tls: Arc<ServerConfig>,
    limits: Limits,
    stop: impl Future<Output = ()>,
) {
    serve_behind(None, world, server, listener, tls, limits, stop).await;
}

/// As [`serve`], but a front gets the requests.
pub async fn serve_behind(
    front: Option<Arc<dyn Front>>,
    world: &World,
    server: Server,
    listener: TcpListener,
    tls: Arc<ServerConfig>,
    limits: Limits,
    stop: impl Future<Output = ()>,
) {
    let acceptor = TlsAcceptor::from(tls);
    let graceful = GracefulShutdown::new();
    let connections = Connections::new(world, &limits);
    crate::follow::kubernetes_service::keep(world, &server);
    futures::pin_mut!(stop);
    loop {
        let next = listener.accept();
        futures::pin_mut!(next);
        let socket = match futures::future::select(stop.as_mut(), next).await {
            futures::future::Either::Left(_) => break,
            futures::future::Either::Right((Ok((socket, _)), _)) => socket,
            // Most likely out of file descriptors: wait until other connections close.
            futures::future::Either::Right((Err(error), _)) => {
                tracing::warn!(%error, "cannot accept a connection");
                connections.make_room();
                world.sleep(NO_ROOM).await;
                continue;
            }
        };
        // All connections are busy: drop the new one.
        let Some(slot) = connections.admit() else { continue };
        let (world, server, front) = (world.clone(), server.clone(), front.clone());
        let connection = Connection { world: world.clone(), server, front, limits: limits.clone(), slot };
        let connection = connection.receive(socket, acceptor.clone(), graceful.watcher());
        world.spawn("connection", connection).detach();
    }
    server.drain();
    let _ = world.timeout(DRAIN, graceful.shutdown()).await;
}

/// The body of a response: the server's or the front's.
type ServedBody = Either<Body, FrontBody>;

/// One connection.
struct Connection {
    world: World,
    server: Server,
    front: Option<Arc<dyn Front>>,
    limits: Limits,
    slot: Arc<ConnectionSlot>,
}

impl Connection {
    async fn receive(self, socket: TcpStream, acceptor: TlsAcceptor, watcher: Watcher) {
        let slot = Arc::clone(&self.slot);
        let talk = async {
            drop(socket.set_nodelay(true));
            let socket = Unstalled::new(socket, &self.world, self.limits.stall);
            let handshake = self.world.timeout(self.limits.handshake, acceptor.accept(socket)).await;
            match handshake {
                Ok(Ok(stream)) => self.serve_http(stream, watcher).await,
                _ => _ = self.server.0.metrics.failed_handshakes.fetch_add(1, Relaxed),
            }
        };
        futures::pin_mut!(talk);
        let must_close = slot.closed();
        futures::pin_mut!(must_close);
        futures::future::select(talk, must_close).await;
    }

    async fn serve_http(self, stream: TlsStream<Unstalled>, watcher: Watcher) {
        let peer = Peer::of(&stream);
        let address = stream.get_ref().0.peer_address().map(ClientAddress);
        // The protocol negotiated by ALPN. hyper's detection by the first bytes has no timeout.
        let is_http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
        let builder = builder(&self.world, &self.limits);
        let builder = if is_http2 { builder.http2_only() } else { builder.http1_only() };
        if !is_http2 {
            // A quiet connection may be sending headers slowly. This limits both: hyper's timer restarts
            // with each request.
            self.slot.limit_quiet(self.limits.headers);
        }
        let service = service_fn(move |mut request: hyper::Request<Incoming>| {
            let switching = self.describe(&mut request, peer.as_ref(), address);
            let (world, server, limit) = (self.world.clone(), self.server.clone(), self.limits.request);
            let front = self.front.clone();
            let under_way = self.slot.begin();
            async move {
                let stream = ThisStream::current();
                let form = crate::negotiate::Form::for_errors(request.headers());
                let is_head = request.method() == Method::HEAD;
                let (head, body) = request.into_parts();
                let (lender, body) = Lender::lend(body);
                let request = hyper::Request::from_parts(head, body);
                let answered = match front {
                    // Boxed from the start: it is large and moved several times.
                    None => {
                        let answered = world.timeout(limit, Box::pin(server.handle(request))).await;
                        answered.map(|response| Ok(breakable(response)))
                    }
                    Some(front) => {
                        let answered =
                            world.timeout(limit, front.handle(request.map(|body| body.boxed_unsync())));
                        answered.await.map(|response| response.map(|it| it.map(Either::Right)))
                    }
                };
                lender.finish(&world).await;
                let too_slow = || crate::answer::refusal(too_slow(), form).map(Either::Left);
                let response = answered.unwrap_or_else(|_| Ok(too_slow()))?;
                let response = if is_head { headers_only(response) } else { response };
                Ok::<_, Broken>(limited(response, stream, under_way, switching.as_deref()))
            }
        });
        let connection = builder.serve_connection_with_upgrades(TokioIo::new(stream), service);
        // A client that hangs up is not an error.
        drop(watcher.watch(connection.into_owned()).await);
    }

    /// Tells the server what is known of the client. If it asks to switch protocols, the result counts the connection beside
    /// the request: it outlives that.
    fn describe(
        &self,
        request: &mut hyper::Request<Incoming>,
        peer: Option<&Peer>,
        address: Option<ClientAddress>,
    ) -> Option<Arc<UnderWay>> {
        let asks_to_switch = request.headers().contains_key(header::UPGRADE);
        let known = request.extensions_mut();
        match peer {
            // A connection may outlive its client certificate.
            Some(peer) if self.world.wall().as_second() > peer.until => {
                known.insert(ExpiredCertificate);
            }
            Some(peer) => drop(known.insert(Arc::clone(&peer.caller))),
            None => {}
        }
        if let Some(address) = address {
            known.insert(address);
        }
        known.insert(self.slot.place());
        let switching = asks_to_switch.then(|| Arc::new(self.slot.begin()))?;
        known.insert(ClientConnection::new(switching.clone(), self.slot.end()));
        Some(switching)
    }
}

/// The response with what limits its time, or the share that its user has of all connections.
fn limited(
    response: hyper::Response<ServedBody>,
    stream: Option<ThisStream>,
    under_way: UnderWay,
    switching: Option<&UnderWay>,
) -> hyper::Response<Holding<UnderWay, PiecewiseBody<ServedBody>>> {
    // Other bodies are watches and the like, which last as long as their clients want.
    let has_end = response.body().size_hint().exact().is_some()
        || response.headers().contains_key(header::CONTENT_ENCODING);
    if let Some(stream) = stream.as_ref().filter(|_| has_end) {
        stream.is_answered();
    }
    let is_switched = response.status() == StatusCode::SWITCHING_PROTOCOLS;
    if is_switched || !has_end {
        switching.filter(|_| is_switched).unwrap_or(&under_way).lasts();
    }
    let stream = stream.filter(|_| !has_end);
    response.map(|body| Holding::new(PiecewiseBody::new(body, stream), under_way))
}

/// The response to HEAD: that to GET without its body. hyper does this in HTTP/1.1 only.
fn headers_only(mut response: hyper::Response<ServedBody>) -> hyper::Response<ServedBody> {
    if let Some(length) = response.body().size_hint().exact() {
        response.headers_mut().insert(header::CONTENT_LENGTH, length.into());
    }
    response.map(|_| Either::Left(Empty::new().boxed_unsync()))
}

fn builder(world: &World, limits: &Limits) -> auto::Builder<StreamTasks> {
    let mut builder = auto::Builder::new(StreamTasks::new(world, limits));
    builder
        .http1()
        .header_read_timeout(None)
        .max_headers(limits::MAX_HEADERS)
        .max_buf_size(limits::MAX_HEADER_BYTES)
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(limits::MAX_STREAMS)
        .max_header_list_size(limits::MAX_HEADER_LIST)
        .max_pending_accept_reset_streams(limits::MAX_RESETS)
        .max_local_error_reset_streams(limits::MAX_STREAM_ERRORS)
        .initial_stream_window_size(limits::STREAM_WINDOW)
        .initial_connection_window_size(limits::CONNECTION_WINDOW)
        .max_send_buf_size(limits::SEND_BUFFER)
        .keep_alive_interval(limits::PING)
        .keep_alive_timeout(limits.stall);
    builder
}

/// Kubernetes: the response to a request that times out.
fn too_slow() -> Refusal {
    Refusal::timeout("request did not complete within the allotted timeout", 0)
}

/// The attribute of a subject that holds the user's UID.
// Kubernetes: its own object identifier.
const UID: Oid<'static> = oid!(1.3.6.1.4.1.57683.2);

/// The user of a verified client certificate.
struct Peer {
    caller: Arc<Caller>,
    /// The last second of the certificate's validity.
    until: i64,
}

impl Peer {
    fn of(stream: &TlsStream<Unstalled>) -> Option<Peer> {
        let (_, session) = stream.get_ref();
        let der = session.peer_certificates()?.first()?;
        let (_, certificate) = X509Certificate::from_der(der).ok()?;
        let subject = certificate.subject();
        // Kubernetes: the last of several common names.
        let name = subject.iter_common_name().last()?.as_str().ok().filter(|name| !name.is_empty())?;
        let groups = subject.iter_organization().filter_map(|group| group.as_str().ok()).map(str::to_owned);
        let mut uids = subject.iter_by_oid(&UID);
        let uid = match (uids.next(), uids.next()) {
            (None, _) => "",
            (Some(uid), None) => uid.as_str().ok().filter(|uid| !uid.is_empty())?,
            // Two UIDs: reject.
            (Some(_), Some(_)) => return None,
        };
        let mut caller = Caller::known(name, uid, groups.collect());
        let digest = digest(&SHA256, der);
        let digest: String = digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
        caller.extra.insert(CREDENTIAL_ID.to_owned(), vec![format!("X509SHA256={digest}")]);
        Some(Peer { caller: Arc::new(caller), until: certificate.validity().not_after.timestamp() })
    }
}
