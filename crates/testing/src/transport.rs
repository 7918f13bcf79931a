//! Carries requests from clients to the server: records them, and applies faults.

mod pending;
mod watch_body;

use crate::{
    fault::{Effect, Faults, Reached, error_response},
    request_info::{RequestInfo, Sender},
    trace::{EntryId, Recorder},
};
use bytes::Bytes;
use http::{HeaderValue, Request, Response, header};
use http_body_util::{BodyExt, Full, combinators::UnsyncBoxBody};
pub(crate) use pending::{Counted, OutsideProgress};
pub use pending::{HeldWatches, Pending};
use pending::{InFlight, WatchSource};
use serde::Deserialize;
use server::{
    Caller, Server,
    accept::{Broken, WebSocketEvents},
};
use std::{convert::Infallible, sync::Arc, time::Duration};
use store::ReadStore;
use tokio::sync::{RwLock, RwLockWriteGuard};
use world::{Moment, World};

/// The resourceVersion of longer responses is not recorded.
const MAX_READ: usize = 1 << 20;

/// The body of a response; the connection may break.
pub type ResponseBody = UnsyncBoxBody<Bytes, Broken>;

/// How the user of a request is known.
#[derive(Clone, Debug)]
pub enum Credentials {
    /// An authenticated user.
    Of(Caller),
    /// The server authenticates it by its headers.
    InHeaders,
    /// A user of another process, authenticated by a front.
    Outside(Arc<Caller>),
    /// Another process that could not be authenticated: the server says why.
    OutsideUnknown,
}

impl Credentials {
    /// The name in traces and for faults.
    fn user(&self) -> &str {
        match self {
            Credentials::Of(caller) => &caller.name,
            Credentials::Outside(caller) => &caller.name,
            Credentials::InHeaders | Credentials::OutsideUnknown => "",
        }
    }

    fn is_outside(&self) -> bool {
        matches!(self, Credentials::Outside(_) | Credentials::OutsideUnknown)
    }
}

#[derive(Debug)]
pub struct Transport {
    pub world: World,
    pub server: Server,
    pub store: Arc<dyn ReadStore>,
    pub faults: Faults,
    pub recorder: Recorder,
    pub pending: Pending,
    /// Requests pass one by one or together; who closes it keeps them out.
    gate: RwLock<()>,
    started: Moment,
}

impl Transport {
    pub fn new(world: &World, server: Server, store: Arc<dyn ReadStore>) -> Transport {
        Transport {
            world: world.clone(),
            server,
            store,
            faults: Faults::default(),
            recorder: Recorder::default(),
            pending: Pending::default(),
            gate: RwLock::default(),
            started: world.now(),
        }
    }

    /// A client of an authenticated user, without a User-Agent.
    pub fn client(self: &Arc<Transport>, caller: Caller) -> kube::Client {
        self.client_of(caller, "")
    }

    /// A client of an authenticated user. `program` is its User-Agent, and so the field manager of what it writes.
    pub fn client_of(self: &Arc<Transport>, caller: Caller, program: &'static str) -> kube::Client {
        let transport = Arc::clone(self);
        let service = tower::service_fn(move |mut request: Request<kube::client::Body>| {
            let (transport, caller) = (Arc::clone(&transport), caller.clone());
            if !program.is_empty() {
                request.headers_mut().insert(header::USER_AGENT, HeaderValue::from_static(program));
            }
            async move { transport.send(Credentials::Of(caller), request).await }
        });
        kube::Client::new(service, "default")
    }

