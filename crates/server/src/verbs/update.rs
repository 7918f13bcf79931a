//! Update and patch: a function of the current object, tried again when somebody else was faster.

use super::{
    Call, bad_options, bare,
    create::{current, warnings},
};
use crate::{
    answer::{self, Body},
    input::{self, Wanted},
    write::{self, Outcome, Record, scale},
};
use api::{
    field::{Error, ErrorList, Path},
    kind::GroupKind,
    object,
    status::Status,
};
use bytes::Bytes;
use http::{Response, StatusCode};
use schema::{
    decode::{self, FieldValidation},
    patch::{
        PatchError,
        json::{JsonPatch, Reading},
        merge, strategic,
    },
    yaml,
};
use serde_json::{Value, json};

/// How often a write that names no version is tried again.
const ATTEMPTS: usize = 5;

pub(crate) async fn update(call: &Call<'_>, body: Bytes) -> Result<Response<Body>, Status> {
    let encoding = input::encoding(input::media_type(&call.headers))?;
    if call.target.subresource == "scale" {
        let decoded = scale::wanted(call).decode(&body, encoding, call.options.validation)?;
        return scale::update(call, |_| Ok(decoded.value.clone())).await;
    }
    let wanted = Wanted::object(call.types(), call.served);
    let decoded = wanted.decode(&body, encoding, call.options.validation)?;
    let mut draft = decoded.value;
    write::check_target(call, &mut draft)?;
    let response = change(call, |_| Ok(draft.clone())).await?;
    Ok(answer::with_warnings(response, decoded.warnings.iter().map(String::as_str)))
}

pub(crate) async fn patch(call: &Call<'_>, body: Bytes) -> Result<Response<Body>, Status> {
    if input::media_type(&call.headers) == APPLY && call.target.subresource != "scale" {
        return super::apply::apply(call, &body).await;
    }
    let patch = Patch::read(call, &body)?;
    if call.target.subresource == "scale" {
        let wanted = scale::wanted(call);
        return scale::update(call, |scale| patch.apply(call, wanted.of, scale)).await;
    }
    let mut response = change(call, |current| {
        let patched = patch.apply(call, call.served.of, current)?;
        let json = serde_json::to_vec(&patched).map_err(Status::internal_error)?;
        let wanted = Wanted::object(call.types(), call.served);
        let decoded = wanted.decode(&json, input::Encoding::Json, call.options.validation);
        let mut decoded = decoded.map_err(|error| unreadable(&json, &error))?;
        write::check_target(call, &mut decoded.value)?;
        Ok(decoded.value)
    })
    .await?;
    response = answer::with_warnings(response, patch.warnings().iter().map(String::as_str));
    Ok(response)
}

/// Changes the object that the URL names to what `produce` makes of it.
async fn change(
    call: &Call<'_>,
    produce: impl Fn(&Value) -> Result<Value, Status>,
) -> Result<Response<Body>, Status> {
    for _ in 0..ATTEMPTS {
        let (stored, live) = current(call).await?;
        let draft = produce(&live)?;
        check_conditions(call, &live, &draft)?;
        let unconditional = object::resource_version(&draft).is_empty()
            || call.headers.get("content-type").is_some_and(|kind| kind.as_bytes().ends_with(b"patch+json"));
        let Some(checked) = write::prepare_next(call, &live, draft, Record::Now)? else {
            return Ok(answer::object(call, StatusCode::OK, &stored));
        };
        let warnings = warnings(call, checked.object(), Some(&live));
        let released = write::is_released(call, checked.object());
        let outcome = if released {
            let name = object::name(checked.object()).to_owned();
            match write::remove(call, &name, &stored).await? {
                Outcome::Done(gone) => Outcome::Done(crate::stored::Stored::new(
                    crate::stored::at_rest(call.types(), call.served.of, checked.object()),
                    gone.revision,
                )),
                lost => lost,
            }
        } else {
            write::replace(call, checked, &stored).await?
        };
        match outcome {
            Outcome::Done(stored) => {
                let response = answer::object(call, StatusCode::OK, &stored);
                return Ok(answer::with_warnings(response, warnings.iter().map(String::as_str)));
            }
            Outcome::Lost if unconditional => {}
            Outcome::Lost => break,
        }
    }
    Err(Status::modified(&call.resource(), &call.target.name))
}

/// What a patch has made is no object of the kind any more.
fn unreadable(patched: &[u8], error: &Status) -> Status {
    let mut errors = ErrorList::new();
    let detail = error.message.split_once(": ").map_or(error.message.as_str(), |(_, detail)| detail);
    errors.push(Error::invalid(&Path::new("patch"), &*String::from_utf8_lossy(patched), detail));
    Status::invalid(&GroupKind::new("", ""), "", &errors)
}

/// What a client says it saw must be what stands there.
pub(super) fn check_conditions(call: &Call<'_>, live: &Value, draft: &Value) -> Result<(), Status> {
    let (name, wanted, found) = (call.target.name.as_str(), object::uid(draft), object::uid(live));
    if !wanted.is_empty() && wanted != found {
        let key = call.served.key(&call.target.namespace, name);
        // Kubernetes: the storage's own words.
        let cause = format!(
            "StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0, AdditionalErrorMsg: \
             Precondition failed: UID in precondition: {wanted}, UID in object meta: {found}"
        );
        return Err(Status::conflict(&call.resource(), name, cause));
    }
    let wanted = object::resource_version(draft);
    if !wanted.is_empty() && wanted.parse::<u64>().is_err() {
        let text = api::go::quote(wanted);
        return Err(Status::unclassified(format!("strconv.ParseUint: parsing {text}: invalid syntax")));
    }
    if !wanted.is_empty() && wanted != object::resource_version(live) {
        return Err(Status::modified(&call.resource(), &call.target.name));
    }
    Ok(())
}

