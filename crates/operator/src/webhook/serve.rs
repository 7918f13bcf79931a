//! The life of a webhook server: certificates, registration, sockets, and an orderly end.

use super::{
    Address, Webhooks,
    certificate::BadCertificate,
    conversion,
    keys::{Files, Keys},
    shared,
};
use bytes::Bytes;
use futures::future::{Either, select};
use http::{Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Full, Limited};
use hyper::{body::Incoming, service::service_fn};
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::{conn::auto, graceful::GracefulShutdown},
};
use kube::Client;
use std::{convert::Infallible, pin::pin, sync::Arc, time::Duration};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::Semaphore,
};
use tokio_rustls::TlsAcceptor;
use world::World;

/// A review holds an object twice, each of 1.5 MiB at the most in etcd, with room for JSON.
const MAX_REVIEW_BYTES: usize = 8 << 20;
/// A conversion review holds a whole list.
const MAX_CONVERSION_BYTES: usize = 64 << 20;
/// API servers keep a few each; more wait.
const MAX_CONNECTIONS: usize = 256;
/// Reviews on one connection at once: as many as an API server sends.
const MAX_STREAMS: u32 = 250;
const MAX_HANDSHAKE: Duration = Duration::from_secs(10);
const MAX_HEADERS: Duration = Duration::from_secs(10);
/// From the headers of a request to the end of its body.
const MAX_BODY_TIME: Duration = Duration::from_secs(30);
/// Reviews under way get so long when the server stops.
const DRAIN: Duration = Duration::from_secs(10);
/// How long to wait for room when the system has none for another socket.
const NO_ROOM: Duration = Duration::from_millis(50);
/// How often certificates and registration are looked at. Files change under a running server, and
/// nothing tells of it on every system.
const LOOK: Duration = Duration::from_secs(3600);
const LOOK_AT_FILES: Duration = Duration::from_secs(60);
/// When a look failed, the next comes sooner.
const LOOK_AGAIN: Duration = Duration::from_secs(30);
const JITTER: f64 = 0.1;

/// Where webhooks are served, and by which certificates.
#[derive(Clone, Debug)]
pub struct Site {
    /// Where the cluster finds them.
    pub address: Address,
    pub certificates: Certificates,
}

/// Where certificates come from.
#[derive(Clone, Debug)]
pub enum Certificates {
    /// Made and renewed here, and shared between replicas through a Secret.
    Shared { namespace: String, secret: String },
    /// Made elsewhere, and read again when they change.
    Files(Files),
}

