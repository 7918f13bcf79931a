//! The way between clients and server: where requests are noted, held up and lost.

mod pending;
mod told;

use crate::{
    asked::Asked,
    fault::{Effect, Faults, Lost, refusal},
    trace::{Noted, Recorder},
};
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full, combinators::UnsyncBoxBody};
pub use pending::Held;
use pending::Pending;
use serde::Deserialize;
use server::{Caller, Server};
use std::{convert::Infallible, sync::Arc, time::Duration};
use store::{Memory, ReadStore};
use world::{Moment, World};

/// Longer answers are not searched for a version.
const MAX_READ: usize = 1 << 20;

/// What a client gets: it may end in the middle.
pub(crate) type Body = UnsyncBoxBody<Bytes, Lost>;

#[derive(Debug)]
pub(crate) struct Wire {
    pub(crate) world: World,
    pub(crate) server: Server,
    pub(crate) store: Arc<Memory>,
    pub(crate) faults: Faults,
    pub(crate) recorder: Recorder,
    pub(crate) pending: Pending,
    started: Moment,
}

impl Wire {
    pub(crate) fn new(world: &World, server: Server, store: Arc<Memory>) -> Wire {
        Wire {
            world: world.clone(),
            server,
            store,
            faults: Faults::default(),
            recorder: Recorder::default(),
            pending: Pending::default(),
            started: world.now(),
        }
    }

    /// A client of somebody whose identity is proved.
    pub(crate) fn client(self: &Arc<Wire>, caller: Caller) -> kube::Client {
        let wire = Arc::clone(self);
        let service = tower::service_fn(move |request: Request<kube::client::Body>| {
            let (wire, caller) = (Arc::clone(&wire), caller.clone());
            async move { wire.carry(caller, request).await }
        });
        kube::Client::new(service, "default")
    }

    pub(crate) fn elapsed(&self) -> Duration {
        self.world.now().since(self.started)
    }

    /// Takes a request to the server and its answer back.
    async fn carry(
        self: Arc<Wire>,
        caller: Caller,
        request: Request<kube::client::Body>,
    ) -> Result<Response<Body>, Lost> {
        let asked = Asked::of(request.method(), request.uri());
        let path = request.uri().to_string();
        let place = pending::Place::new(&caller.name, request.uri().path());
        let under_way = self.pending.begin(&asked, &place, &path);
        let noted = self.recorder.note(self.elapsed(), &caller.name, &asked, path);
        let effects = self.faults.striking(&asked, &caller.name);
        if !effects.is_empty() {
            let told: Vec<String> = effects.iter().map(Effect::to_string).collect();
            self.recorder.amend(noted, |entry| entry.fault = Some(told.join(", ")));
        }
        let result = self.struck(caller, &asked, request, &effects).await;
        if result.is_err() && asked.is_watch() {
            self.pending.owe(&self.world, &place);
        }
        let response = self.tell(noted, &asked, result?).await;
        drop(under_way);
        match asked.is_watch() && response.status().is_success() {
            true => Ok(told::follow(&self, &asked, place, &effects, response)),
            false => Ok(response.map(|body| body.map_err(|never| match never {}).boxed_unsync())),
        }
    }

    /// The server's answer, or what the effects make of it.
    async fn struck(
        &self,
        caller: Caller,
        asked: &Asked,
        mut request: Request<kube::client::Body>,
        effects: &[Effect],
    ) -> Result<Response<server::Body>, Lost> {
        let mut is_stale = false;
        for effect in effects {
            match effect {
                Effect::Delay(duration) => self.world.sleep(*duration).await,
                Effect::Refuse { code, reason } => return Ok(refusal(*code, reason, asked)),
                Effect::LoseRequest => return Err(Lost),
                Effect::Stale(revisions) => {
                    let revision = self.revision().await.saturating_sub(*revisions).max(1);
                    *request.uri_mut() = Effect::stale(asked, request.uri(), revision);
                    is_stale = true;
                }
                Effect::LoseAnswer | Effect::Watch { .. } | Effect::Lag(_) => {}
            }
        }
        request.extensions_mut().insert(caller);
        let response = self.server.handle(request).await;
        match effects.contains(&Effect::LoseAnswer) {
            true => Err(Lost),
            false if is_stale && asked.verb == "get" => Ok(Effect::only(asked, response).await),
            false => Ok(response),
        }
    }

    /// Notes the answer.
    async fn tell(
        &self,
        noted: Noted,
        asked: &Asked,
        response: Response<server::Body>,
    ) -> Response<server::Body> {
        let code = response.status().as_u16();
        self.recorder.amend(noted, |entry| entry.code = Some(code));
        if asked.is_watch() {
            return response;
        }
        let (head, body) = response.into_parts();
        let body = body.collect().await.unwrap_or_else(|never: Infallible| match never {}).to_bytes();
        let version = (body.len() <= MAX_READ).then(|| version(&body)).flatten();
        self.recorder.amend(noted, |entry| entry.resource_version = version);
        Response::from_parts(head, Full::new(body).boxed_unsync())
    }

    pub(crate) async fn revision(&self) -> u64 {
        self.store.revision().await.expect("a store in memory has no way to fail").0
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
