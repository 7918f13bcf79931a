//! `log`: the lines of a container, from its kubelet, as they come.

use super::{container, kubelet_of, node_of, pod_path};
use crate::{
    answer::{self, Body},
    call::Call,
    kubelet::{self, NoResponse},
    refusal::Refusal,
    request::{encode, flag, is_web_socket},
    verbs::web_socket,
};
use api::{
    field::{Error, ErrorList, Path},
    go,
    kind::{GroupKind, GroupResource},
    time::Time,
};
use bytes::Bytes;
use futures::{
    FutureExt,
    future::{Either, select},
    stream,
};
use http::{HeaderValue, Request, Response, StatusCode, header};
use http_body::Frame;
use http_body_util::{BodyExt, Full, Limited, StreamBody};
use hyper::body::Incoming;
use serde_json::Value;
use std::{convert::Infallible, pin::pin};

/// How much of a kubelet's error is passed on.
// Kubernetes: as much.
const MAX_PROBLEM: usize = 50_000;

/// Options that are passed on as they are, in the order of Go's encoding.
const FLAGS: [&str; 3] = ["follow", "previous", "timestamps"];

pub(super) async fn log(call: &Call, pod: &Value) -> Result<Response<Body>, Refusal> {
    let query = query(call)?;
    let container = container(call, pod)?;
    if node_of(pod).is_empty() {
        // Kubernetes: a pod without a node has no logs yet.
        return Ok(answer::full(StatusCode::NO_CONTENT, "", ""));
    }
    let address = kubelet_of(call, pod).await?;
    let target = format!("{}/{container}{query}", pod_path("containerLogs", call));
    let url = go::quote(&format!("https://{address}{target}"));
    let request = Request::get(&target).body(Full::default());
    let request = request.map_err(|error| Refusal::unclassified(error.to_string()))?;
    let response =
        kubelet::send(&call.inner, call.caller(), &address, request).await.map_err(
            |problem| match problem {
                NoResponse::TooManyConnections => Refusal::too_many_requests(problem.to_string(), 1),
                // Kubernetes: the text of Go's client.
                problem => Refusal::unclassified(format!("Get {url}: {problem}")),
            },
        )?;
    match response.status().as_u16() {
        200..=206 => Ok(streamed(call, response.into_body())),
        300..=399 if response.headers().contains_key(header::LOCATION) => {
            Err(Refusal::unclassified(format!("Get {url}: redirects forbidden")))
        }
        code => Err(failed(call, code, response.into_body()).await),
    }
}

/// The query for the kubelet, with its question mark, from validated options.
fn query(call: &Call) -> Result<String, Refusal> {
    let options = &call.options.rest;
    let mut errors = ErrorList::new();
    let mut numbers = Vec::new();
    let has_both = options.contains_key("sinceSeconds") && options.contains_key("sinceTime");
    for (name, least, problem) in [
        ("tailLines", 0, "must be greater than or equal to 0"),
        ("limitBytes", 1, "must be greater than 0"),
        ("sinceSeconds", 1, "must be greater than 0"),
    ] {
        let Some(text) = options.get(name) else { continue };
        let number = go::parse_int(text).map_err(Refusal::bad_request)?;
        if name == "sinceSeconds" && has_both {
            let both = "at most one of `sinceTime` or `sinceSeconds` may be specified";
            errors.push(Error::forbidden(&Path::new(""), both));
        } else if number < least {
            errors.push(Error::invalid(&Path::new(name), number, problem));
        }
        numbers.push((name, number.to_string()));
    }
    if options.contains_key("stream") {
        errors.push(Error::forbidden(&Path::new("stream"), "may not be specified"));
    }
    let since = options.get("sinceTime").filter(|text| !text.is_empty());
    let since = since.map(|text| text.parse::<Time>()).transpose();
    let since = since.map_err(|problem| Refusal::bad_request(problem.to_string()))?;
    let kind = GroupKind::new("", "PodLogOptions");
    errors.into_result().map_err(|errors| Refusal::invalid(&kind, &call.target.name, &errors))?;
    let flags = FLAGS.into_iter().filter(|name| options.get(*name).is_some_and(|value| flag(value)));
    let flags = flags.map(|name| (name, "true".to_owned()));
    let all = flags.chain(numbers).chain(since.map(|time| ("sinceTime", time.to_string())));
    let all: Vec<String> = all.map(|(name, value)| format!("{name}={}", encode(&value))).collect();
    Ok(if all.is_empty() { String::new() } else { format!("?{}", all.join("&")) })
}

fn streamed(call: &Call, body: Incoming) -> Response<Body> {
    let log = frames(call, body);
    if let Some(raw) = call.raw.as_ref().filter(|_| is_web_socket(&call.headers)) {
        return web_socket::open_log(call, raw, log);
    }
    let mut response = Response::new(log);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
    response
}

/// The body of a kubelet's response as it comes. It is read as fast as the client reads, and ends when the server
/// drains.
pub(super) fn frames(call: &Call, body: Incoming) -> Body {
    let draining = call.inner.draining.subscribe();
    let frames = stream::unfold((body, draining), |(mut body, mut draining)| async move {
        let frame = {
            let drained = pin!(draining.wait_for(|draining| *draining).map(drop));
            match select(pin!(body.frame()), drained).await {
                // An error ends the log: the part that has come is sent.
                Either::Left((frame, _)) => frame?.ok()?,
                Either::Right(_) => return None,
            }
        };
        Some((Ok::<_, Infallible>(Frame::data(frame.into_data().unwrap_or_default())), (body, draining)))
    });
    StreamBody::new(frames).boxed_unsync()
}

/// Kubernetes: how the error of a kubelet becomes a Status.
async fn failed(call: &Call, code: u16, body: Incoming) -> Refusal {
    let text = match Limited::new(body, MAX_PROBLEM).collect().await {
        Ok(body) => body.to_bytes(),
        Err(_) => Bytes::new(),
    };
    let text = String::from_utf8_lossy(&text).into_owned();
    match code {
        500 => Refusal::internal_error(text),
        400 => Refusal::bad_request(text),
        _ => Refusal::by_kubelet(code, &GroupResource::new("", "pods/log"), &call.target.name, &text),
    }
}
