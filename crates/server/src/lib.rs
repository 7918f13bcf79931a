//! The API server without sockets: request in, response out.
//!
//! A request passes these modules in order: `request` (URL and query), `authenticate` (the caller),
//! `authorize` (impersonation), `fair` (a seat), `authorize` again (permission), then a file of `verbs/`,
//! which for writes runs the stages of `write/`; `answer` encodes the result, and `audit` records it.
//! `accept` serves it over TLS.

// Sockets, and stages of every request.
pub mod accept;
mod dispatch;
mod metrics;
mod panics;
mod trace;

// Parsing, authentication, authorization, fairness, audit.
mod audit;
mod audit_trail;
mod authenticate;
mod authorize;
mod fair;
mod negotiate;
mod request;

// What is served: built-in kinds and custom resources.
mod custom;
mod live;
mod registry;
mod route;
mod served;

// An authorized request, or the reason why it is rejected.
mod call;
mod refusal;

// Decoding and running verbs.
mod input;
mod lookup;
mod scale_view;
mod selection;
mod verbs;

// The stages of a write, and hooks after it.
mod admission;
mod convert;
mod follow;
mod kubelet;
mod long_work;
mod shared_places;
mod stored;
mod webhook;
mod write;

// Responses.
mod answer;
mod discovery;
mod documents;
mod health;
mod openapi;

// Start and configuration.
mod bootstrap;
mod config;

pub use admission::{AdmissionPlugin, AdmissionPluginError, AdmissionPlugins};
pub use answer::Body;
pub use audit::{Audit, AuditPolicy, BadAuditPolicy};
pub use authenticate::{Caller, SigningKey, SigningKeyError, Token, TokenFile, TokenFileError, VerifyingKey};
pub use authorize::{AuthorizationMode, BadAuthorizationMode};
pub use config::Config;
pub use kubelet::{
    AddressChoice, BadKubeletTls, Connecting, KubeletAddress, KubeletSockets, KubeletStream, KubeletTls,
    Kubelets, connect_to_pod,
};
pub use verbs::watch::error_event;
pub use webhook::{Answer, Exchange, Outbound, Sockets};
pub use write::{BadRange, ServiceRange};

use authenticate::{Authenticator, Trusted};
use authorize::Authorizer;
use futures::FutureExt;
use http::{Request, Response};
use http_body::Body as _;
use negotiate::Form;
use registry::Registry;
use std::{net::SocketAddr, sync::Arc, time::Duration};
use store::{ReadStore, Store};
use world::World;

/// A control plane's API, as a service that any number of callers share.
#[derive(Clone, Debug)]
pub struct Server(Arc<Inner>);

#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) world: World,
    pub(crate) store: Arc<dyn ReadStore>,
    pub(crate) writer: write::Writer,
    pub(crate) registry: Registry,
    pub(crate) authenticator: Authenticator,
    pub(crate) authorizer: Authorizer,
    pub(crate) fair: fair::Fair,
    pub(crate) admission: admission::Configured,
    pub(crate) service_range: ServiceRange,
    pub(crate) admission_plugins: AdmissionPlugins,
    pub(crate) allows_privileged: bool,
    pub(crate) fills_namespaces: bool,
    pub(crate) quotas: admission::resource_quota::Quotas,
    pub(crate) outbound: Arc<dyn Outbound>,
    pub(crate) kubelets: Option<Arc<dyn Kubelets>>,
    pub(crate) kubelet_addresses: kubelet::AddressChoice,
    pub(crate) kubelet_connections: shared_places::SharedPlaces,
    pub(crate) pod_connections: shared_places::SharedPlaces,
    pub(crate) authority: Option<String>,
    pub(crate) advertised: Option<SocketAddr>,
    pub(crate) metrics: metrics::Metrics,
    pub(crate) workplaces: long_work::Workplaces,
    pub(crate) documents: documents::Documents,
    pub(crate) audit: Option<audit::Auditor>,
    pub(crate) shared_changes: verbs::watch::SharedChanges,
    /// True when the server drains: watches end.
    pub(crate) draining: world::watch::Sender<bool>,
}

