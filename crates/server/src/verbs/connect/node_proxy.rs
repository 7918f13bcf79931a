//! `nodes/proxy`: a request for a page of a kubelet, passed on to it.

use super::{NODES, moved, options, path::ProxyPath};
use crate::{
    admission,
    answer::{self, Body},
    call::Call,
    kubelet::{self, NoResponse},
    lookup,
    refusal::Refusal,
};
use api::go;
use bytes::Bytes;
use http::{HeaderName, Method, Request, Response, StatusCode, header};
use http_body_util::Full;

/// The headers that are passed on. Nothing of the client's identity is among them.
const REQUEST_HEADERS: [HeaderName; 3] = [header::ACCEPT, header::CONTENT_TYPE, header::USER_AGENT];
/// The headers of a response that are passed back.
const RESPONSE_HEADERS: [HeaderName; 1] = [header::CONTENT_TYPE];

pub(super) async fn proxy(call: &Call, body: Bytes) -> Result<Response<Body>, Refusal> {
    let Some(raw) = &call.raw else { return Err(Refusal::bad_request("address not allowed")) };
    let path = ProxyPath::of_node(raw.uri.path());
    admission::connect(call, options::object(call, &path.rest)).await?;
    let id = &call.target.name;
    let (name, port) =
        split(id).ok_or_else(|| Refusal::bad_request(format!("invalid node request {}", go::quote(id))))?;
    let node = lookup::object(&call.inner, NODES, "", name).await?;
    let node = node.ok_or_else(|| call.not_found(name))?;
    let address = kubelet::address(&node, &call.inner.kubelet_addresses);
    let address = address.map_err(|problem| Refusal::unclassified(problem.0))?;
    if !port.is_empty() && port != address.port.to_string() {
        // Another port is not the kubelet's: who listens there cannot be verified.
        return Err(Refusal::bad_request("address not allowed"));
    }
    if path.rest.is_empty() && matches!(raw.method, Method::GET | Method::HEAD) {
        return Ok(moved(&path.prefix, raw.uri.query()));
    }
    let mut request = Request::builder()
        .method(raw.method.clone())
        .uri(path.target(raw.uri.query()))
        .body(Full::new(body))
        .map_err(|error| Refusal::bad_request(error.to_string()))?;
    for name in &REQUEST_HEADERS {
        if let Some(value) = call.headers.get(name) {
            request.headers_mut().insert(name, value.clone());
        }
    }
    let response =
        kubelet::send(&call.inner, call.caller(), &address, request).await.map_err(
            |problem| match problem {
                NoResponse::TooManyConnections => Refusal::too_many_requests(problem.to_string(), 1),
                problem => Refusal::service_unavailable(format!("error trying to reach service: {problem}")),
            },
        )?;
    let (head, body) = response.into_parts();
    if head.status.is_redirection() && head.headers.contains_key(header::LOCATION) {
        let problem = "the backend attempted to redirect this request, which is not permitted";
        return Ok(answer::full(StatusCode::BAD_GATEWAY, "text/plain; charset=utf-8", problem));
    }
    if head.status.is_informational() {
        return Err(Refusal::unclassified(
            "the node has switched protocols, which this request did not ask for",
        ));
    }
    // What has come before an error is sent.
    let body = super::log::frames(call, body);
    let mut response = Response::new(body);
    *response.status_mut() = head.status;
    for name in RESPONSE_HEADERS {
        if let Some(value) = head.headers.get(&name) {
            response.headers_mut().insert(name, value.clone());
        }
    }
    Ok(response)
}

/// The name and the port of `NAME`, `NAME:PORT` or `SCHEME:NAME:PORT`.
fn split(id: &str) -> Option<(&str, &str)> {
    match id.split(':').collect::<Vec<_>>()[..] {
        [name] if !name.is_empty() => Some((name, "")),
        [name, port] if !name.is_empty() => Some((name, port)),
        ["" | "http" | "https", name, port] if !name.is_empty() => Some((name, port)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_node_may_have_a_port() {
        for (id, expected) in [
            ("node-0", Some(("node-0", ""))),
            ("node-0:10250", Some(("node-0", "10250"))),
            ("https:node-0:10250", Some(("node-0", "10250"))),
            ("ftp:node-0:1", None),
            (":1", None),
            ("a:b:c:d", None),
            ("", None),
        ] {
            assert_eq!(split(id), expected, "{id}");
        }
    }
}
