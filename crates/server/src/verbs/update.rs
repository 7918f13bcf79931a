//! Update and patch: a function of the current object, tried again when somebody else was faster.

use super::{Call, create, read};
use crate::{
    answer::{self, Body},
    input::{
        self, Encoding,
        patch::{self, Patch, Patched},
    },
    stored::Stored,
    write::{self, Change, Next, Record, Right, scale},
};
use api::{
    field::{Error, ErrorList, Path},
    go,
    kind::GroupKind,
    object,
    status::Status,
};
use bytes::Bytes;
use http::{Response, StatusCode};
use schema::decode::Decoded;
use serde_json::Value;

pub(crate) async fn update(call: &Call, body: Bytes) -> Result<Response<Body>, Status> {
    let encoding = input::encoding(input::media_type(&call.headers))?;
    let validation = call.options.validation;
    if call.target.subresource == "scale" {
        let decoded = scale::wanted().decode(&body, encoding, validation)?;
        return scale::update(call, scale::Change::Replace(&decoded)).await;
    }
    let encoding = input::encoding_for(&call.served, input::media_type(&call.headers))?;
    let mut decoded = input::body(&call.served, &body, encoding, validation)?;
    std::mem::take(&mut decoded.warnings).into_iter().for_each(|warning| call.warn(warning));
    write::check_target(call, &mut decoded.value)?;
    if call.served.strategy().allow_create_on_update && call.target.subresource.is_empty() {
        let is_free = read::look_up(call, &call.target.name).await?.is_none();
        if is_free {
            return Box::pin(create_named(call, decoded)).await;
        }
    }
    let uid = Some(object::uid(&decoded.value).to_owned());
    update_to(call, uid, |_| Ok(decoded.clone())).await
}

/// A put to a name that is free, of a kind whose objects it may create.
async fn create_named(call: &Call, decoded: Decoded) -> Result<Response<Body>, Status> {
    let Decoded { value: mut draft, .. } = decoded;
    check_uid(call, object::uid(&draft), "")?;
    seen_version(&draft)?;
    object::metadata_mut(&mut draft).remove("resourceVersion");
    create::make(call, draft, Right::ToBeAskedFor).await
}

pub(crate) async fn patch(call: &Call, body: Bytes) -> Result<Response<Body>, Status> {
    let media_type = input::media_type(&call.headers);
    if media_type == patch::APPLY {
        return super::apply::apply(call, &body).await;
    }
    let patch = Patch::read(media_type, &body, call.options.validation)?;
    if call.target.subresource == "scale" {
        return scale::update(call, scale::Change::Patch(&patch)).await;
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

/// Changes the object that the URL names to what `produce` makes of it.
async fn update_to(
    call: &Call,
    uid: Option<String>,
    produce: impl Fn(&Value) -> Result<Decoded, Status> + Send + Sync,
) -> Result<Response<Body>, Status> {
    let mut update = Update { uid, produce, is_unconditional: true };
    let stored = write::change(call, &mut update).await?.stored(call)?;
    answer::object(call, StatusCode::OK, &stored).await
}

struct Update<P> {
    /// The one that the client says the object has.
    uid: Option<String>,
    produce: P,
    is_unconditional: bool,
}

impl<P: Fn(&Value) -> Result<Decoded, Status> + Send + Sync> Change for Update<P> {
    async fn next(&mut self, call: &Call, stored: &Stored, live: Value) -> Result<Next, Status> {
        let Decoded { value: draft, warnings } = (self.produce)(&live)?;
        warnings.into_iter().for_each(|warning| call.warn(warning));
        if let Some(uid) = &self.uid {
            check_uid(call, uid, object::uid(&live))?;
        }
        check_version(call, &live, &draft, Absent::AsStrategySays)?;
        self.is_unconditional = seen_version(&draft)?.is_none()
            || call.headers.get("content-type").is_some_and(|kind| kind.as_bytes().ends_with(b"patch+json"));
        let next = write::prepare_next(call, (stored, &live), draft, Record::Now).await?;
        Ok(next.map_or(Next::Keep, Next::Write))
    }

    fn is_unconditional(&self) -> bool {
        self.is_unconditional
    }
}

/// What it means that a client does not say which version it saw.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Absent {
    Any,
    /// Some kinds want to be told.
    AsStrategySays,
}

/// What a client says it saw must be what stands there.
pub(super) fn check_conditions(call: &Call, live: &Value, draft: &Value) -> Result<(), Status> {
    check_uid(call, object::uid(draft), object::uid(live))?;
    check_version(call, live, draft, Absent::Any)
}

pub(crate) fn check_uid(call: &Call, wanted: &str, found: &str) -> Result<(), Status> {
    if wanted.is_empty() || wanted == found {
        return Ok(());
    }
    let name = call.target.name.as_str();
    let key = call.served.key(&call.target.namespace, name);
    // Kubernetes: the storage's own words; a dry run does not get as far as the prefix of all keys.
    let key = key.strip_prefix("/registry").filter(|_| call.options.is_dry_run()).unwrap_or(&key);
    let cause = format!(
        "StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0, AdditionalErrorMsg: \
         Precondition failed: UID in precondition: {wanted}, UID in object meta: {found}"
    );
    Err(Status::conflict(&call.resource(), name, cause))
}

pub(super) fn check_version(call: &Call, live: &Value, draft: &Value, absent: Absent) -> Result<(), Status> {
    let (name, wanted) = (call.target.name.as_str(), seen_version(draft)?);
    if wanted.is_none() {
        if absent == Absent::Any || call.served.strategy().allow_unconditional_update {
            return Ok(());
        }
        let path = Path::new("metadata.resourceVersion");
        let mut errors = ErrorList::new();
        errors.push(Error::invalid(&path, 0, "must be specified for an update"));
        // Kubernetes: it names the resource where the kind should be.
        let resource = call.resource();
        return Err(Status::invalid(&GroupKind::new(resource.group, resource.resource), name, &errors));
    }
    if wanted != seen_version(live)? {
        return Err(Status::modified(&call.resource(), name));
    }
    Ok(())
}

/// The version that a client says it saw. Kubernetes: zero is none.
pub(super) fn seen_version(object: &Value) -> Result<Option<u64>, Status> {
    match object::resource_version(object) {
        "" => Ok(None),
        text => go::parse_uint(text).map(|it| (it > 0).then_some(it)).map_err(Status::unclassified),
    }
}
