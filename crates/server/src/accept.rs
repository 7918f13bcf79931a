//! Sockets in, requests out: TLS, HTTP/1.1 and HTTP/2, client certificates, and an orderly end.

use crate::{Caller, Server};
use hyper::{body::Incoming, service::service_fn};
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::{
        conn::auto,
        graceful::{GracefulShutdown, Watcher},
    },
};
use std::{future::Future, sync::Arc, time::Duration};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::{TlsAcceptor, rustls::ServerConfig, server::TlsStream};
use world::World;
use x509_parser::prelude::{FromDer, X509Certificate};

/// A client that has not finished its handshake or its headers by then is gone.
const PATIENCE: Duration = Duration::from_secs(10);
/// Requests under way get so long to end when the server stops.
const DRAIN: Duration = Duration::from_secs(20);
/// All headers of a request, in bytes: far more than any client sends.
const MAX_HEADER_BYTES: usize = 128 * 1024;
const MAX_HEADER_LIST: u32 = 128 * 1024;
/// Streams of one HTTP/2 connection at once: watches of all resources, and some.
const MAX_STREAMS: u32 = 1000;

/// Serves until `stop` ends, then lets what is under way finish.
pub async fn serve(
    world: &World,
    server: Server,
    listener: TcpListener,
    tls: Arc<ServerConfig>,
    stop: impl Future<Output = ()>,
) {
    let acceptor = TlsAcceptor::from(tls);
    let graceful = GracefulShutdown::new();
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
                world.sleep(Duration::from_millis(50)).await;
                continue;
            }
        };
        let (acceptor, server, watcher) = (acceptor.clone(), server.clone(), graceful.watcher());
        let connection_world = world.clone();
        let connection = async move {
            drop(socket.set_nodelay(true));
            let handshake = connection_world.timeout(PATIENCE, acceptor.accept(socket)).await;
            if let Ok(Ok(stream)) = handshake {
                speak(stream, server, watcher).await;
            }
        };
        world.spawn("connection", connection).detach();
    }
    server.drain();
    let _ = world.timeout(DRAIN, graceful.shutdown()).await;
}

async fn speak(stream: TlsStream<TcpStream>, server: Server, watcher: Watcher) {
    let caller = peer(&stream);
    let service = service_fn(move |mut request: hyper::Request<Incoming>| {
        let server = server.clone();
        if let Some(caller) = &caller {
            request.extensions_mut().insert(caller.clone());
        }
        async move { Ok::<_, std::convert::Infallible>(server.handle(request).await) }
    });
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(PATIENCE)
        .max_buf_size(MAX_HEADER_BYTES)
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(MAX_STREAMS)
        .max_header_list_size(MAX_HEADER_LIST)
        .keep_alive_interval(Some(Duration::from_secs(30)));
    let connection = builder.serve_connection_with_upgrades(TokioIo::new(stream), service);
    // A client that hangs up is no news.
    drop(watcher.watch(connection.into_owned()).await);
}

/// Whom the client's certificate names, if it showed one that our CA has signed.
fn peer(stream: &TlsStream<TcpStream>) -> Option<Caller> {
    let (_, session) = stream.get_ref();
    let certificate = session.peer_certificates()?.first()?;
    let (_, certificate) = X509Certificate::from_der(certificate).ok()?;
    let subject = certificate.subject();
    let name = subject.iter_common_name().next()?.as_str().ok()?.to_owned();
    let groups = subject.iter_organization().filter_map(|group| group.as_str().ok()).map(str::to_owned);
    Some(Caller::known(name, "", groups.collect()))
}
