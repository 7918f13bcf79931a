//! Request in, response out: the API pipeline, without sockets.
//!
//! A request travels through the rooms in this order: `request` (what is asked for), `authenticate`
//! (who asks), `authorize` (may they), then a file of `verbs/`, which for writes runs the stages of
//! `write/`; `answer` gives the result the form that the caller wants. `accept` puts it all behind TLS.

pub mod accept;
mod answer;
mod authenticate;
mod authorize;
mod bootstrap;
mod discovery;
mod documents;
mod health;
mod input;
mod negotiate;
mod openapi;
mod registry;
mod request;
mod selection;
mod stored;
mod verbs;
mod write;

pub use answer::Body;
pub use authenticate::{Caller, Token, TokenFile, TokenFileError};
pub use write::{BadRange, ServiceRange};

use api::status::Status;
use authenticate::Authenticator;
use http::{Request, Response};
use negotiate::Form;
use registry::Registry;
use request::{Options, Place, Verb};
use std::{sync::Arc, time::Duration};
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
    authenticator: Authenticator,
    pub(crate) service_range: ServiceRange,
    /// Closed when the server drains: watches end.
    pub(crate) draining: tokio::sync::watch::Sender<bool>,
}

/// What a server is started with.
#[derive(Debug, Default)]
pub struct Config {
    pub tokens: Vec<Token>,
    /// Where services get their addresses from.
    pub service_range: ServiceRange,
}

impl Server {
    /// A server on `store`; a new store gets the objects of a new cluster.
    pub async fn start(world: &World, store: Arc<dyn Store>, config: Config) -> Result<Server, store::Error> {
        let inner = Inner {
            world: world.clone(),
            store,
            registry: Registry::built_in(),
            authenticator: Authenticator::new(config.tokens),
            service_range: config.service_range,
            draining: tokio::sync::watch::Sender::new(false),
        };
        bootstrap::bootstrap(&inner).await?;
        Ok(Server(Arc::new(inner)))
    }

    /// Answers one request. A [`Caller`] among its extensions was authenticated by the transport.
    pub async fn handle<B>(&self, request: Request<B>) -> Response<Body>
    where
        B: http_body::Body + Send + 'static,
        B::Data: Send,
        B::Error: std::error::Error + Send + Sync + 'static,
    {
        let form = Form::for_errors(request.headers());
        match self.0.answer(request).await {
            Ok(response) => response,
            Err(status) => answer::status(&status, form),
        }
    }

    /// Ends watches, so that connections can close.
    pub fn drain(&self) {
        self.0.draining.send_replace(true);
    }
}

impl Inner {
    async fn answer<B>(self: &Arc<Self>, request: Request<B>) -> Result<Response<Body>, Status>
    where
        B: http_body::Body + Send + 'static,
        B::Data: Send,
        B::Error: std::error::Error + Send + Sync + 'static,
    {
        let (head, body) = request.into_parts();
        let path = head.uri.path();
        let place = request::parse(path).ok_or_else(|| Status::bad_request("the URL is not well-formed"))?;
        let options = Options::parse(head.uri.query().unwrap_or_default())?;
        let caller = self.authenticator.authenticate(&head)?;
        let target = match place {
            Place::Other(path) => {
                authorize::path(&caller, head.method.as_str(), &path)?;
                return health::answer(self, &path, &head, &options);
            }
            Place::Resource(target) => target,
        };
        let verb = target.verb(&head.method, options.watch);
        let verb = verb.ok_or_else(verbs::method_not_allowed)?;
        let permit = authorize::resource(&caller, verb, &target)?;
        let call = verbs::Call::new(self, permit, verb, target, options, head)?;
        let resource = call.served.resource;
        let deprecation = kinds::validate::deprecation(resource.group, resource.version, resource.kind);
        let response = match verb {
            Verb::Get => verbs::read::get(&call).await,
            Verb::List => verbs::read::list(&call).await,
            Verb::Watch => verbs::watch::watch(&call).await,
            Verb::Create => verbs::create::create(&call, input::read(body).await?).await,
            Verb::Update => verbs::update::update(&call, input::read(body).await?).await,
            Verb::Patch => verbs::update::patch(&call, input::read(body).await?).await,
            Verb::Delete => verbs::delete::delete(&call, input::read(body).await?).await,
            Verb::DeleteCollection => verbs::delete::delete_collection(&call, input::read(body).await?).await,
        };
        response.map(|response| answer::with_warnings(response, deprecation))
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
