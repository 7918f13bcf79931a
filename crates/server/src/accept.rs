//! Sockets in, requests out: TLS, HTTP/1.1 and HTTP/2, client certificates, and an orderly end.

mod connections;
mod lent;
mod limits;
mod streams;
mod unstalled;

pub use limits::Limits;

use crate::{
    Body, Caller, Server,
    answer::Holding,
    authenticate::{CREDENTIAL_ID, ExpiredCertificate},
    refusal::Refusal,
};
use aws_lc_rs::digest::{SHA256, digest};
use connections::{Connections, Seat};
use http::{Method, header};
use http_body::Body as _;
use http_body_util::{BodyExt, Empty};
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
    net::SocketAddr,
    sync::{Arc, atomic::Ordering::Relaxed},
    time::Duration,
};
use streams::{StreamTasks, ThisStream};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::{TlsAcceptor, rustls::ServerConfig, server::TlsStream};
use unstalled::Unstalled;
use world::World;
use x509_parser::{
    der_parser::{Oid, oid},
    prelude::{FromDer, X509Certificate},
};

/// Requests under way get so long to end when the server stops.
const DRAIN: Duration = Duration::from_secs(20);
/// How long to wait for room when the system has none for another socket.
const NO_ROOM: Duration = Duration::from_millis(50);

/// Serves until `stop` ends, then lets what is under way finish.
pub async fn serve(
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
            // Out of descriptors, most likely: others must end before there is room.
            futures::future::Either::Right((Err(error), _)) => {
                tracing::warn!(%error, "cannot accept a connection");
                connections.make_room();
                world.sleep(NO_ROOM).await;
                continue;
            }
        };
        // Nobody is idle: whoever comes now has to come again.
        let Some(seat) = connections.admit() else { continue };
        let visitor = Visitor { world: world.clone(), server: server.clone(), limits: limits.clone(), seat };
        let connection = visitor.receive(socket, acceptor.clone(), graceful.watcher());
        world.spawn("connection", connection).detach();
    }
    server.drain();
    let _ = world.timeout(DRAIN, graceful.shutdown()).await;
}

/// Where a request comes from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClientAddress(pub(crate) SocketAddr);

/// One connection, from its first byte on.
struct Visitor {
    world: World,
    server: Server,
    limits: Limits,
    seat: Arc<Seat>,
}

impl Visitor {
    async fn receive(self, socket: TcpStream, acceptor: TlsAcceptor, watcher: Watcher) {
        let seat = Arc::clone(&self.seat);
        let talk = async {
            drop(socket.set_nodelay(true));
            let socket = Unstalled::new(socket, &self.world, self.limits.stall);
            let handshake = self.world.timeout(self.limits.handshake, acceptor.accept(socket)).await;
            match handshake {
                Ok(Ok(stream)) => self.speak(stream, watcher).await,
                _ => _ = self.server.0.metrics.failed_handshakes.fetch_add(1, Relaxed),
            }
        };
        futures::pin_mut!(talk);
        let sent_away = seat.sent_away();
        futures::pin_mut!(sent_away);
        futures::future::select(talk, sent_away).await;
    }

