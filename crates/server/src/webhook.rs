//! Calls to webhooks: sends a review, returns the answer.
//!
//! | file | content |
//! |---|---|
//! | `address` | a service or a URL → host and port, and server name |
//! | `client` | one HTTPS POST with a deadline and a limit, over pooled connections |
//! | `trust` | verifies the webhook's certificate |
//! | `conversion` | objects of a custom resource from one version to another |

mod address;
mod client;
mod conversion;
mod trust;

pub(crate) use client::root as root_cause;
pub use client::{Answer, Exchange, Outbound, Sockets};
pub(crate) use conversion::convert;
pub(crate) use trust::Trust;

use crate::Inner;
use address::Destination;
use api::object;
use base64::{Engine, engine::general_purpose::STANDARD};
use bytes::Bytes;
use kinds::definition::WebhookAddress;
use schema::{decode, yaml};
use serde_json::Value;
use std::{borrow::Cow, time::Duration};

/// How much of an answer that is not a review is quoted in the error.
const MAX_QUOTED_BYTES: usize = 2048;
/// Kubernetes: the source location in the error text of its decoder.
const SCHEME: &str = "k8s.io/apiserver/pkg/util/webhook/client.go:71";

/// The address of a webhook and the CA of its certificate.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WebhookTarget<'a> {
    pub(crate) address: &'a WebhookAddress,
    /// PEM in base64; empty trusts the system's CAs.
    pub(crate) ca_bundle: &'a str,
    pub(crate) timeout: Duration,
    /// A longer answer is an error.
    pub(crate) max_answer: usize,
}

/// Sends a review and returns the answer. The error text is for users.
pub(crate) async fn call(inner: &Inner, hook: WebhookTarget<'_>, review: &Value) -> Result<Value, String> {
    let url = address::url(hook.address, hook.timeout);
    let with_url = |problem: String| format!("Post {}: {problem}", api::go::quote(&url));
    let destination = Destination::find(inner, hook.address).await.map_err(with_url)?;
    let authorities = match hook.ca_bundle.trim() {
        "" => Bytes::new(),
        text => STANDARD
            .decode(text)
            .map_err(|_| "unable to load root certificates: no base64".to_owned())?
            .into(),
    };
    let exchange = Exchange {
        url: url.clone(),
        connect: destination.connect,
        server_name: destination.server_name,
        authorities,
        body: serde_json::to_vec(review).map_err(|error| error.to_string())?.into(),
        max_answer: hook.max_answer,
    };
    let answer = inner.world.timeout(hook.timeout, inner.outbound.post(exchange)).await;
    let answer = answer.map_err(|_| with_url("context deadline exceeded".to_owned()))?.map_err(with_url)?;
    match answer.status {
        200..300 => reviewed(&answer, review),
        // Kubernetes: its client's error for another status code.
        _ => Err(refusal(&answer)),
    }
}

/// Decodes the answer, which must have the kind that was sent.
// Kubernetes: its client's error texts; an answer without kind is checked later.
fn reviewed(answer: &Answer, sent: &Value) -> Result<Value, String> {
    if answer.body.is_empty() {
        let (code, content_type) = (answer.status, &answer.content_type);
        return Err(format!("0-length response with status code: {code} and content type: {content_type}"));
    }
    let json = match decode::type_meta(&answer.body) {
        Ok(_) => Cow::Borrowed(&*answer.body),
        // Kubernetes: an answer that is not JSON may be YAML.
        Err(problem) => match yaml::to_json(&answer.body) {
            Ok(read) => Cow::Owned(read.json),
            Err(_) => return Err(problem.to_string()),
        },
    };
    let said = decode::type_meta(&json).map_err(|problem| problem.to_string())?;
    let (version, kind) = (object::api_version(sent), object::kind(sent));
    let is_silent = said.api_version.is_empty() || said.kind.is_empty();
    let (group, spoken) = version.split_once('/').unwrap_or(("", version));
    match said.api_version.strip_prefix(group).and_then(|rest| rest.strip_prefix('/')) {
        _ if is_silent || (said.api_version == version && said.kind == kind) => {}
        Some(other @ ("v1" | "v1beta1")) if said.kind == kind => {
            return Err(format!("converting ({other}.{kind}) to ({spoken}.{kind}): unknown conversion"));
        }
        _ => {
            let (kind, version) = (api::go::quote(&said.kind), api::go::quote(&said.api_version));
            return Err(format!("no kind {kind} is registered for version {version} in scheme \"{SCHEME}\""));
        }
    }
    serde_json::from_slice(&json).map_err(|error| error.to_string())
}

