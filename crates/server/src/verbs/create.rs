//! Create, in the order of its stages.

use crate::{
    answer::{self, Body},
    call::Call,
    input, lookup,
    refusal::Refusal,
    write::{self, CreateRight, DraftState, Outcome},
};
use api::{go, kind::GroupResource, object};
use bytes::Bytes;
use http::{Response, StatusCode};
use serde_json::Value;

/// Attempts with other suffixes when a generated name is taken.
// Kubernetes: as often as the real server does.
const NAME_ATTEMPTS: usize = 8;

pub(crate) async fn create(call: &Call, body: Bytes) -> Result<Response<Body>, Refusal> {
    match call.target.subresource.as_str() {
        "" => {}
        "binding" => return Box::pin(super::bind::bind(call, body)).await,
        "eviction" => return Box::pin(super::evict::evict(call, body)).await,
        "token" => return Box::pin(super::token::request(call, body)).await,
        other => return Err(Refusal::method_not_supported(&call.resource(), other)),
    }
    if call.served.is("", "bindings") {
        return Box::pin(super::bind::bind_by_name(call, body)).await;
    }
    if call.served.stored.is_none() {
        return Box::pin(super::review::review(call, body)).await;
    }
    let encoding = input::encoding_for(&call.served, input::media_type(&call.headers))?;
    let decoded = input::body(&call.served, &body, encoding, call.options.validation)?;
    decoded.warnings.into_iter().for_each(|warning| call.warn(warning));
    let mut draft = decoded.value;
    write::check_target(call, &mut draft)?;
    write::forget_system_fields(&mut draft);
    admit_and_store(call, draft, CreateRight::Authorized).await
}

/// Admits and stores an object.
pub(super) async fn admit_and_store(
    call: &Call,
    draft: Value,
    right: CreateRight,
) -> Result<Response<Body>, Refusal> {
    // Kubernetes: the storage layer checks this, after all other stages; a dry run does not reach it.
    let version = go::parse_uint(object::resource_version(&draft));
    let is_versioned = !call.options.is_dry_run() && version.is_ok_and(|version| version > 0);
    let mut draft = write::admit_new(call, draft, DraftState::AsSent).await?;
    let mut attempts = 0;
    loop {
        // Only a generated name is tried again.
        let mut named = match write::wants_name(&draft) {
            true => draft.clone(),
            false => draft.take(),
        };
        let generated = write::take_name(call, &mut named);
        let (name, prefix) = (object::name(&named).to_owned(), object::generate_name(&named).to_owned());
        let checked = write::prepare_new(call, named, right).await?;
        if is_versioned {
            return Err(Refusal::unclassified("resourceVersion should not be set on objects to be created"));
        }
        match write::create(call, checked).await? {
            Outcome::Done(stored) => return answer::object(call, StatusCode::CREATED, &stored).await,
            Outcome::Lost if generated && attempts < NAME_ATTEMPTS => attempts += 1,
            Outcome::Lost => return Err(taken(call, &name, &prefix).await),
        }
    }
}

/// The error for a name that is taken, perhaps by an object that is being deleted.
async fn taken(call: &Call, name: &str, prefix: &str) -> Refusal {
    let refusal = match prefix {
        "" => Refusal::already_exists(&call.resource(), name),
        // Kubernetes: with a generateName, the given name is reported as generated.
        _ => {
            let resource = GroupResource { group: call.served.kept_kind().group, ..call.resource() };
            Refusal::generate_name_conflict(&resource, name, 1)
        }
    };
    let holder = lookup::of_call(call, name).await;
    match holder.is_ok_and(|holder| holder.is_some_and(|holder| holder.is_deleting())) {
        true => refusal.with_prefix("object is being deleted: "),
        false => refusal,
    }
}
