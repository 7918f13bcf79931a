//! Calls one webhook: sends the AdmissionReview and checks its response.

use super::configured::Webhook;
use crate::{admission::facts::Facts, refusal::Refusal, served::Served, webhook};
use api::object;
use base64::{Engine, engine::general_purpose::STANDARD};
use serde::Deserialize;
use serde_json::{Value, json};
use std::{collections::BTreeMap, sync::Arc};

/// A patch is hardly longer than an object, and base64 adds a third.
const MAX_ANSWER_BYTES: usize = 8 << 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WebhookKind {
    Mutating,
    Validating,
}

/// The response of a webhook that allows the request.
#[derive(Debug)]
pub(super) struct Reply {
    pub(super) patch: Option<Vec<u8>>,
    /// The object that was sent to it.
    pub(super) shown: Value,
}

#[derive(Debug)]
pub(super) enum WebhookFailure {
    /// The call failed, or its response is invalid.
    Call(String),
    Refused(Refusal),
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ReviewResponse {
    uid: String,
    allowed: bool,
    status: Option<Value>,
    patch: Option<String>,
    patch_type: Option<String>,
    warnings: Option<Vec<String>>,
    audit_annotations: Option<BTreeMap<String, String>>,
}

/// Sends the review to a webhook.
pub(super) async fn call(
    hook: &Webhook,
    facts: &Facts<'_>,
    face: &Arc<Served>,
    object: &Value,
    sort: WebhookKind,
) -> Result<Reply, WebhookFailure> {
    let name = api::go::quote(&hook.name);
    if facts.is_dry_run() && !hook.allows_dry_run {
        let problem = format!("admission webhook {name} does not support dry run");
        return Err(WebhookFailure::Refused(Refusal::bad_request(problem)));
    }
    let known = |version: &&String| matches!(version.as_str(), "v1" | "v1beta1");
    let spoken = hook.review_versions.iter().find(known).ok_or_else(|| {
        let problem = "webhook does not accept known AdmissionReview versions (v1, v1beta1)";
        WebhookFailure::Call(format!("could not create admission objects: {problem}"))
    })?;
    let shown = facts.shown(face, object).await.map_err(WebhookFailure::Refused)?;
    let old = facts.shown(face, facts.old.unwrap_or(&Value::Null)).await.map_err(WebhookFailure::Refused)?;
    let uid = facts.call.inner.world.uid();
    let mut request = facts.request(face, object);
    request.insert("uid".to_owned(), uid.clone().into());
    request.insert("object".to_owned(), shown.clone());
    request.insert("oldObject".to_owned(), old);
    let api_version = format!("admission.k8s.io/{spoken}");
    let review = json!({"kind": "AdmissionReview", "apiVersion": api_version, "request": request});
    let to = webhook::WebhookTarget {
        address: &hook.address,
        ca_bundle: &hook.ca_bundle,
        timeout: hook.timeout,
        max_answer: MAX_ANSWER_BYTES,
    };
    let answer = webhook::call(&facts.call.inner, to, &review).await;
    let answer =
        answer.map_err(|problem| WebhookFailure::Call(format!("failed to call webhook: {problem}")))?;
    let response = check_response(answer, spoken, &uid, sort)
        .map_err(|problem| WebhookFailure::Call(format!("received invalid webhook response: {problem}")))?;
    for (key, value) in response.audit_annotations.iter().flatten() {
        facts.call.trail.note_from_plugin(&hook.name, key, || value.clone());
    }
    response.warnings.iter().flatten().for_each(|warning| facts.call.warn(warning.as_str()));
    if !response.allowed {
        return Err(WebhookFailure::Refused(Refusal::by_webhook(&name, response.status)));
    }
    let patch = match response.patch.filter(|patch| !patch.is_empty()) {
        None => None,
        Some(_) if response.patch_type.as_deref().is_some_and(|sort| sort != "JSONPatch") => {
            let sort = api::go::quote(response.patch_type.as_deref().unwrap_or_default());
            return Err(WebhookFailure::Call(format!("unsupported patch type {sort}")));
        }
        Some(text) => Some(STANDARD.decode(text).map_err(|error| {
            WebhookFailure::Call(format!("failed to call webhook: the patch is no base64: {error}"))
        })?),
    };
    Ok(Reply { patch, shown })
}

/// Checks that the response is for this review.
fn check_response(
    mut answer: Value,
    spoken: &str,
    uid: &str,
    sort: WebhookKind,
) -> Result<ReviewResponse, String> {
    let (version, kind) = (object::api_version(&answer).to_owned(), object::kind(&answer).to_owned());
    let response = answer.get_mut("response").map(Value::take).filter(|it| it.is_object());
    let response = response.ok_or("webhook response was absent")?;
    let mut response = ReviewResponse::deserialize(response).map_err(|error| error.to_string())?;
    if spoken != "v1" {
        // Kubernetes: v1beta1 responses were not checked strictly.
        if sort == WebhookKind::Validating {
            response.patch = None;
        }
        response.patch_type = response.patch.as_ref().map(|_| "JSONPatch".to_owned());
        return Ok(response);
    }
    if response.uid != uid {
        let quote = api::go::quote;
        return Err(format!("expected response.uid={}, got {}", quote(uid), quote(&response.uid)));
    }
    if (version.as_str(), kind.as_str()) != ("admission.k8s.io/v1", "AdmissionReview") {
        let version = if version.contains('/') { version } else { format!("/{version}") };
        return Err(format!(
            "expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got {version}, Kind={kind}"
        ));
    }
    let has_patch = response.patch.as_ref().is_some_and(|patch| !patch.is_empty());
    match (sort, has_patch, response.patch_type.as_deref()) {
        (WebhookKind::Validating, true, _) => {
            Err("validating webhook may not return response.patch".to_owned())
        }
        (WebhookKind::Validating, _, Some(_)) => {
            Err("validating webhook may not return response.patchType".to_owned())
        }
        (_, true, None) => Err("webhook returned response.patch but not response.patchType".to_owned()),
        (_, false, Some(_)) => Err("webhook returned response.patchType but not response.patch".to_owned()),
        (_, _, Some("")) => Err("webhook returned invalid response.patchType of \"\"".to_owned()),
        _ => Ok(response),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn responses_to_other_reviews_are_rejected() {
        let answer = |response: Value| json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response});
        let (mutating, validating) = (WebhookKind::Mutating, WebhookKind::Validating);
        for (answer, sort, problem) in [
            (answer(json!({"uid": "u", "allowed": true})), validating, ""),
            (answer(json!({"uid": "u", "patch": "W10=", "patchType": "JSONPatch"})), mutating, ""),
            (json!({}), validating, "webhook response was absent"),
            (json!([1]), validating, "webhook response was absent"),
            (answer(json!({"uid": "x"})), validating, "expected response.uid=\"u\", got \"x\""),
            (
                json!({"response": {"uid": "u"}}),
                validating,
                "expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got /, Kind=",
            ),
            (
                answer(json!({"uid": "u", "patch": "W10="})),
                mutating,
                "webhook returned response.patch but not response.patchType",
            ),
            (
                answer(json!({"uid": "u", "patchType": "JSONPatch"})),
                mutating,
                "webhook returned response.patchType but not response.patch",
            ),
            (
                answer(json!({"uid": "u", "patch": "W10=", "patchType": "JSONPatch"})),
                validating,
                "validating webhook may not return response.patch",
            ),
        ] {
            let found = check_response(answer, "v1", "u", sort).err().unwrap_or_default();
            assert_eq!(found, problem);
        }
    }
}