fn refusal(answer: &Answer) -> String {
    let code = answer.status;
    let said: Option<Value> = serde_json::from_slice(&answer.body).ok();
    if let Some(message) = said.as_ref().and_then(|status| status.get("message")).and_then(Value::as_str) {
        return message.to_owned();
    }
    let text = String::from_utf8_lossy(&answer.body[..answer.body.len().min(MAX_QUOTED_BYTES)]);
    let is_text = answer.content_type.is_empty() || answer.content_type.starts_with("text/");
    let text = if is_text { text.trim() } else { "unknown" };
    let message = match code {
        400 => "the server rejected our request for an unknown reason",
        401 => "the server has asked for the client to provide credentials",
        403 | 415 => text,
        404 => "the server could not find the requested resource",
        405 => "the server does not allow this method on the requested resource",
        406 if matches!(text, "" | "unknown") => {
            "the server was unable to respond with a content type that the client supports"
        }
        406 => text,
        409 => "the server reported a conflict",
        422 => "the server rejected our request due to an error in our request",
        429 => "the server has received too many requests and has asked us to try again later",
        503 => "the server is currently unable to handle the request",
        504 => {
            "the server was unable to return a response in the time allotted, but may still be processing the request"
        }
        500.. => {
            let text = api::go::quote(text);
            return format!("an error on the server ({text}) has prevented the request from succeeding");
        }
        _ => {
            return format!(
                "the server responded with the status code {code} but did not return more information"
            );
        }
    };
    message.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn answers_that_are_not_reviews_are_reported_as_in_kubernetes() {
        let sent = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"});
        let parse = "couldn't get version/kind; json parse error: json: cannot unmarshal";
        for (body, problem) in [
            (r#"{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}"#, String::new()),
            ("apiVersion: admission.k8s.io/v1\nkind: AdmissionReview\n", String::new()),
            (r#"{"response": {}}"#, String::new()),
            ("", "0-length response with status code: 200 and content type: application/json".to_owned()),
            ("hello", format!("{parse} string into Go value of type {STRUCT}")),
            ("[]", format!("{parse} array into Go value of type {STRUCT}")),
            (
                r#"{"apiVersion": "admission.k8s.io/v1beta1", "kind": "AdmissionReview"}"#,
                "converting (v1beta1.AdmissionReview) to (v1.AdmissionReview): unknown conversion".to_owned(),
            ),
            (
                r#"{"apiVersion": "admission.k8s.io/v1", "kind": "Foo"}"#,
                format!(
                    "no kind \"Foo\" is registered for version \"admission.k8s.io/v1\" in scheme \"{SCHEME}\""
                ),
            ),
        ] {
            let answer =
                Answer { status: 200, body: body.into(), content_type: "application/json".to_owned() };
            assert_eq!(reviewed(&answer, &sent).err().unwrap_or_default(), problem, "{body}");
        }
    }

    const STRUCT: &str = r#"struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }"#;

    #[test]
    fn error_answers_are_reported_by_status_code() {
        for (status, content_type, body, expected) in [
            (503, "application/json", "busy", "the server is currently unable to handle the request"),
            (403, "text/plain", " no \n", "no"),
            (403, "application/json", r#"{"message": "no way"}"#, "no way"),
            (404, "text/html", "<html>", "the server could not find the requested resource"),
            (
                500,
                "text/plain; charset=utf-8",
                "boom",
                "an error on the server (\"boom\") has prevented the request from succeeding",
            ),
            (
                302,
                "",
                "",
                "the server responded with the status code 302 but did not return more information",
            ),
        ] {
            let answer = Answer { status, body: body.into(), content_type: content_type.to_owned() };
            assert_eq!(refusal(&answer), expected);
        }
    }
}
