//! `pods/binding` and the older `bindings`: set the node of a pod that has none.

use crate::{
    admission,
    answer::{self, Body},
    call::Call,
    input::{self, ExpectedKind},
    refusal::Refusal,
    stored::Stored,
    write::{self, Change, Checked, Next, OwnPart},
};
use api::{
    field::{Error, ErrorList, Path},
    object,
};
use bytes::Bytes;
use http::Response;
use schema::decode::Decoded;
use serde_json::{Value, json};
use write::check_conditions;

/// `bindings`: the binding has the name of the pod.
pub(super) async fn bind_by_name(call: &Call, body: Bytes) -> Result<Response<Body>, Refusal> {
    let binding = read(call, &body)?.value;
    let name = object::name(&binding);
    if name.is_empty() {
        return Err(Refusal::bad_request("Name parameter required."));
    }
    let pods = call.inner.registry.find("", "v1", "pods").ok_or_else(Refusal::not_served)?;
    let mut pod = call.clone();
    pod.served = std::sync::Arc::clone(pods);
    pod.target.name = name.to_owned();
    bind(&pod, body).await
}

fn read(call: &Call, body: &[u8]) -> Result<Decoded, Refusal> {
    let types = call.types();
    let (of, _) = types.kind("", "v1", "Binding").ok_or_else(Refusal::not_served)?;
    let wanted = ExpectedKind { types, of, group: "", version: "v1", kind: "Binding" };
    let encoding = input::encoding(input::media_type(&call.headers))?;
    Ok(wanted.decode(body, encoding, call.options.validation)?)
}

fn check(call: &Call, binding: &Value) -> Result<(), Refusal> {
    if object::name(binding) != call.target.name {
        return Err(Refusal::bad_request("name in URL does not match name in Binding object"));
    }
    let mut errors = ErrorList::new();
    let path = Path::new("target");
    let kind = binding["target"]["kind"].as_str().unwrap_or_default();
    if !matches!(kind, "" | "Node") {
        errors.push(Error::not_supported(&path.child("kind"), kind, ["Node", "<empty>"]));
    }
    if binding["target"]["name"].as_str().unwrap_or_default().is_empty() {
        errors.push(Error::required(&path.child("name"), ""));
    }
    // Kubernetes: answers with the list of errors as plain text, without a reason.
    errors.into_result().map_err(|errors| Refusal::unclassified(errors.to_string()))
}

/// `pods/binding`.
pub(super) async fn bind(call: &Call, body: Bytes) -> Result<Response<Body>, Refusal> {
    let decoded = read(call, &body)?;
    decoded.warnings.into_iter().for_each(|warning| call.warn(warning));
    let binding = decoded.value;
    let binding = admission::subresource(call, binding, |binding| check(call, binding)).await?;
    write::change(call, &mut Bind { binding }).await?.stored(call)?;
    Ok(answer::done(call))
}

struct Bind {
    binding: Value,
}

impl Change for Bind {
    async fn next(&mut self, call: &Call, _: &Stored, live: Value) -> Result<Next, Refusal> {
        let mut pod = live.clone();
        let (binding, name) = (&self.binding, call.target.name.as_str());
        check_conditions(call, &pod, binding)?;
        let conflict = |cause: String| {
            Refusal::conflict(&api::kind::GroupResource::new("", "pods/binding"), name, cause)
        };
        if object::is_deleting(&pod) {
            return Err(conflict(format!("pod {name} is being deleted, cannot be assigned to a host")));
        }
        if let Some(taken) = pod["spec"]["nodeName"].as_str().filter(|taken| !taken.is_empty()) {
            return Err(conflict(format!("pod {name} is already assigned to node {taken:?}")));
        }
        if pod["spec"]["schedulingGates"].as_array().is_some_and(|gates| !gates.is_empty()) {
            return Err(conflict(format!("pod {name} has non-empty .spec.schedulingGates")));
        }
        pod["spec"]["nodeName"] = binding["target"]["name"].as_str().unwrap_or_default().into();
        // Kubernetes: annotations and labels of the binding are copied to the pod.
        for (key, value) in object::annotations(binding).into_iter().flatten() {
            pod["metadata"]["annotations"][key] = value.clone();
        }
        for (key, value) in object::labels(binding).into_iter().flatten() {
            pod["metadata"]["labels"][key] = value.clone();
        }
        let scheduled = json!({
            "type": "PodScheduled", "status": "True", "lastProbeTime": null,
            "lastTransitionTime": write::now(call).to_string(),
        });
        let conditions = pod["status"]["conditions"].as_array().cloned().unwrap_or_default();
        let others = conditions.into_iter().filter(|condition| condition["type"] != "PodScheduled");
        pod["status"]["conditions"] = others.chain([scheduled]).collect();
        Ok(Next::Write(Checked::by_server(OwnPart::Binding, &live, pod)))
    }
}
