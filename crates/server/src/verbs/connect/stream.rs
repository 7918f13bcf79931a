//! `exec`, `attach` and `portforward`: the connection of the client becomes one with the kubelet.

use super::{container, kubelet_of, pod_path, proxy::without_credentials, upgraded};
use crate::{
    answer::{self, Body},
    authorize::{self, Attributes, OnResource},
    call::Call,
    kubelet::{self, NoResponse},
    refusal::Refusal,
    request::{Verb, encode, flag, is_upgrade, pairs},
};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Full, Limited};
use serde_json::Value;

/// How much of a kubelet's error is passed on.
const MAX_PROBLEM: usize = 50_000;
/// The headers that agree on a protocol. No others are passed on, so that nothing of the client's identity is.
const AGREEMENT: [HeaderName; 7] = [
    header::CONNECTION,
    header::UPGRADE,
    header::SEC_WEBSOCKET_KEY,
    header::SEC_WEBSOCKET_PROTOCOL,
    header::SEC_WEBSOCKET_VERSION,
    HeaderName::from_static("x-stream-protocol-version"),
    header::USER_AGENT,
];
/// The headers of a response that agree on a protocol.
const AGREED: [HeaderName; 5] = [
    header::CONNECTION,
    header::UPGRADE,
    header::SEC_WEBSOCKET_ACCEPT,
    header::SEC_WEBSOCKET_PROTOCOL,
    HeaderName::from_static("x-stream-protocol-version"),
];

/// Kubernetes: a WebSocket begins with a GET, but the right to read must not be enough to change what runs.
pub(super) async fn demand_create(call: &Call) -> Result<(), Refusal> {
    let attributes = OnResource::of(Verb::Create, &call.target, &call.options);
    let decision = authorize::allows(&call.inner, call.caller(), &Attributes::Resource(attributes)).await?;
    match decision.is_allowed {
        true => Ok(()),
        false => Err(Refusal::forbidden(&call.resource(), &call.target.name, decision.reason)),
    }
}

pub(super) async fn stream(call: &Call, pod: &Value) -> Result<Response<Body>, Refusal> {
    let subresource = call.target.subresource.as_str();
    let query = call.raw.as_ref().and_then(|raw| raw.uri.query()).unwrap_or_default();
    let target = match subresource {
        "portforward" => format!("{}{}", pod_path("portForward", call), ports(query)),
        _ => {
            let container = container(call, pod)?;
            format!("{}/{container}{}", pod_path(subresource, call), streams(query, subresource == "exec"))
        }
    };
    let address = kubelet_of(call, pod).await?;
    let client = call.raw.as_ref().and_then(|raw| raw.take_upgrade());
    let client = client.filter(|_| is_upgrade(&call.headers));
    let Some(client) = client else { return Err(Refusal::bad_request("Upgrade request required")) };
    let mut request = Request::get(&target)
        .body(Full::default())
        .map_err(|error| Refusal::unclassified(error.to_string()))?;
    copy(&AGREEMENT, &without_credentials(&call.headers), request.headers_mut());
    let response =
        kubelet::send(&call.inner, call.caller(), &address, request).await.map_err(
            |problem| match problem {
                NoResponse::TooManyConnections => Refusal::too_many_requests(problem.to_string(), 1),
                NoResponse::Unreachable(problem) => {
                    Refusal::unclassified(format!("error dialing backend: {problem}"))
                }
                NoResponse::Broken(problem) => Refusal::unclassified(problem),
            },
        )?;
    let code = response.status();
    if code == StatusCode::SWITCHING_PROTOCOLS {
        let mut agreed = answer::empty(code);
        copy(&AGREED, response.headers(), agreed.headers_mut());
        upgraded::join(call, client, response);
        return Ok(agreed);
    }
    passed_back(code)?;
    let body = Limited::new(response.into_body(), MAX_PROBLEM).collect().await;
    let body = body.map(|body| body.to_bytes()).unwrap_or_else(|_| Bytes::new());
    Ok(answer::full(code, "text/plain; charset=utf-8", body))
}

/// Whether an answer that switches no protocol is passed back.
// Kubernetes: an error is, anything else makes no sense here.
pub(super) fn passed_back(code: StatusCode) -> Result<(), Refusal> {
    match code.as_u16() {
        400.. => Ok(()),
        code => Err(Refusal::unclassified(format!("invalid upgrade response: status code {code}"))),
    }
}

fn copy(names: &[HeaderName], from: &HeaderMap, to: &mut HeaderMap) {
    for name in names {
        for value in from.get_all(name) {
            to.append(name, value.clone());
        }
    }
}

/// The kubelet's parameters for the streams and the command that a client asks for.
// Kubernetes: the names of a kubelet's parameters, in the order of Go's encoding.
fn streams(query: &str, has_command: bool) -> String {
    let asked: Vec<(String, String)> = pairs(query).collect();
    let commands = asked.iter().filter(|(name, _)| has_command && name == "command");
    let commands = commands.map(|(_, word)| format!("command={}", encode(word)));
    // Kubernetes: the first of several values.
    let is_set = |wanted: &str| asked.iter().find(|(name, _)| name == wanted).is_some_and(|(_, it)| flag(it));
    let flags = [("stderr", "error"), ("stdin", "input"), ("stdout", "output"), ("tty", "tty")];
    let flags = flags.into_iter().filter(|(name, _)| is_set(name)).map(|(_, name)| format!("{name}=1"));
    join(commands.chain(flags).collect())
}

fn ports(query: &str) -> String {
    let ports = pairs(query).filter(|(name, _)| name == "ports").map(|(_, port)| port);
    let ports: Vec<String> = ports.collect();
    join(ports.first().map(|_| format!("port={}", encode(&ports.join(",")))).into_iter().collect())
}

fn join(parameters: Vec<String>) -> String {
    if parameters.is_empty() { String::new() } else { format!("?{}", parameters.join("&")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_options_of_a_client_become_parameters_of_a_kubelet() {
        for (query, expected) in [
            ("", ""),
            (
                "stdout=true&stdin=true&command=sh&command=-c&command=echo+a%26b",
                "?command=sh&command=-c&command=echo+a%26b&input=1&output=1",
            ),
            ("tty=1&stderr=false&container=c&stdout=0", "?tty=1"),
            ("stdin=false&stdin=true", ""),
            ("input=1&error=1", ""),
        ] {
            assert_eq!(streams(query, true), expected, "{query}");
        }
        assert_eq!(streams("command=sh&stdout=true", false), "?output=1");
        assert_eq!(ports("ports=80&ports=443"), "?port=80%2C443");
        assert_eq!(ports(""), "");
    }
}
