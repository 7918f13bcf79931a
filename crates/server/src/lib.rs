//! Request in, response out: the API pipeline, without sockets.
//!
//! A request travels through the rooms in this order: `request` (what is asked for), `authenticate`
//! (who asks), `authorize` (as whom they act), `fair` (is there a seat), `authorize` again (may they), then a file
//! of `verbs/`, which for writes runs the stages of `write/`; `answer` gives the result the form that the caller wants,
//! and `audit` keeps a record of it. `accept` puts it all behind TLS.

pub mod accept;
mod admission;
mod answer;
mod audit;
mod authenticate;
mod authorize;
mod bootstrap;
mod convert;
mod custom;
mod discovery;
mod documents;
mod fair;
mod follow;
mod health;
mod input;
mod live;
mod long_work;
mod lookup;
mod metrics;
mod negotiate;
mod openapi;
mod panics;
mod registry;
mod request;
mod selection;
mod served;
mod stored;
mod verbs;
mod webhook;
mod write;

pub use answer::Body;
pub use audit::{Audit, AuditPolicy, BadAuditPolicy};
pub use authenticate::{Caller, SigningKey, SigningKeyError, Token, TokenFile, TokenFileError};
pub use webhook::{Answer, Exchange, Outbound, Sockets};
pub use write::{BadRange, ServiceRange};

use api::status::Status;
use authenticate::Authenticator;
use authorize::Authorizer;
use http::{Method, Request, Response, request::Parts};
use http_body::Body as _;
use negotiate::Form;
use registry::Registry;
use request::{Options, Place, Verb};
use std::{net::SocketAddr, sync::Arc, time::Duration};
use store::Store;
use world::World;

/// A control plane's API, as a service that any number of callers share.
#[derive(Clone, Debug)]
pub struct Server(Arc<Inner>);

#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) world: World,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) registry: Registry,
    pub(crate) authenticator: Authenticator,
    pub(crate) authorizer: Authorizer,
    pub(crate) fair: fair::Fair,
    pub(crate) admission: admission::Configured,
    pub(crate) service_range: ServiceRange,
    pub(crate) enforces_owner_permissions: bool,
    pub(crate) admits_service_accounts: bool,
    pub(crate) fills_namespaces: bool,
    pub(crate) quotas: admission::resource_quota::Quotas,
    pub(crate) outbound: Arc<dyn Outbound>,
    pub(crate) authority: Option<String>,
    pub(crate) advertised: Option<SocketAddr>,
    pub(crate) metrics: metrics::Metrics,
    pub(crate) workplaces: long_work::Workplaces,
    pub(crate) documents: documents::Documents,
    pub(crate) audit: Option<audit::Auditor>,
    /// Closed when the server drains: watches end.
    pub(crate) draining: tokio::sync::watch::Sender<bool>,
}

/// What a server is started with.
#[derive(Debug)]
pub struct Config {
    pub tokens: Vec<Token>,
    /// Signs service account tokens; a new one where none is given.
    pub signing_key: Option<SigningKey>,
    /// Under which name they are signed; `https://kubernetes.default.svc` where none is given.
    pub issuer: Option<String>,
    /// Where services get their addresses from.
    pub service_range: ServiceRange,
    /// Where the cluster reaches this server: the endpoint of the service `kubernetes`.
    pub advertised: Option<SocketAddr>,
    /// How webhooks are reached.
    pub outbound: Arc<dyn Outbound>,
    /// PEM of who signs this server's certificate: pods trust it.
    pub authority: Option<String>,
    /// Requests that are served at once; others wait for a seat.
    pub seats: u32,
    /// Kubernetes' OwnerReferencesPermissionEnforcement, which is off unless asked for.
    pub enforces_owner_permissions: bool,
    /// Kubernetes' ServiceAccount: pods run as an account of their namespace, and find a token of it.
    pub admits_service_accounts: bool,
    /// Whether creating a namespace also creates its ServiceAccount `default` and its ConfigMap `kube-root-ca.crt`, which
    /// in Kubernetes the controller manager creates.
    pub fills_namespaces: bool,
    /// Who asked for what, for auditors; off unless asked for.
    pub audit: Option<Audit>,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            tokens: Vec::new(),
            signing_key: None,
            issuer: None,
            service_range: ServiceRange::default(),
            advertised: None,
            outbound: Arc::new(Sockets::default()),
            authority: None,
            seats: fair::SEATS,
            enforces_owner_permissions: false,
            admits_service_accounts: true,
            fills_namespaces: true,
            audit: None,
        }
    }
}

/// An answer, and the seat that is given back once it is taken.
type Answered = (Response<Body>, Option<fair::Seat>);

/// A request on its way, with what was read of it so far. In a box, as it is not small and is handed on from room to room.
struct RequestContext {
    begun: world::Moment,
    deadline: fair::Deadline,
    head: Parts,
    place: Place,
    options: Options,
    /// How to tell the caller of an error.
    form: Form,
}

