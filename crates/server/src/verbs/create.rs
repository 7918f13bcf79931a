//! A create, top to bottom.

use super::{Call, read};
use crate::{
    answer::{self, Body},
    input::{self, Wanted},
    write::{self, Outcome, Record},
};
use api::{
    object,
    status::{Cause, Status},
};
use bytes::Bytes;
use http::{Response, StatusCode};
use serde_json::Value;

/// How often another suffix is tried when a generated name is taken.
// Kubernetes: as often as the real server does.
const NAME_ATTEMPTS: usize = 8;

pub(crate) async fn create(call: &Call<'_>, body: Bytes) -> Result<Response<Body>, Status> {
    match call.target.subresource.as_str() {
        "" => {}
        "binding" => return super::update::bind(call, body).await,
        "eviction" => return super::delete::evict(call, body).await,
        other => return Err(Status::method_not_supported(&call.resource(), other)),
    }
    if call.served.stored.is_none() {
        return Err(Status::method_not_supported(&call.resource(), "create"));
    }
    let encoding = input::encoding(input::media_type(&call.headers))?;
    let wanted = Wanted::object(call.types(), call.served);
    let decoded = wanted.decode(&body, encoding, call.options.validation)?;
    let mut draft = decoded.value;
    write::check_target(call, &mut draft)?;
    if !object::resource_version(&draft).is_empty() {
        return Err(Status::unclassified("resourceVersion should not be set on objects to be created"));
    }
    check_namespace(call, &draft).await?;
    let mut attempts = 0;
    loop {
        let mut named = draft.clone();
        let generated = write::take_name(call, &mut named);
        let name = object::name(&named).to_owned();
        let checked = write::prepare_new(call, named, Record::Now)?;
        let warnings = warnings(call, checked.object(), None);
        match write::create(call, checked).await? {
            Outcome::Done(stored) => {
                let response = answer::object(call, StatusCode::CREATED, &stored);
                return Ok(answer::with_warnings(
                    response,
                    decoded.warnings.iter().chain(&warnings).map(String::as_str),
                ));
            }
            Outcome::Lost if generated && attempts < NAME_ATTEMPTS => attempts += 1,
            Outcome::Lost if generated => {
                return Err(Status::generate_name_conflict(&call.resource(), &name, 1));
            }
            Outcome::Lost => return Err(Status::already_exists(&call.resource(), &name)),
        }
    }
}

pub(super) fn warnings(call: &Call<'_>, new: &Value, old: Option<&Value>) -> Vec<String> {
    let resource = call.served.resource;
    kinds::validate::warnings(resource.group, resource.version, resource.kind, new, old)
}

/// Nothing is created in a namespace that is not there, or that is going away.
pub(super) async fn check_namespace(call: &Call<'_>, draft: &Value) -> Result<(), Status> {
    let name = call.target.namespace.as_str();
    if name.is_empty() {
        return Ok(());
    }
    let Some(namespaces) = call.inner.registry.find("", "v1", "namespaces") else { return Ok(()) };
    let read = call.inner.store.get(namespaces.key("", name).into(), None).await;
    let read = read.map_err(|error| super::store_failed(&error))?;
    let Some(entry) = read.entry else {
        return Err(Status::not_found(&namespaces.group_resource(), name));
    };
    let namespace = crate::stored::Stored::new(entry.value, entry.revision).value();
    if object::is_deleting(&namespace) {
        let cause =
            format!("unable to create new content in namespace {name} because it is being terminated");
        let mut status = Status::forbidden(&call.resource(), object::name(draft), cause);
        status.details.get_or_insert_default().causes.push(Cause {
            reason: "NamespaceTerminating".into(),
            message: format!("namespace {name} is being terminated"),
            field: "metadata.namespace".to_owned(),
        });
        return Err(status);
    }
    Ok(())
}

/// The latest state of the object that the URL names, in the version of the request.
pub(super) async fn current(call: &Call<'_>) -> Result<(crate::stored::Stored, Value), Status> {
    let stored = read::find(call, &call.target.name).await?;
    let value = normal(call, call.served.in_version(stored.value()));
    Ok((stored, value))
}

/// The form in which states are compared.
pub(super) fn normal(call: &Call<'_>, mut value: Value) -> Value {
    schema::encode::normalize(call.types(), call.served.of, &mut value);
    value
}