    async fn speak(self, stream: TlsStream<Unstalled>, watcher: Watcher) {
        let peer = Peer::of(&stream);
        let address = stream.get_ref().0.peer_address().map(ClientAddress);
        // By what was agreed on, not by the first bytes: nobody would wait for those with a clock in hand.
        let is_http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
        let builder = builder(&self.world, &self.limits);
        let builder = if is_http2 { builder.http2_only() } else { builder.http1_only() };
        if !is_http2 {
            // What is quiet may be reading slowly sent headers. One clock for both: hyper's is wound up for each request.
            self.seat.limit_quiet(self.limits.headers);
        }
        let service = service_fn(move |mut request: hyper::Request<Incoming>| {
            match &peer {
                // Connections live longer than certificates do.
                Some(peer) if self.world.wall().as_second() > peer.until => {
                    request.extensions_mut().insert(ExpiredCertificate);
                }
                Some(peer) => drop(request.extensions_mut().insert(Arc::clone(&peer.caller))),
                None => {}
            }
            if let Some(address) = address.filter(|_| self.server.0.audit.is_some()) {
                request.extensions_mut().insert(address);
            }
            let (world, server, limit) = (self.world.clone(), self.server.clone(), self.limits.request);
            let under_way = self.seat.begin();
            async move {
                let stream = ThisStream::current();
                let form = crate::negotiate::Form::for_errors(request.headers());
                let is_head = request.method() == Method::HEAD;
                let (head, body) = request.into_parts();
                let (lender, body) = Lender::lend(body);
                let request = hyper::Request::from_parts(head, body);
                // In a box from the start: it is handed on several times, and is not small.
                let answered = world.timeout(limit, Box::pin(server.handle(request))).await;
                lender.finish(&world).await;
                let response = answered.unwrap_or_else(|_| crate::answer::refusal(too_slow(), form));
                let response = if is_head { headers_only(response) } else { response };
                // Other bodies are watches and the like, which last as long as their clients want.
                let has_end = response.body().size_hint().exact().is_some()
                    || response.headers().contains_key(header::CONTENT_ENCODING);
                if let Some(stream) = stream.filter(|_| has_end) {
                    stream.is_answered();
                }
                Ok::<_, std::convert::Infallible>(response.map(|body| Holding::new(body, under_way)))
            }
        });
        let connection = builder.serve_connection_with_upgrades(TokioIo::new(stream), service);
        // A client that hangs up is no news.
        drop(watcher.watch(connection.into_owned()).await);
    }
}

/// The answer to HEAD: what GET would be answered, without its body. hyper sees to that in HTTP/1.1 only.
fn headers_only(mut response: hyper::Response<Body>) -> hyper::Response<Body> {
    if let Some(length) = response.body().size_hint().exact() {
        response.headers_mut().insert(header::CONTENT_LENGTH, length.into());
    }
    response.map(|_| Empty::new().boxed_unsync())
}

fn builder(world: &World, limits: &Limits) -> auto::Builder<StreamTasks> {
    let mut builder = auto::Builder::new(StreamTasks::new(world, limits.request));
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

/// Kubernetes: what a request gets that is not answered in time, be it slow itself or be we.
fn too_slow() -> Refusal {
    Refusal::timeout("request did not complete within the allotted timeout", 0)
}

/// Where in a subject the uid of a user stands.
// Kubernetes: its own number.
const UID: Oid<'static> = oid!(1.3.6.1.4.1.57683.2);

/// Who is at the other end, by a certificate that our CA has signed.
struct Peer {
    caller: Arc<Caller>,
    /// The last second in which the certificate holds.
    until: i64,
}

impl Peer {
    fn of(stream: &TlsStream<Unstalled>) -> Option<Peer> {
        let (_, session) = stream.get_ref();
        let der = session.peer_certificates()?.first()?;
        let (_, certificate) = X509Certificate::from_der(der).ok()?;
        let subject = certificate.subject();
        // Kubernetes: of several names, the last.
        let name = subject.iter_common_name().last()?.as_str().ok().filter(|name| !name.is_empty())?;
        let groups = subject.iter_organization().filter_map(|group| group.as_str().ok()).map(str::to_owned);
        let mut uids = subject.iter_by_oid(&UID);
        let uid = match (uids.next(), uids.next()) {
            (None, _) => "",
            (Some(uid), None) => uid.as_str().ok().filter(|uid| !uid.is_empty())?,
            // Whoever it is, they are two.
            (Some(_), Some(_)) => return None,
        };
        let mut caller = Caller::known(name, uid, groups.collect());
        let digest = digest(&SHA256, der);
        let digest: String = digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
        caller.extra.insert(CREDENTIAL_ID.to_owned(), vec![format!("X509SHA256={digest}")]);
        Some(Peer { caller: Arc::new(caller), until: certificate.validity().not_after.timestamp() })
    }
}
