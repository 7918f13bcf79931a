//! Calls out to programs that have a say in what happens here: a review in, the answer to it out.
//!
//! | file | what happens there |
//! |---|---|
//! | `address` | a service or a URL → where to connect, and under which name |
//! | `client` | one HTTPS POST with a deadline and a limit, over connections that are kept |
//! | `trust` | the certificate that a webhook shows → whether it is believed |
//! | `conversion` | objects of a custom resource from one version to another |

mod address;
mod client;
mod conversion;
mod trust;

pub use client::{Answer, Exchange, Outbound, Sockets};
pub(crate) use conversion::convert;

use crate::Inner;
use address::Destination;
use base64::{Engine, engine::general_purpose::STANDARD};
use bytes::Bytes;
use kinds::definition::WebhookAddress;
use serde_json::Value;
use std::time::Duration;

/// Of an answer that is no review, so much is told.
const MAX_QUOTED_BYTES: usize = 2048;

/// Where a review goes, and whom to believe there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hook<'a> {
    pub(crate) address: &'a WebhookAddress,
    /// PEM in base64; empty trusts the authorities of the machine.
    pub(crate) ca_bundle: &'a str,
    pub(crate) timeout: Duration,
    /// A longer answer is not read to its end.
    pub(crate) max_answer: usize,
}

/// Sends a review, and reads the one that comes back. The text of an error is for the person who waits.
pub(crate) async fn call(inner: &Inner, hook: Hook<'_>, review: &Value) -> Result<Value, String> {
    let url = address::url(hook.address, hook.timeout);
    let told = |problem: String| format!("Post {}: {problem}", api::go::quote(&url));
    let destination = Destination::find(inner, hook.address).await.map_err(told)?;
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
    let answer = answer.map_err(|_| told("context deadline exceeded".to_owned()))?.map_err(told)?;
    match answer.status {
        200..300 => serde_json::from_slice(&answer.body)
            .map_err(|error| format!("the answer of the webhook is no JSON: {error}")),
        // Kubernetes: what its client makes of an answer that is no review.
        _ => Err(refusal(&answer)),
    }
}

fn refusal(answer: &Answer) -> String {
    let code = answer.status;
    let said: Option<Value> = serde_json::from_slice(&answer.body).ok();
    if let Some(message) = said.as_ref().and_then(|status| status.get("message")).and_then(Value::as_str) {
        return message.to_owned();
    }
    let text = String::from_utf8_lossy(&answer.body[..answer.body.len().min(MAX_QUOTED_BYTES)]);
    let text = if answer.is_text { text.trim() } else { "unknown" };
    match http::StatusCode::from_u16(code).ok().and_then(|code| code.canonical_reason()) {
        _ if code == 404 => "the server could not find the requested resource".to_owned(),
        _ if code >= 500 => {
            let text = api::go::quote(text);
            format!("an error on the server ({text}) has prevented the request from succeeding")
        }
        reason => format!("the server answered {code} {}", reason.unwrap_or_default()),
    }
}