impl Server {
    /// A server on `store`; a new store gets the objects of a new cluster.
    pub async fn start(world: &World, store: Arc<dyn Store>, config: Config) -> Result<Server, store::Error> {
        panics::note_places();
        let inner = Inner {
            world: world.clone(),
            store,
            registry: Registry::built_in(),
            authenticator: Authenticator::new(config.tokens, config.signing_key, config.issuer),
            authorizer: Authorizer::default(),
            fair: fair::Fair::new(world, config.seats),
            admission: admission::Configured::default(),
            service_range: config.service_range,
            enforces_owner_permissions: config.enforces_owner_permissions,
            admits_service_accounts: config.admits_service_accounts,
            fills_namespaces: config.fills_namespaces,
            quotas: admission::resource_quota::Quotas::default(),
            outbound: config.outbound,
            authority: config.authority,
            advertised: config.advertised,
            metrics: metrics::Metrics::default(),
            workplaces: long_work::Workplaces::default(),
            documents: documents::Documents::default(),
            audit: config.audit.map(|audit| audit::Auditor::new(world, audit)),
            draining: tokio::sync::watch::Sender::new(false),
        };
        let is_new = bootstrap::bootstrap(&inner).await?;
        let inner = Arc::new(inner);
        follow::catch_up(&inner).await;
        if !is_new && let Err(status) = fair::ensure(&inner).await {
            tracing::warn!(problem = status.message, "schemas and levels are not as they should be");
        }
        if let Err(status) = fair::settle_all(&inner).await {
            tracing::warn!(problem = status.message, "the status of flow schemas waits");
        }
        let server = Server(inner);
        follow::kubernetes_service::ensure(&server).await;
        Ok(server)
    }

