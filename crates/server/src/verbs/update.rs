//! Update and patch: a function of the current object, tried again when somebody else was faster.

use super::{
    Call, bad_options,
    create::{current, warnings},
};
use crate::{
    admission,
    answer::{self, Body},
    input::{
        self, Encoding, Wanted,
        patch::{self, Patch, Patched},
    },
    write::{self, Outcome, Record, scale},
};
use api::{
    field::{Error, ErrorList, Path},
    object,
    status::Status,
};
use bytes::Bytes;
use http::{Response, StatusCode};
use schema::decode::Decoded;
use serde_json::{Value, json};

/// How often a write that names no version is tried again.
const ATTEMPTS: usize = 5;

pub(crate) async fn update(call: &Call, body: Bytes) -> Result<Response<Body>, Status> {
    let encoding = input::encoding(input::media_type(&call.headers))?;
    let validation = call.options.validation;
    if call.target.subresource == "scale" {
        let decoded = scale::wanted().decode(&body, encoding, validation)?;
        return scale::update(call, scale::Change::Replace(&decoded)).await;
    }
    let mut decoded = input::body(&call.served, &body, encoding, validation)?;
    write::check_target(call, &mut decoded.value)?;
    change(call, |_| Ok(decoded.clone())).await
}

pub(crate) async fn patch(call: &Call, body: Bytes) -> Result<Response<Body>, Status> {
    let media_type = input::media_type(&call.headers);
    if media_type == patch::APPLY {
        return super::apply::apply(call, &body).await;
    }
    if call.served.custom().is_some() && media_type == patch::STRATEGIC {
        return Err(Status::unsupported_media_type(&patch::CUSTOM_PATCH_TYPES));
    }
    let patch = Patch::read(media_type, &body, call.options.validation)?;
    if call.options.force {
        let mut errors = ErrorList::new();
        errors.push(Error::forbidden(&Path::new("force"), "may not be specified for non-apply patch"));
        bad_options("PatchOptions", errors)?;
    }
    if call.target.subresource == "scale" {
        return scale::update(call, scale::Change::Patch(&patch)).await;
    }
    let of = call.served.custom().is_none().then(|| (call.served.types(), call.served.of()));
    change(call, |current| {
        let json = call.served.encode(current);
        let decode = |json: &[u8], validation| input::object(&call.served, json, Encoding::Json, validation);
        let mut decoded = patch.apply(&Patched { json: &json, of, decode })?;
        write::check_target(call, &mut decoded.value)?;
        Ok(decoded)
    })
    .await
}

/// Changes the object that the URL names to what `produce` makes of it.
async fn change(
    call: &Call,
    produce: impl Fn(&Value) -> Result<Decoded, Status>,
) -> Result<Response<Body>, Status> {
    for _ in 0..ATTEMPTS {
        let (stored, live) = current(call).await?;
        let Decoded { value: draft, warnings: doubts } = produce(&live)?;
        check_conditions(call, &live, &draft)?;
        write::check_kind(call, &draft)?;
        let unconditional = object::resource_version(&draft).is_empty()
            || call.headers.get("content-type").is_some_and(|kind| kind.as_bytes().ends_with(b"patch+json"));
        let Some(checked) = write::prepare_next(call, &live, draft, Record::Now).await? else {
            let response = answer::object(call, StatusCode::OK, &stored).await?;
            return Ok(answer::with_warnings(response, doubts.iter().map(String::as_str)));
        };
        let warnings = warnings(call, checked.object(), Some(&live));
        let released = write::is_released(call, checked.object());
        let outcome = if released {
            let name = object::name(checked.object()).to_owned();
            match write::remove(call, &name, &stored).await? {
                Outcome::Done(gone) => {
                    let last = write::encode(call, &mut checked.into_object()).await?;
                    Outcome::Done(crate::stored::Stored::new(last, gone.revision))
                }
                lost => lost,
            }
        } else {
            write::replace(call, checked, &stored).await?
        };
        match outcome {
            Outcome::Done(stored) => {
                let response = answer::object(call, StatusCode::OK, &stored).await?;
                return Ok(answer::with_warnings(
                    response,
                    doubts.iter().chain(&warnings).map(String::as_str),
                ));
            }
            Outcome::Lost if unconditional => {}
            Outcome::Lost => break,
        }
    }
    Err(Status::modified(&call.resource(), &call.target.name))
}

/// What a client says it saw must be what stands there.
pub(super) fn check_conditions(call: &Call, live: &Value, draft: &Value) -> Result<(), Status> {
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

/// `pods/binding`: names the node of a pod that has none.
pub(super) async fn bind(call: &Call, body: Bytes) -> Result<Response<Body>, Status> {
    let types = call.types();
    let (of, _) = types.kind("", "v1", "Binding").ok_or_else(super::not_served)?;
    let wanted = Wanted { types, of, group: "", version: "v1", kind: "Binding" };
    let encoding = input::encoding(input::media_type(&call.headers))?;
    let binding = wanted.decode(&body, encoding, call.options.validation)?.value;
    let binding = admission::subresource(call, binding).await?;
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
        // Kubernetes: what the binding says beside goes to the pod; labels only where it has none of that name.
        for (key, value) in object::annotations(&binding).into_iter().flatten() {
            pod["metadata"]["annotations"][key] = value.clone();
        }
        for (key, value) in object::labels(&binding).into_iter().flatten() {
            if object::label(&pod, key).is_none() {
                pod["metadata"]["labels"][key] = value.clone();
            }
        }
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
