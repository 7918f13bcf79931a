//! The webhook server: certificates, registration, sockets, and graceful shutdown.

use super::{
    Address, Webhooks,
    certificate::BadCertificate,
    conversion,
    keys::{Files, Keys},
    shared,
};
use crate::connections::Connections;
use bytes::Bytes;
use futures::future::select;
use http::{Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Full, Limited};
use hyper::{body::Incoming, service::service_fn};
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::{conn::auto, graceful::GracefulShutdown},
};
use kube::Client;
use std::{convert::Infallible, pin::pin, sync::Arc, time::Duration};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use world::World;

/// A review has an object twice; etcd stores at most 1.5 MiB, which may be more as JSON.
const MAX_REVIEW_BYTES: usize = 8 << 20;
/// A conversion review has a whole list.
const MAX_CONVERSION_BYTES: usize = 64 << 20;
/// Each API server uses a few; further connections wait.
const MAX_CONNECTIONS: usize = 256;
/// Reviews on one connection at once: as many as Go clients send.
const MAX_STREAMS: u32 = 250;
const MAX_HANDSHAKE: Duration = Duration::from_secs(10);
const MAX_HEADERS: Duration = Duration::from_secs(10);
/// From the headers of a request to the end of its body.
const MAX_BODY_TIME: Duration = Duration::from_secs(30);
/// How long reviews in progress may take when the server stops.
const DRAIN: Duration = Duration::from_secs(10);
/// How often certificates and registration are checked. Files are polled, because not every system
/// reports their changes.
const CHECK: Duration = Duration::from_secs(3600);
const CHECK_FILES: Duration = Duration::from_secs(60);
/// After a check that failed.
const CHECK_AGAIN: Duration = Duration::from_secs(30);
const JITTER: f64 = 0.1;

/// The address of the webhook server, and its certificates.
#[derive(Clone, Debug)]
pub struct Site {
    /// Where the API server reaches it.
    pub address: Address,
    /// Where its certificates come from.
    pub certificates: Certificates,
}

/// The source of the serving certificate.
#[derive(Clone, Debug)]
pub enum Certificates {
    /// Made and renewed by the operator, and shared between replicas through a Secret.
    Shared {
        /// The namespace of the Secret.
        namespace: String,
        /// The name of the Secret.
        secret: String,
    },
    /// Made by another program, and read again when they change.
    Files(Files),
}

