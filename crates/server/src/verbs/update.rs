//! Update and patch: a function of the current object, retried when another writer was faster.

use super::create;
use crate::{
    answer::{self, Body},
    call::Call,
    input::{
        self, Encoding,
        patch::{self, Patch, Patched},
    },
    lookup,
    refusal::Refusal,
    stored::Stored,
    write::{self, Change, CreateRight, DraftState, Next, scale},
};
use api::object;
use bytes::Bytes;
use http::{Response, StatusCode};
use schema::decode::Decoded;
use serde_json::Value;

pub(crate) async fn update(call: &Call, body: Bytes) -> Result<Response<Body>, Refusal> {
    let encoding = input::encoding(input::media_type(&call.headers))?;
    let validation = call.options.validation;
    if call.target.subresource == "scale" {
        let decoded = scale::wanted().decode(&body, encoding, validation)?;
        return scale::update(call, scale::ScaleChange::Replace(&decoded)).await;
    }
    let encoding = input::encoding_for(&call.served, input::media_type(&call.headers))?;
    let mut decoded = input::body(&call.served, &body, encoding, validation)?;
    std::mem::take(&mut decoded.warnings).into_iter().for_each(|warning| call.warn(warning));
    write::check_target(call, &mut decoded.value)?;
    if call.served.strategy().allow_create_on_update && call.target.subresource.is_empty() {
        let is_free = lookup::of_call(call, &call.target.name).await?.is_none();
        if is_free {
            return Box::pin(create_named(call, decoded)).await;
        }
    }
    let uid = Some(object::uid(&decoded.value).to_owned());
    update_to(call, uid, |_| Ok(decoded.clone())).await
}

/// A PUT to a name that does not exist, for kinds that allow it.
async fn create_named(call: &Call, decoded: Decoded) -> Result<Response<Body>, Refusal> {
    let Decoded { value: mut draft, .. } = decoded;
    write::check_uid(call, object::uid(&draft), "")?;
    write::seen_version(&draft)?;
    object::metadata_mut(&mut draft).remove("resourceVersion");
    create::admit_and_store(call, draft, CreateRight::NotYetChecked).await
}

pub(crate) async fn patch(call: &Call, body: Bytes) -> Result<Response<Body>, Refusal> {
    let media_type = input::media_type(&call.headers);
    if media_type == patch::APPLY {
        return super::apply::apply(call, &body).await;
    }
    let patch = Patch::read(media_type, &body, call.options.validation)?;
    if call.target.subresource == "scale" {
        return scale::update(call, scale::ScaleChange::Patch(&patch)).await;
    }
    let of = call.served.custom().is_none().then(|| (call.served.types(), call.served.of()));
    update_to(call, None, |current| {
        let json = call.served.encode(current);
        let decode = |json: &[u8], validation| input::object(&call.served, json, Encoding::Json, validation);
        let mut decoded = patch.apply(&Patched { json: &json, of, decode })?;
        std::mem::take(&mut decoded.warnings).into_iter().for_each(|warning| call.warn(warning));
        write::check_target(call, &mut decoded.value)?;
        Ok(decoded)
    })
    .await
}

/// Replaces the object that the URL names with the result of `produce`.
async fn update_to(
    call: &Call,
    uid: Option<String>,
    produce: impl Fn(&Value) -> Result<Decoded, Refusal> + Send + Sync,
) -> Result<Response<Body>, Refusal> {
    let mut update = Update { uid, produce, is_unconditional: true };
    let stored = write::change(call, &mut update).await?.stored(call)?;
    answer::object(call, StatusCode::OK, &stored).await
}

struct Update<P> {
    /// The UID in the client's body.
    uid: Option<String>,
    produce: P,
    is_unconditional: bool,
}

impl<P: Fn(&Value) -> Result<Decoded, Refusal> + Send + Sync> Change for Update<P> {
    async fn next(&mut self, call: &Call, stored: &Stored, live: Value) -> Result<Next, Refusal> {
        let Decoded { value: draft, warnings } = (self.produce)(&live)?;
        warnings.into_iter().for_each(|warning| call.warn(warning));
        if let Some(uid) = &self.uid {
            write::check_uid(call, uid, object::uid(&live))?;
        }
        write::check_version(call, &live, &draft, write::MissingVersion::AsStrategyAllows)?;
        self.is_unconditional = write::seen_version(&draft)?.is_none()
            || call.headers.get("content-type").is_some_and(|kind| kind.as_bytes().ends_with(b"patch+json"));
        let next = write::prepare_next(call, (stored, &live), draft, DraftState::AsSent).await?;
        Ok(next.map_or(Next::Keep, Next::Write))
    }

    fn is_unconditional(&self) -> bool {
        self.is_unconditional
    }
}