impl Server {
    /// Starts a server on `store`; a new store gets the bootstrap objects.
    pub async fn start(world: &World, store: Arc<dyn Store>, config: Config) -> Result<Server, store::Error> {
        panics::install_location_hook();
        let trusted = Trusted {
            tokens: config.tokens,
            signing_key: config.signing_key,
            verifying_keys: config.verifying_keys,
            issuer: config.issuer,
            more_issuers: config.more_issuers,
            audiences: config.audiences,
            allows_anonymous: config.allows_anonymous,
            accepts_bootstrap_tokens: config.accepts_bootstrap_tokens,
        };
        let inner = Inner {
            world: world.clone(),
            writer: write::Writer::new(&store),
            store,
            registry: Registry::built_in().hiding(config.hidden_versions),
            authenticator: Authenticator::new(trusted),
            authorizer: Authorizer::new(config.authorization),
            fair: fair::Fair::new(world, config.seats),
            admission: admission::Configured::default(),
            service_range: config.service_range,
            admission_plugins: config.admission_plugins,
            allows_privileged: config.allows_privileged,
            fills_namespaces: config.fills_namespaces,
            quotas: admission::resource_quota::Quotas::default(),
            outbound: config.outbound,
            kubelets: config.kubelets,
            kubelet_addresses: config.kubelet_addresses,
            kubelet_connections: shared_places::SharedPlaces::new(world, kubelet::MAX_CONNECTIONS),
            pod_connections: shared_places::SharedPlaces::new(world, kubelet::MAX_CONNECTIONS),
            authority: config.authority,
            advertised: config.advertised,
            metrics: metrics::Metrics::default(),
            workplaces: long_work::Workplaces::default(),
            documents: documents::Documents::default(),
            audit: config.audit.map(|audit| audit::Auditor::new(world, audit)),
            shared_changes: verbs::watch::SharedChanges::default(),
            draining: world::watch::Sender::new(false),
        };
        let is_new = bootstrap::bootstrap(&inner).boxed().await?;
        let inner = Arc::new(inner);
        follow::catch_up(&inner).boxed().await;
        if !is_new && let Err(refusal) = fair::ensure(&inner).boxed().await {
            tracing::warn!(problem = %refusal, "cannot maintain flow schemas and priority levels");
        }
        if let Err(refusal) = fair::write_statuses(&inner).boxed().await {
            tracing::warn!(problem = %refusal, "cannot update the status of flow schemas");
        }
        let server = Server(inner);
        follow::kubernetes_service::ensure(&server).boxed().await;
        Ok(server)
    }

    /// Answers one request. The transport has authenticated a [`Caller`] among its extensions.
    pub async fn handle<B>(&self, request: Request<B>) -> Response<Body>
    where
        B: http_body::Body + Send + 'static,
        B::Data: Send,
        B::Error: std::error::Error + Send + Sync + 'static,
    {
        let form = Form::for_errors(request.headers());
        let gzip = answer::Gzip::accepted_by(request.headers());
        let place = request::parse(request.uri().path());
        let begun = metrics::Begun::new(&self.0, &request, place.as_ref());
        let line = (request.method().clone(), request.uri().clone());
        let (response, seat) = match panics::catch(self.0.answer(request, place, form)).await {
            Ok(Ok(answered)) => answered,
            Ok(Err(refusal)) => (answer::refusal(refusal, form), None),
            Err(panicked) => {
                panicked.log(&line);
                (panics::answer(), None)
            }
        };
        let size = response.body().size_hint().exact();
        let response = gzip.apply(response);
        let response = match seat {
            Some(seat) => seat.release_after(response),
            None => response,
        };
        begun.end(&self.0, response, size).await
    }

    /// Signs the claims of a token that a Secret holds, with the key of service account tokens.
    pub fn sign_secret_token(&self, claims: &serde_json::Value) -> Option<String> {
        self.0.authenticator.accounts.sign_claims(claims)
    }

    /// Returns when all earlier audit events are written.
    pub async fn flush(&self) {
        if let Some(auditor) = &self.0.audit {
            auditor.flush().await;
        }
    }

    /// Ends watches, so that connections can close.
    pub fn drain(&self) {
        self.0.draining.set(true);
    }
}

impl<B> tower_service::Service<Request<B>> for Server
where
    B: http_body::Body + Send + 'static,
    B::Data: Send,
    B::Error: std::error::Error + Send + Sync + 'static,
{
    type Response = Response<Body>;
    type Error = std::convert::Infallible;
    type Future = futures::future::BoxFuture<'static, Result<Self::Response, Self::Error>>;

    fn poll_ready(&mut self, _: &mut std::task::Context<'_>) -> std::task::Poll<Result<(), Self::Error>> {
        std::task::Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let server = self.clone();
        Box::pin(async move { Ok(server.handle(request).await) })
    }
}

/// The version of Kubernetes that is served.
pub fn version() -> &'static str {
    discovery::GIT_VERSION
}

/// Watches without a timeout end between one and two of these.
// Kubernetes: --min-request-timeout.
pub(crate) const MIN_WATCH_TIMEOUT: Duration = Duration::from_secs(1800);