    /// Answers one request. A [`Caller`] among its extensions was authenticated by the transport.
    pub async fn handle<B>(&self, request: Request<B>) -> Response<Body>
    where
        B: http_body::Body + Send + 'static,
        B::Data: Send,
        B::Error: std::error::Error + Send + Sync + 'static,
    {
        let form = Form::for_errors(request.headers());
        let gzip = answer::Gzip::asked_for(request.headers());
        let place = request::parse(request.uri().path());
        let begun = metrics::Begun::new(&self.0, &request, place.as_ref());
        let line = (request.method().clone(), request.uri().clone());
        let (response, seat) = match panics::catch(self.0.answer(request, place, form)).await {
            Ok(Ok(answered)) => answered,
            Ok(Err(status)) => (answer::status(&status, form), None),
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

    /// Ends when what was audited until now is in the log.
    pub async fn flush(&self) {
        if let Some(auditor) = &self.0.audit {
            auditor.flush().await;
        }
    }

    /// Ends watches, so that connections can close.
    pub fn drain(&self) {
        self.0.draining.send_replace(true);
    }
}

impl Inner {
    async fn answer<B>(
        self: &Arc<Self>,
        request: Request<B>,
        place: Option<Place>,
        form: Form,
    ) -> Result<Answered, Status>
    where
        B: http_body::Body + Send + 'static,
        B::Data: Send,
        B::Error: std::error::Error + Send + Sync + 'static,
    {
        let begun = self.world.now();
        let (head, body) = request.into_parts();
        let Some(place) = place else { return Ok((health::unreadable(), None)) };
        let options = Options::parse(head.uri.query().unwrap_or_default());
        let deadline = fair::Deadline::new(&head.method, &place, &options)?;
        let mut context = Box::new(RequestContext { begun, deadline, head, place, options, form });
        let caller = match self.authenticator.authenticate(self, &mut context.head).await {
            Ok(caller) => caller,
            Err(status) => {
                Box::pin(audit::refused(self, &context.head, &context.place, &context.options)).await;
                return Err(status);
            }
        };
        let RequestContext { head, place, options, .. } = &mut *context;
        let record = audit::begin(self, &caller, head, place, options).await;
        let malformed = head.extensions.remove::<authenticate::MalformedBearer>();
        let line = (head.method.clone(), head.uri.clone());
        let trail = audit::Trail::of(head).clone();
        let answered = match panics::catch(self.admit(context, caller, body)).await {
            Ok(answered) => answered,
            Err(panicked) => {
                panicked.log(&line);
                let audited = audit::panicked(record, panics::answer(), &panicked.message);
                return Ok((Box::pin(audited).await, None));
            }
        };
        let (response, seat) = answered.unwrap_or_else(|status| (answer::status(&status, form), None));
        let response =
            answer::with_warnings(response, malformed.iter().map(authenticate::MalformedBearer::text));
        let response = panics::guard(response, line, trail);
        Ok((audit::end(record, response).await, seat))
    }

    /// Finds out as whom the caller acts, waits for a seat, and answers within the deadline.
    async fn admit<B>(
        self: &Arc<Self>,
        mut context: Box<RequestContext>,
        caller: Arc<Caller>,
        body: B,
    ) -> Result<Answered, Status>
    where
        B: http_body::Body + Send + 'static,
        B::Data: Send,
        B::Error: std::error::Error + Send + Sync + 'static,
    {
        let RequestContext { begun, deadline, head, place, options, form } = &mut *context;
        let (begun, deadline, form) = (*begun, *deadline, *form);
        let caller = match authorize::act_as(self, caller, head, place, options).await {
            Ok(caller) => caller,
            Err(status) => return Ok((answer::refused(&status, form), None)),
        };
        let seat = match fair::seat(self, &caller, &head.method, place, options, deadline).await {
            Ok(seat) => seat,
            Err(refusal) => return Ok((refusal, None)),
        };
        // Boxed, so that those who wait for a seat do not carry it.
        let work = Box::pin(self.dispatch(context, caller, body));
        let answered = deadline.keep(&self.world, begun, work).await;
        Ok((answered.unwrap_or_else(|status| answer::status(&status, form)), Some(seat)))
    }

    /// Answers a request that has its seat.
    async fn dispatch<B>(
        self: &Arc<Self>,
        context: Box<RequestContext>,
        caller: Arc<Caller>,
        body: B,
    ) -> Result<Response<Body>, Status>
    where
        B: http_body::Body + Send + 'static,
        B::Data: Send,
        B::Error: std::error::Error + Send + Sync + 'static,
    {
        let RequestContext { head, place, options, form, .. } = &*context;
        let form = *form;
        let target = match place {
            Place::Other(path) => {
                if let Err(status) = authorize::path(self, &caller, head, path).await {
                    return Ok(answer::refused(&status, form));
                }
                return match path.as_str() {
                    "/metrics" => Ok(Box::pin(metrics::answer(self, &head.method)).await),
                    fair::DUMP => Ok(fair::dump(self)),
                    path => Box::pin(health::answer(self, path, head)).await,
                };
            }
            Place::Resource(target) => target,
        };
        let trail = audit::Trail::of(head);
        let verb = target.verb(&head.method, options.watch);
        let permit = match authorize::resource(self, caller, trail, verb, target, options).await {
            Ok(permit) => permit,
            Err(status) => return Ok(answer::refused(&status, form)),
        };
        let request::Target { group, version, resource, .. } = target;
        let served = match self.registry.served(&*self.store, group, version, resource).await? {
            Some(served) if served.is_at(target, verb.unwrap_or(Verb::Get)) => served,
            // Kubernetes: a group that is built in tells what it has not got, others are just not there.
            _ if self.registry.has_group(group) => return Err(verbs::not_served()),
            _ => return Ok(health::nothing_here()),
        };
        // Kubernetes: what is built in does not answer to HEAD.
        let is_answered = |_: &Verb| head.method != Method::HEAD || served.custom().is_some();
        let Some(verb) = verb.filter(is_answered) else { return Err(verbs::no_verb(&served, target)) };
        let deprecation = served.deprecation().map(|text| text.into_owned());
        let call = match verbs::Call::new(self, permit, verb, served, context) {
            Ok(call) => call,
            Err(verbs::Refused::ByRouter(status)) => return Err(status),
            Err(verbs::Refused::ByHandler(status)) => {
                return Ok(answer::with_warnings(answer::status(&status, form), deprecation.as_deref()));
            }
        };
        let response = self.perform(verb, &call, body).await;
        if verb.is_write() && !call.options.is_dry_run() && response.is_ok() {
            follow::after(&call, verb).await;
        }
        let warnings = call.warnings();
        let warnings = deprecation.iter().chain(&warnings).map(String::as_str);
        let response = response.unwrap_or_else(|status| answer::status(&status, form));
        Ok(answer::with_warnings(response, warnings))
    }

    /// Carries out what a call asks for.
    async fn perform<B>(&self, verb: Verb, call: &verbs::Call, body: B) -> Result<Response<Body>, Status>
    where
        B: http_body::Body + Send + 'static,
        B::Data: Send,
        B::Error: std::error::Error + Send + Sync + 'static,
    {
        // A box for each: what is asked for most shall not be as large as the largest.
        match verb {
            _ if verbs::connect::is_meant(&call.served, &call.target) => {
                Box::pin(verbs::connect::connect(call)).await
            }
            Verb::Get => verbs::read::get(call).await,
            Verb::List => Box::pin(verbs::read::list(call)).await,
            Verb::Watch => Box::pin(verbs::watch::watch(call)).await,
            Verb::Create => {
                let body = call.take(body).await?;
                let size = body.len();
                self.workplaces.run(&self.world, size, Box::pin(verbs::create::create(call, body))).await
            }
            Verb::Update => {
                let body = call.take(body).await?;
                let size = body.len();
                self.workplaces.run(&self.world, size, Box::pin(verbs::update::update(call, body))).await
            }
            Verb::Patch => {
                let body = call.take(body).await?;
                let size = body.len();
                self.workplaces.run(&self.world, size, Box::pin(verbs::update::patch(call, body))).await
            }
            Verb::Delete => Box::pin(verbs::delete::delete(call, call.take(body).await?)).await,
            Verb::DeleteCollection => {
                Box::pin(verbs::delete::delete_collection(call, call.take(body).await?)).await
            }
        }
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

/// Watches that name no timeout end by themselves between one and two of these.
// Kubernetes: --min-request-timeout.
pub(crate) const MIN_WATCH_TIMEOUT: Duration = Duration::from_secs(1800);
