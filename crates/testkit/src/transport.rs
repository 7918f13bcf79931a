//! Carries requests from clients to the server: records them, and applies faults.

mod pending;
mod watch_body;

use crate::{
    fault::{ConnectionReset, Effect, Faults, Reached, error_response},
    request_info::RequestInfo,
    trace::{EntryId, Recorder},
};
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full, combinators::UnsyncBoxBody};
pub use pending::HeldWatches;
use pending::Pending;
use serde::Deserialize;
use server::{Caller, Server};
use std::{convert::Infallible, sync::Arc, time::Duration};
use store::{Memory, ReadStore};
use world::{Moment, World};

/// The resourceVersion of longer responses is not recorded.
const MAX_READ: usize = 1 << 20;

/// The body of a response; the connection may break.
pub(crate) type Body = UnsyncBoxBody<Bytes, ConnectionReset>;

/// Who sends a request.
#[derive(Clone, Debug)]
pub(crate) enum Credentials {
    /// An authenticated user.
    Of(Caller),
    /// The server authenticates it by its headers.
    InHeaders,
}

impl Credentials {
    /// The name in traces and for faults.
    fn caller(&self) -> &str {
        match self {
            Credentials::Of(caller) => &caller.name,
            Credentials::InHeaders => "",
        }
    }
}

#[derive(Debug)]
pub(crate) struct Transport {
    pub(crate) world: World,
    pub(crate) server: Server,
    pub(crate) store: Arc<Memory>,
    pub(crate) faults: Faults,
    pub(crate) recorder: Recorder,
    pub(crate) pending: Pending,
    started: Moment,
}

impl Transport {
    pub(crate) fn new(world: &World, server: Server, store: Arc<Memory>) -> Transport {
        Transport {
            world: world.clone(),
            server,
            store,
            faults: Faults::default(),
            recorder: Recorder::default(),
            pending: Pending::default(),
            started: world.now(),
        }
    }

    /// A client of an authenticated user.
    pub(crate) fn client(self: &Arc<Transport>, caller: Caller) -> kube::Client {
        let transport = Arc::clone(self);
        let service = tower::service_fn(move |request: Request<kube::client::Body>| {
            let (transport, caller) = (Arc::clone(&transport), caller.clone());
            async move { transport.send(Credentials::Of(caller), request).await }
        });
        kube::Client::new(service, "default")
    }

    pub(crate) fn elapsed(&self) -> Duration {
        self.world.now().since(self.started)
    }

    /// Sends a request to the server, and returns its response.
    pub(crate) async fn send<B>(
        self: Arc<Transport>,
        credentials: Credentials,
        mut request: Request<B>,
    ) -> Result<Response<Body>, ConnectionReset>
    where
        B: http_body::Body<Data: Send, Error: std::error::Error + Send + Sync> + Send + 'static,
    {
        let caller = credentials.caller().to_owned();
        if let Credentials::Of(caller) = credentials {
            request.extensions_mut().insert(caller);
        }
        let info = RequestInfo::of(request.method(), request.uri());
        let path = request.uri().to_string();
        let source = pending::WatchSource::new(&caller, request.uri().path());
        let in_flight = self.pending.start(&info, &source, &path);
        let id = self.recorder.add(self.elapsed(), &caller, &info, path);
        let effects = self.faults.effects_on(&info, &caller);
        if !effects.is_empty() {
            let faults: Vec<String> = effects.iter().map(Effect::to_string).collect();
            self.recorder.update(id, |entry| entry.fault = Some(faults.join(", ")));
        }
        let result = self.with_effects(&info, request, &effects).await;
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

    /// The server's response, or what the effects make of it.
    async fn with_effects<B>(
        &self,
        info: &RequestInfo,
        mut request: Request<B>,
        effects: &[Effect],
    ) -> Result<Response<server::Body>, ConnectionReset>
    where
        B: http_body::Body<Data: Send, Error: std::error::Error + Send + Sync> + Send + 'static,
    {
        let mut is_stale = false;
        for effect in effects {
            match effect {
                Effect::Delay(duration) => self.world.sleep(*duration).await,
                Effect::Refuse { code, reason } => return Ok(error_response(*code, reason, info)),
                Effect::LoseRequest => return Err(ConnectionReset),
                Effect::Stale(revisions) => {
                    let revision = self.revision().await.saturating_sub(*revisions).max(1);
                    *request.uri_mut() = Effect::stale(info, request.uri(), revision);
                    is_stale = true;
                }
                Effect::Hang { is_carried_out: false, reached } => return hang(reached).await,
                Effect::Hang { .. } | Effect::LoseAnswer | Effect::Watch { .. } | Effect::Lag(_) => {}
            }
        }
        let response = self.server.handle(request).await;
        for effect in effects {
            if let Effect::Hang { reached, .. } = effect {
                return hang(reached).await;
            }
        }
        match effects.contains(&Effect::LoseAnswer) {
            true => Err(ConnectionReset),
            false if is_stale && info.verb == "get" => Ok(Effect::only(info, response).await),
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
        // A log may be followed: it must not wait for its end.
        if info.is_watch() || info.resource == "pods/log" {
            return response;
        }
        let (head, body) = response.into_parts();
        let body = body.collect().await.unwrap_or_else(|never: Infallible| match never {}).to_bytes();
        let version = (body.len() <= MAX_READ).then(|| version(&body)).flatten();
        self.recorder.update(id, |entry| entry.resource_version = version);
        Response::from_parts(head, Full::new(body).boxed_unsync())
    }

    pub(crate) async fn revision(&self) -> u64 {
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