    /// Lets requests under way end, and no other one begin until the result is dropped.
    pub(crate) async fn close(&self) -> RwLockWriteGuard<'_, ()> {
        self.gate.write().await
    }

    /// The time since it was made.
    pub fn elapsed(&self) -> Duration {
        self.world.now().since(self.started)
    }

    /// Sends a request to the server, and returns its response.
    pub async fn send<B>(
        self: Arc<Transport>,
        credentials: Credentials,
        mut request: Request<B>,
    ) -> Result<Response<ResponseBody>, Broken>
    where
        B: http_body::Body<Data: Send, Error: std::error::Error + Send + Sync> + Send + 'static,
    {
        let agent = request.headers().get(header::USER_AGENT).and_then(|value| value.to_str().ok());
        let sender = Sender {
            user: credentials.user().to_owned(),
            agent: agent.unwrap_or_default().to_owned(),
            is_outside: credentials.is_outside(),
        };
        match credentials {
            Credentials::Of(caller) => drop(request.extensions_mut().insert(caller)),
            Credentials::Outside(caller) => drop(request.extensions_mut().insert(caller)),
            Credentials::InHeaders | Credentials::OutsideUnknown => {}
        }
        let info = RequestInfo::of(request.method(), request.uri());
        let path = request.uri().to_string();
        let source = WatchSource::new(&sender, request.uri().path());
        let in_flight = self.pending.start(&info, &source, &path);
        let id = self.recorder.add(self.elapsed(), &sender, &info, path);
        let effects = self.faults.effects_on(&info, &sender);
        if !effects.is_empty() {
            let faults: Vec<String> = effects.iter().map(Effect::to_string).collect();
            self.recorder.update(id, |entry| entry.fault = Some(faults.join(", ")));
        }
        if info.is_watch() && request.headers().contains_key(header::UPGRADE) {
            let events = Arc::clone(&self).web_socket_events(&info, &source, &effects);
            request.extensions_mut().insert(events);
        }
        let result = self.with_effects(&info, request, &effects, &in_flight).await;
        if result.is_err() && info.is_watch() {
            self.pending.expect_back(&self.world, &source);
        }
        let response = self.record(id, &info, result?).await;
        drop(in_flight);
        match info.is_watch() && response.status().is_success() {
            true => Ok(watch_body::wrap(&self, &info, source, &effects, response)),
            false => Ok(response.map(|body| body.map_err(|never| match never {}).boxed_unsync())),
        }
    }

    /// Events over a WebSocket are no body of the response: the server passes them through this.
    fn web_socket_events(
        self: Arc<Transport>,
        info: &RequestInfo,
        source: &WatchSource,
        effects: &[Effect],
    ) -> WebSocketEvents {
        let (info, source, effects) = (info.clone(), source.clone(), effects.to_vec());
        WebSocketEvents::through(move |events| {
            watch_body::wrap(&self, &info, source.clone(), &effects, events)
        })
    }

    /// The server's response, or what the effects make of it.
    async fn with_effects<B>(
        &self,
        info: &RequestInfo,
        mut request: Request<B>,
        effects: &[Effect],
        in_flight: &InFlight,
    ) -> Result<Response<server::Body>, Broken>
    where
        B: http_body::Body<Data: Send, Error: std::error::Error + Send + Sync> + Send + 'static,
    {
        let mut is_stale_get = false;
        for effect in effects {
            match effect {
                Effect::Delay(duration) => {
                    in_flight.wait_for_clock(true);
                    self.world.sleep(*duration).await;
                    in_flight.wait_for_clock(false);
                }
                Effect::Refuse { code, reason } => return Ok(error_response(*code, reason, info)),
                Effect::LoseRequest => return Err(Broken),
                Effect::Stale(revisions) => {
                    let revision = self.revision().await.saturating_sub(*revisions).max(1);
                    if let Some(uri) = Effect::stale(info, request.uri(), revision) {
                        *request.uri_mut() = uri;
                        is_stale_get = info.verb == "get";
                    }
                    if is_stale_get {
                        Effect::accept_list(request.headers_mut());
                    }
                }
                Effect::Hang { is_carried_out: false, reached } => return hang(reached).await,
                Effect::Hang { .. } | Effect::LoseAnswer | Effect::Watch { .. } | Effect::Lag(_) => {}
            }
        }
        let response = {
            let _pass = self.gate.read().await;
            self.server.handle(request).await
        };
        for effect in effects {
            if let Effect::Hang { reached, .. } = effect {
                return hang(reached).await;
            }
        }
        match effects.contains(&Effect::LoseAnswer) {
            true => Err(Broken),
            false if is_stale_get => Ok(Effect::only(info, response).await),
            false => Ok(response),
        }
    }

    /// Records the response.
    async fn record(
        &self,
        id: EntryId,
        info: &RequestInfo,
        response: Response<server::Body>,
    ) -> Response<server::Body> {
        let code = response.status().as_u16();
        self.recorder.update(id, |entry| entry.code = Some(code));
        // They may have no end.
        if info.is_watch() || info.is_connection() {
            return response;
        }
        let (head, body) = response.into_parts();
        let body = body.collect().await.unwrap_or_else(|never: Infallible| match never {}).to_bytes();
        let version = (body.len() <= MAX_READ).then(|| version(&body)).flatten();
        self.recorder.update(id, |entry| entry.resource_version = version);
        Response::from_parts(head, Full::new(body).boxed_unsync())
    }

    pub async fn revision(&self) -> u64 {
        self.store.revision().await.expect("a store in memory does not fail").0
    }
}

/// The resourceVersion of an object or list.
fn version(body: &[u8]) -> Option<u64> {
    #[derive(Deserialize)]
    struct Object {
        metadata: Metadata,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Metadata {
        resource_version: String,
    }
    let object: Object = serde_json::from_slice(body).ok()?;
    object.metadata.resource_version.parse().ok()
}

/// Never returns: the client crashes here.
async fn hang<T>(reached: &Reached) -> T {
    reached.set();
    futures::future::pending().await
}