/// A patch, by its sort.
enum Patch {
    Json(Value),
    Merge(Value),
    Strategic(Value),
}

// Kubernetes: the sorts, in the order in which the real server lists them.
const APPLY: &str = "application/apply-patch+yaml";
const PATCH_TYPES: [&str; 4] = [
    APPLY,
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
];

impl Patch {
    fn read(call: &Call<'_>, body: &[u8]) -> Result<Patch, Status> {
        let media_type = input::media_type(&call.headers);
        if !PATCH_TYPES.contains(&media_type) {
            return Err(bare(415, "415: Unsupported Media Type"));
        }
        if call.options.force && media_type != APPLY {
            let mut errors = ErrorList::new();
            errors.push(Error::forbidden(&Path::new("force"), "may not be specified for non-apply patch"));
            bad_options("PatchOptions", errors)?;
        }
        let bad = |error: decode::DecodeError| Status::bad_request(format!("error decoding patch: {error}"));
        let json = if body.first().is_some_and(|byte| matches!(byte, b'{' | b'[')) {
            body.to_vec()
        } else {
            yaml::to_json(body).map_err(bad)?.json
        };
        let value: Value = match media_type {
            "application/json-patch+json" => serde_json::from_slice(&json)
                .map_err(|error| Status::bad_request(format!("error decoding patch: {error}")))?,
            _ => decode::decode_any(&json, FieldValidation::Ignore).map_err(bad)?.value,
        };
        match media_type {
            "application/json-patch+json" => Ok(Patch::Json(value)),
            "application/merge-patch+json" => Ok(Patch::Merge(value)),
            "application/strategic-merge-patch+json" => Ok(Patch::Strategic(value)),
            _ => Err(Status::unsupported_media_type(&PATCH_TYPES[1..])),
        }
    }

    fn apply(&self, call: &Call<'_>, of: schema::types::TypeId, current: &Value) -> Result<Value, Status> {
        // Kubernetes: what is patched is the JSON that a GET would give.
        let json = schema::encode::encode(call.types(), of, current);
        let document: Value = serde_json::from_slice(&json).map_err(Status::internal_error)?;
        let patched = match self {
            Patch::Json(patch) => {
                let lenient = call.options.validation == FieldValidation::Ignore;
                let reading = if lenient { Reading::Lenient } else { Reading::Checked };
                JsonPatch::decode(patch, reading).and_then(|patch| patch.apply(document))
            }
            Patch::Merge(patch) => merge::apply(document, patch.clone()),
            Patch::Strategic(patch) => strategic::apply(call.types(), of, document, patch.clone()),
        };
        patched.map_err(|error| refuse(&error))
    }

    /// What a careful reader has to say of the patch itself.
    fn warnings(&self) -> Vec<String> {
        match self {
            Patch::Json(patch) => JsonPatch::unknown_members(patch),
            _ => Vec::new(),
        }
    }
}

fn refuse(error: &PatchError) -> Status {
    match error {
        PatchError::Malformed(text) => Status::bad_request(text.clone()),
        // Kubernetes: the text stays with the server.
        PatchError::Unfit(_) => {
            let message = "the server rejected our request due to an error in our request";
            bare(422, message)
        }
        PatchError::TooManyOperations { .. } => {
            let mut status = Status::request_entity_too_large("");
            status.message = error.to_string();
            status
        }
        PatchError::Unexpected(text) => Status::unclassified(text.clone()),
    }
}

/// `pods/binding`: names the node of a pod that has none.
pub(super) async fn bind(call: &Call<'_>, body: Bytes) -> Result<Response<Body>, Status> {
    let types = call.types();
    let (of, _) = types.kind("", "v1", "Binding").ok_or_else(super::not_served)?;
    let wanted = Wanted { types, of, group: "", version: "v1", kind: "Binding" };
    let encoding = input::encoding(input::media_type(&call.headers))?;
    let binding = wanted.decode(&body, encoding, call.options.validation)?.value;
    let node = binding["target"]["name"].as_str().unwrap_or_default().to_owned();
    let name = call.target.name.as_str();
    for _ in 0..ATTEMPTS {
        let (stored, mut pod) = current(call).await?;
        let conflict =
            |cause: String| Status::conflict(&api::kind::GroupResource::new("", "pods/binding"), name, cause);
        if object::is_deleting(&pod) {
            return Err(conflict(format!("pod {name} is being deleted, cannot be assigned to a host")));
        }
        if let Some(taken) = pod["spec"]["nodeName"].as_str().filter(|taken| !taken.is_empty()) {
            return Err(conflict(format!("pod {name} is already assigned to node {taken:?}")));
        }
        pod["spec"]["nodeName"] = node.clone().into();
        let scheduled = json!({
            "type": "PodScheduled", "status": "True", "lastProbeTime": null,
            "lastTransitionTime": write::now(call).to_string(),
        });
        let conditions = pod["status"]["conditions"].as_array().cloned().unwrap_or_default();
        let others = conditions.into_iter().filter(|condition| condition["type"] != "PodScheduled");
        pod["status"]["conditions"] = others.chain([scheduled]).collect();
        if let Outcome::Done(_) = write::replace(call, write::Checked::by_server(pod), &stored).await? {
            let mut status = Status::success();
            status.code = 201;
            return Ok(answer::status(&status, call.form));
        }
    }
    Err(Status::modified(&call.resource(), name))
}
