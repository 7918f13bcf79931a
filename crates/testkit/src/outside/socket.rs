//! The socket for programs outside: TLS on loopback, on a thread of its own in real time.

use super::relay::{self, Arrived};
use crate::cluster::administrator;
use bytes::Bytes;
use http::{Request, Response, header};
use http_body_util::{BodyExt, Full, Limited, combinators::UnsyncBoxBody};
use hyper::{body::Incoming, service::service_fn};
use hyper_util::{
    rt::{TokioExecutor, TokioIo},
    server::conn::auto,
};
use server::accept::Broken;
use std::{
    io,
    net::{Ipv4Addr, SocketAddr},
    sync::{
        Arc,
        mpsc::{Receiver, SyncSender, sync_channel},
    },
};
use testing::Credentials;
use tokio::{
    net::{TcpListener, TcpStream},
    sync::oneshot,
};
use tokio_rustls::{
    TlsAcceptor,
    rustls::{ServerConfig, crypto::aws_lc_rs, pki_types::PrivatePkcs8KeyDer},
};
use world::World;

/// Requests that wait for the simulation; kubectl sends a few at once. Further ones are refused.
const MAX_WAITING: usize = 1_000;
/// As much as the server itself accepts, and some more, so that it is the one that refuses.
const MAX_BODY: usize = 16 << 20;

/// A socket that is served by a thread.
pub(super) struct Opened {
    /// The world of that thread.
    pub(super) real: World,
    pub(super) address: SocketAddr,
    /// PEM; it signs itself.
    pub(super) certificate: String,
    /// Of an administrator.
    pub(super) token: String,
    pub(super) arrivals: Receiver<Arrived>,
    /// Dropping it ends the thread.
    pub(super) stop: oneshot::Sender<()>,
}

/// Opens a socket on a free port. Keys and token come from the operating system, not from the seed: other
/// users of this machine can reach the port, and could guess a seed.
pub(super) fn open() -> io::Result<Opened> {
    let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    listener.set_nonblocking(true)?;
    let address = listener.local_addr()?;
    let names = vec![address.ip().to_string(), "localhost".to_owned()];
    let made = rcgen::generate_simple_self_signed(names).map_err(io::Error::other)?;
    let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
    let tls = server_config(made.cert.der().clone(), key).map_err(io::Error::other)?;
    let (sender, arrivals) = sync_channel(MAX_WAITING);
    let (stop, stopped) = oneshot::channel::<()>();
    let (started, starting) = sync_channel(1);
    world::run_beside("socket of a test", move |world| async move {
        let token = world.uid();
        drop(started.send((world.clone(), token.clone())));
        let Ok(listener) = TcpListener::from_std(listener) else { return };
        let server =
            SocketServer { world, tls: TlsAcceptor::from(tls), token: token.into(), arrivals: sender };
        futures::future::select(Box::pin(server.accept(listener)), stopped).await;
    })?;
    let (real, token) = starting.recv().map_err(io::Error::other)?;
    Ok(Opened { real, address, certificate: made.cert.pem(), token, arrivals, stop })
}

fn server_config(
    certificate: tokio_rustls::rustls::pki_types::CertificateDer<'static>,
    key: PrivatePkcs8KeyDer<'static>,
) -> Result<Arc<ServerConfig>, tokio_rustls::rustls::Error> {
    let builder = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()?;
    let mut config = builder.with_no_client_auth().with_single_cert(vec![certificate], key.into())?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

/// Reads requests from connections, and hands them over to the simulation.
#[derive(Clone)]
struct SocketServer {
    world: World,
    tls: TlsAcceptor,
    token: Arc<str>,
    arrivals: SyncSender<Arrived>,
}

impl SocketServer {
    async fn accept(self, listener: TcpListener) {
        // It fails only without file descriptors, and then the test has other problems.
        while let Ok((socket, _)) = listener.accept().await {
            self.world.spawn("connection of a test", self.clone().serve(socket)).detach();
        }
    }

    async fn serve(self, socket: TcpStream) {
        let Ok(stream) = self.tls.accept(socket).await else { return };
        let service = service_fn(move |request| {
            let server = self.clone();
            async move { server.answer(request).await }
        });
        let builder = auto::Builder::new(TokioExecutor::new());
        // A client that hangs up is not an error.
        drop(builder.serve_connection(TokioIo::new(stream), service).await);
    }

    async fn answer(
        &self,
        request: Request<Incoming>,
    ) -> Result<Response<UnsyncBoxBody<Bytes, Broken>>, Broken> {
        let (mut head, body) = request.into_parts();
        // HTTP/2 has the address of the server in it.
        head.uri = head.uri.path_and_query().cloned().map(http::Uri::from).unwrap_or_default();
        let body = Limited::new(body, MAX_BODY).collect().await.map_err(|_| Broken)?;
        let sent = head.headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
        let is_administrator = sent.and_then(|sent| sent.strip_prefix("Bearer ")) == Some(&self.token);
        let credentials = if is_administrator {
            head.headers.remove(header::AUTHORIZATION);
            Credentials::Of(administrator("kubernetes-admin"))
        } else {
            // Perhaps a token that the cluster has issued.
            Credentials::InHeaders
        };
        relay::hand_over(&self.arrivals, credentials, Request::from_parts(head, Full::new(body.to_bytes())))
            .await
    }
}