/// Why webhooks are not served.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The certificate cannot be used.
    #[error("the certificate of the webhooks is no good")]
    Certificate(#[from] BadCertificate),
    /// The files cannot be read.
    #[error("the files of the webhooks' certificate cannot be read")]
    Files(#[from] std::io::Error),
    /// The Secret was neither read nor written.
    #[error("the Secret of the webhooks' certificate was neither read nor written")]
    Secret(#[source] kube::Error),
    /// Other replicas wrote the Secret each time this one tried to.
    #[error("too many want to write Secret {secret:?} at once")]
    Contended {
        /// The name of the Secret.
        secret: String,
    },
    /// The webhook configurations were not written.
    #[error("the cluster was not told of the webhooks")]
    Registration(#[source] kube::Error),
}

impl Webhooks {
    /// Serves until `stop` ends. The webhooks are registered before the first connection is accepted, and
    /// again whenever the certificate or the registration has changed.
    pub async fn serve(
        self,
        world: &World,
        client: Client,
        listener: TcpListener,
        site: Site,
        stop: impl Future<Output = ()>,
    ) -> Result<(), Error> {
        let webhooks = Arc::new(self);
        let maintainer = Maintainer { world: world.clone(), client, webhooks: Arc::clone(&webhooks), site };
        let keys = Arc::new(maintainer.check(None).await?);
        let tls = keys.server_config()?;
        let maintenance = world.spawn("webhook certificates", maintainer.run(Arc::clone(&keys)));
        listen(world, webhooks, listener, TlsAcceptor::from(tls), stop).await;
        drop(maintenance);
        Ok(())
    }

    /// Maintains certificates and registration without serving: for webhooks whose requests arrive in
    /// another way.
    pub async fn keep_registered(
        self: Arc<Self>,
        world: &World,
        client: Client,
        site: Site,
    ) -> Result<(), Error> {
        let maintainer = Maintainer { world: world.clone(), client, webhooks: self, site };
        let keys = Arc::new(maintainer.check(None).await?);
        maintainer.run(keys).await;
        Ok(())
    }
}

/// Maintains certificates and registration.
struct Maintainer {
    world: World,
    client: Client,
    webhooks: Arc<Webhooks>,
    site: Site,
}

impl Maintainer {
    async fn run(self, keys: Arc<Keys>) {
        let usual = match self.site.certificates {
            Certificates::Shared { .. } => CHECK,
            Certificates::Files(_) => CHECK_FILES,
        };
        let mut pause = usual;
        loop {
            self.world.sleep(self.world.jitter(pause, JITTER)).await;
            pause = match self.check(Some(&keys)).await {
                Ok(_) => usual,
                Err(problem) => {
                    let problem: &dyn std::error::Error = &problem;
                    tracing::warn!(problem, "certificates and registration of webhooks stay as they are");
                    CHECK_AGAIN
                }
            };
        }
    }

    /// Renews the certificate if needed, and registers the webhooks with its CA; only then is a new
    /// certificate used.
    async fn check(&self, keys: Option<&Keys>) -> Result<Keys, Error> {
        let (certificate, key, bundle) = match &self.site.certificates {
            Certificates::Shared { namespace, secret } => {
                let names = self.site.address.names();
                let current = shared::ensure(&self.world, &self.client, namespace, secret, &names).await?;
                let bundle = current.bundle();
                (current.server.certificate, current.server.key, Some(bundle))
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
        match keys {
            Some(keys) => keys.replace(&certificate, &key)?,
            None => {
                let Webhooks { name, hooks, conversions } = &*self.webhooks;
                let (hooks, conversions) = (hooks.len(), conversions.len());
                tracing::info!(webhooks = name, hooks, conversions, "registered");
            }
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
    let mut connections = Connections::new(world, "webhook connection", listener, MAX_CONNECTIONS);
    {
        let accept = connections.accept(|socket| {
            let connection = Connection { world: world.clone(), webhooks: Arc::clone(&webhooks) };
            connection.serve(socket, acceptor.clone(), graceful.watcher())
        });
        select(pin!(stop), pin!(accept)).await;
    }
    // Connections that take longer are closed with `connections`.
    let _ = world.timeout(DRAIN, graceful.shutdown()).await;
}

#[derive(Clone)]
struct Connection {
    world: World,
    webhooks: Arc<Webhooks>,
}

impl Connection {
    async fn serve(
        self,
        socket: TcpStream,
        acceptor: TlsAcceptor,
        watcher: hyper_util::server::graceful::Watcher,
    ) {
        let handshake = self.world.timeout(MAX_HANDSHAKE, acceptor.accept(socket)).await;
        let Ok(Ok(stream)) = handshake else { return };
        let service = service_fn(move |request: Request<Incoming>| {
            let connection = self.clone();
            async move { Ok::<_, Infallible>(connection.answer(request).await) }
        });
        let mut builder = auto::Builder::new(TokioExecutor::new());
        builder.http1().timer(TokioTimer::new()).header_read_timeout(MAX_HEADERS);
        builder.http2().timer(TokioTimer::new()).max_concurrent_streams(MAX_STREAMS);
        let connection = builder.serve_connection(TokioIo::new(stream), service);
        // A client that hangs up is not an error.
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
    let content_type = if code == StatusCode::OK { "application/json" } else { "text/plain; charset=utf-8" };
    response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static(content_type));
    response
}
