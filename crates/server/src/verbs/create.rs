//! A create, top to bottom.

use super::{Call, read};
use crate::{
    answer::{self, Body},
    convert, input,
    write::{self, Outcome, Record, Right},
};
use api::{go, kind::GroupResource, object, status::Status};
use bytes::Bytes;
use http::{Response, StatusCode};
use serde_json::Value;

/// How often another suffix is tried when a generated name is taken.
// Kubernetes: as often as the real server does.
const NAME_ATTEMPTS: usize = 8;

pub(crate) async fn create(call: &Call, body: Bytes) -> Result<Response<Body>, Status> {
    match call.target.subresource.as_str() {
        "" => {}
        "binding" => return Box::pin(super::bind::bind(call, body)).await,
        "eviction" => return Box::pin(super::evict::evict(call, body)).await,
        "token" => return Box::pin(super::token::request(call, body)).await,
        other => return Err(Status::method_not_supported(&call.resource(), other)),
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
    make(call, draft, Right::Held).await
}

/// Makes an object of what a client sent.
pub(super) async fn make(call: &Call, draft: Value, right: Right) -> Result<Response<Body>, Status> {
    // Kubernetes: it is the storage that minds, after all others, and a dry run does not get there.
    let version = go::parse_uint(object::resource_version(&draft));
    let is_versioned = !call.options.is_dry_run() && version.is_ok_and(|version| version > 0);
    let mut draft = write::admit_new(call, draft, Record::Now).await?;
    let mut attempts = 0;
    loop {
        // There is another attempt only with another name.
        let mut named = match write::wants_name(&draft) {
            true => draft.clone(),
            false => draft.take(),
        };
        let generated = write::take_name(call, &mut named);
        let (name, prefix) = (object::name(&named).to_owned(), object::generate_name(&named).to_owned());
        let checked = write::prepare_new(call, named, right).await?;
        if is_versioned {
            return Err(Status::unclassified("resourceVersion should not be set on objects to be created"));
        }
        match write::create(call, checked).await? {
            Outcome::Done(stored) => return answer::object(call, StatusCode::CREATED, &stored).await,
            Outcome::Lost if generated && attempts < NAME_ATTEMPTS => attempts += 1,
            Outcome::Lost => return Err(taken(call, &name, &prefix).await),
        }
    }
}

/// Why a name is taken: perhaps only for as long as its holder is going.
async fn taken(call: &Call, name: &str, prefix: &str) -> Status {
    let mut status = match prefix {
        "" => Status::already_exists(&call.resource(), name),
        // Kubernetes: beside a prefix, a name that was given is taken for one that was generated.
        _ => {
            let resource = GroupResource { group: call.served.kept_kind().group, ..call.resource() };
            Status::generate_name_conflict(&resource, name, 1)
        }
    };
    let holder = read::find(call, name).await;
    if holder.is_ok_and(|holder| holder.is_deleting()) {
        status.message.insert_str(0, "object is being deleted: ");
    }
    status
}

/// The latest state of the object that the URL names, in the version of the request.
pub(super) async fn current(call: &Call) -> Result<(crate::stored::Stored, Value), Status> {
    let stored = read::find(call, &call.target.name).await?;
    let value = in_version(call, &stored).await?;
    Ok((stored, value))
}

/// An object at rest in the version of the request, in the form in which states are compared.
pub(crate) async fn in_version(call: &Call, stored: &crate::stored::Stored) -> Result<Value, Status> {
    let mut value = convert::one_in_version(&call.inner, &call.served, stored.value()?).await?;
    call.served.normalize(&mut value);
    Ok(value)
}