/// Why webhooks are not served.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("the certificate of the webhooks is no good")]
    Certificate(#[from] BadCertificate),
    #[error("the files of the webhooks' certificate cannot be read")]
    Files(#[from] std::io::Error),
    #[error("the Secret of the webhooks' certificate was neither read nor written")]
    Secret(#[source] kube::Error),
    #[error("too many want to write Secret {secret:?} at once")]
    Contended { secret: String },
    #[error("the cluster was not told of the webhooks")]
    Registration(#[source] kube::Error),
}

impl Webhooks {
    /// Serves until `stop` ends. The cluster is told of the webhooks before the first connection
    /// is taken, and told again whenever a certificate changes or somebody has changed that.
    pub async fn serve(
        self,
        world: &World,
        client: Client,
        listener: TcpListener,
        site: Site,
        stop: impl Future<Output = ()>,
    ) -> Result<(), Error> {
        let webhooks = Arc::new(self);
        let keeper = Keeper { world: world.clone(), client, webhooks: Arc::clone(&webhooks), site };
        let keys = Arc::new(keeper.look(None).await?);
        let tls = keys.server_config()?;
        let keeping = world.spawn("webhook certificates", keeper.keep(Arc::clone(&keys)));
        listen(world, webhooks, listener, TlsAcceptor::from(tls), stop).await;
        drop(keeping);
        Ok(())
    }

    /// Keeps certificates and registration as they should be, and serves nothing: for webhooks
    /// whose requests come in some other way.
    pub async fn keep_registered(
        self: Arc<Self>,
        world: &World,
        client: Client,
        site: Site,
    ) -> Result<(), Error> {
        let keeper = Keeper { world: world.clone(), client, webhooks: self, site };
        let keys = Arc::new(keeper.look(None).await?);
        keeper.keep(keys).await;
        Ok(())
    }
}

/// Who looks after certificates and registration.
struct Keeper {
    world: World,
    client: Client,
    webhooks: Arc<Webhooks>,
    site: Site,
}

impl Keeper {
    async fn keep(self, keys: Arc<Keys>) {
        let usual = match self.site.certificates {
            Certificates::Shared { .. } => LOOK,
            Certificates::Files(_) => LOOK_AT_FILES,
        };
        let mut pause = usual;
        loop {
            self.world.sleep(self.world.jitter(pause, JITTER)).await;
            pause = match self.look(Some(&keys)).await {
                Ok(_) => usual,
                Err(problem) => {
                    let problem: &dyn std::error::Error = &problem;
                    tracing::warn!(problem, "certificates and registration of webhooks stay as they are");
                    LOOK_AGAIN
                }
            };
        }
    }

    /// Sees to it that certificates are good and the cluster knows whom to trust; new keys are
    /// shown only after that.
    async fn look(&self, keys: Option<&Keys>) -> Result<Keys, Error> {
        let (certificate, key, bundle) = match &self.site.certificates {
            Certificates::Shared { namespace, secret } => {
                let names = self.site.address.names();
                let kept = shared::look(&self.world, &self.client, namespace, secret, &names).await?;
                let bundle = kept.bundle();
                (kept.server.certificate, kept.server.key, Some(bundle))
            }
            Certificates::Files(files) => {
                let files = files.clone();
                let texts = self.world.blocking(move || files.read()).await?;
                (texts.certificate, texts.key, texts.authority)
            }
        };
        let checked = Keys::new(&certificate, &key)?;
        let registered = self.webhooks.register(&self.client, &self.site.address, bundle.as_deref()).await;
        registered.map_err(Error::Registration)?;
        if let Some(keys) = keys {
            keys.replace(&certificate, &key)?;
        }
        Ok(checked)
    }
}

async fn listen(
    world: &World,
    webhooks: Arc<Webhooks>,
    listener: TcpListener,
    acceptor: TlsAcceptor,
    stop: impl Future<Output = ()>,
) {
    let graceful = GracefulShutdown::new();
    let seats = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    let mut stop = pin!(stop);
    loop {
        let next = pin!(async {
            let seat = Arc::clone(&seats).acquire_owned().await;
            (seat.expect("nobody closes the semaphore"), listener.accept().await)
        });
        let (seat, socket) = match select(stop.as_mut(), next).await {
            Either::Left(_) => break,
            Either::Right(((seat, Ok((socket, _))), _)) => (seat, socket),
            Either::Right(((_, Err(error)), _)) => {
                tracing::warn!(%error, "cannot accept a connection to a webhook");
                world.sleep(NO_ROOM).await;
                continue;
            }
        };
        let visitor = Visitor { world: world.clone(), webhooks: Arc::clone(&webhooks) };
        let (acceptor, watcher) = (acceptor.clone(), graceful.watcher());
        let connection = async move {
            visitor.receive(socket, acceptor, watcher).await;
            drop(seat);
        };
        world.spawn("webhook connection", connection).detach();
    }
    // Whoever takes longer is cut off.
    let _ = world.timeout(DRAIN, graceful.shutdown()).await;
}

#[derive(Clone)]
struct Visitor {
    world: World,
    webhooks: Arc<Webhooks>,
}

impl Visitor {
    async fn receive(
        self,
        socket: TcpStream,
        acceptor: TlsAcceptor,
        watcher: hyper_util::server::graceful::Watcher,
    ) {
        let handshake = self.world.timeout(MAX_HANDSHAKE, acceptor.accept(socket)).await;
        let Ok(Ok(stream)) = handshake else { return };
        let service = service_fn(move |request: Request<Incoming>| {
            let visitor = self.clone();
            async move { Ok::<_, Infallible>(visitor.answer(request).await) }
        });
        let mut builder = auto::Builder::new(TokioExecutor::new());
        builder.http1().timer(TokioTimer::new()).header_read_timeout(MAX_HEADERS);
        builder.http2().timer(TokioTimer::new()).max_concurrent_streams(MAX_STREAMS);
        let connection = builder.serve_connection(TokioIo::new(stream), service);
        // A caller that hangs up is no news.
        drop(watcher.watch(connection.into_owned()).await);
    }

    async fn answer(&self, request: Request<Incoming>) -> Response<Full<Bytes>> {
        if request.method() != Method::POST {
            return response(StatusCode::METHOD_NOT_ALLOWED, "reviews are posted");
        }
        let (head, body) = request.into_parts();
        let path = head.uri.path();
        let limit = if path == conversion::PATH { MAX_CONVERSION_BYTES } else { MAX_REVIEW_BYTES };
        let read = self.world.timeout(MAX_BODY_TIME, Limited::new(body, limit).collect()).await;
        let body = match read {
            Ok(Ok(body)) => body.to_bytes(),
            Ok(Err(_)) => return response(StatusCode::PAYLOAD_TOO_LARGE, "the review is too long"),
            Err(_) => return response(StatusCode::REQUEST_TIMEOUT, "the review did not come in time"),
        };
        let reply =
            self.webhooks.answer(&self.world, path, head.uri.query().unwrap_or_default(), &body).await;
        response(reply.code, reply.body)
    }
}

fn response(code: StatusCode, body: impl Into<Bytes>) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(body.into()));
    *response.status_mut() = code;
    let sort = if code == StatusCode::OK { "application/json" } else { "text/plain; charset=utf-8" };
    response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static(sort));
    response
}
