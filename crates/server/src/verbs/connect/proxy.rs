//! `pods/proxy` and `services/proxy`: a request for a port of a pod, passed on with its body, and the answer back.
//!
//! | file | content |
//! |---|---|
//! | `backend` | the name in the path → the address of a pod |
//! | `headers` | what of a request and of an answer is passed on |
//! | `links` | where the links of a pod's pages lead, as seen by the client |
//! | `location` | where a redirect of a pod leads, as seen by the client |

mod backend;
mod headers;
mod links;
mod location;

pub(super) use headers::without_credentials;

use super::{moved, options, path::ProxyPath, stream::passed_back, upgraded};
use crate::{
    admission,
    answer::{self, Body, BrokenOff},
    call::Call,
    kubelet::{NoResponse, send_to_pod},
    refusal::Refusal,
    request::{RawRequest, is_upgrade},
};
use backend::Backend;
use bytes::{Buf, Bytes};
use futures::{
    FutureExt,
    future::{Either, select},
    stream,
};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, header};
use http_body::Frame;
use http_body_util::{BodyExt, Full, StreamBody, combinators::UnsyncBoxBody};
use hyper::body::Incoming;
use links::LinkRewriter;
use std::{convert::Infallible, io, pin::pin};

/// The body of a request that is passed on as it comes.
pub(crate) type PassedBody = UnsyncBoxBody<Bytes, io::Error>;

pub(crate) fn passed<B>(body: B) -> PassedBody
where
    B: http_body::Body + Send + 'static,
    B::Data: Send,
    B::Error: std::error::Error + Send + Sync + 'static,
{
    let frames = body.map_frame(|frame| frame.map_data(|mut data| data.copy_to_bytes(data.remaining())));
    frames.map_err(io::Error::other).boxed_unsync()
}

pub(crate) async fn proxy(call: &Call, body: PassedBody) -> Result<Response<Body>, Refusal> {
    let Some(raw) = &call.raw else { return Err(Refusal::bad_request("address not allowed")) };
    let path = ProxyPath::in_namespace(raw.uri.path());
    admission::connect(call, options::object(call, &path.rest)).await?;
    let backend = match &*call.served.resource.name {
        "services" => backend::of_service(call).await?,
        _ => backend::of_pod(call).await?,
    };
    if is_upgrade(&call.headers) {
        return upgrade(call, raw, &backend, &path).await;
    }
    if path.rest.is_empty() && matches!(raw.method, Method::GET | Method::HEAD) {
        return Ok(moved(&path.prefix, raw.uri.query()));
    }
    let request = request(call, raw, (&backend, &path), body, headers::remove_hop_by_hop)?;
    let host = request.headers().get(header::HOST).cloned();
    let mut response =
        send_to_pod(&call.inner, call.caller(), backend.address, request).await.map_err(|problem| {
            match problem {
                NoResponse::TooManyConnections => Refusal::too_many_requests(TOO_MANY, 1),
                problem => Refusal::service_unavailable(format!("error trying to reach service: {problem}")),
            }
        })?;
    if response.status().is_informational() {
        let problem = "the pod has switched protocols, which this request did not ask for";
        return Err(Refusal::unclassified(problem));
    }
    let host = host.as_ref().and_then(|host| host.to_str().ok()).unwrap_or_default();
    let links = LinkRewriter::of_page(response.headers_mut(), &path.prefix, &backend.host, host);
    let mut response = answered(call, response, links);
    location::rewrite(response.headers_mut(), &path.prefix, &backend.host, host);
    Ok(response)
}

const TOO_MANY: &str = "too many connections to pods are open: end one of yours first";

/// The connection of the client becomes one with the pod.
async fn upgrade(
    call: &Call,
    raw: &RawRequest,
    backend: &Backend,
    path: &ProxyPath,
) -> Result<Response<Body>, Refusal> {
    let client = raw.take_upgrade().ok_or_else(|| Refusal::bad_request("Upgrade request required"))?;
    let request = request(call, raw, (backend, path), Full::<Bytes>::default(), headers::keep_upgrade)?;
    let response =
        send_to_pod(&call.inner, call.caller(), backend.address, request).await.map_err(|problem| {
            match problem {
                NoResponse::TooManyConnections => Refusal::too_many_requests(TOO_MANY, 1),
                NoResponse::Unreachable(problem) => {
                    Refusal::unclassified(format!("error dialing backend: {problem}"))
                }
                NoResponse::Broken(problem) => Refusal::unclassified(problem),
            }
        })?;
    let code = response.status();
    if code == StatusCode::SWITCHING_PROTOCOLS {
        let mut agreed = answer::empty(code);
        *agreed.headers_mut() = response.headers().clone();
        upgraded::join(call, client, response);
        return Ok(agreed);
    }
    passed_back(code)?;
    Ok(answered(call, response, None))
}

/// The request for the pod, of whose headers `clean` removes those that are not passed on. Kubernetes: it has the `Host`
/// of the client's.
fn request<B>(
    call: &Call,
    raw: &RawRequest,
    (backend, path): (&Backend, &ProxyPath),
    body: B,
    clean: fn(&mut HeaderMap),
) -> Result<Request<B>, Refusal> {
    let request = Request::builder().method(raw.method.clone()).uri(path.target(raw.uri.query()));
    let mut request = request.body(body).map_err(|error| Refusal::bad_request(error.to_string()))?;
    let passed = request.headers_mut();
    *passed = headers::without_credentials(&call.headers);
    // What follows is the server's own: no header of the client removes it.
    clean(passed);
    // With HTTP/2 it is a part of the URL.
    let host = raw.uri.authority().map(|authority| authority.as_str());
    let host = host.or_else(|| (!passed.contains_key(header::HOST)).then_some(backend.host.as_str()));
    if let Some(host) = host.and_then(|host| HeaderValue::from_str(host).ok()) {
        passed.insert(header::HOST, host);
    }
    headers::add_forwarded(passed, raw.client, &format!("{}{}", path.prefix, path.rest));
    Ok(request)
}

/// The answer of a pod, read as fast as the client reads, with its links changed. It ends when the server drains.
fn answered(call: &Call, response: Response<Incoming>, links: Option<LinkRewriter>) -> Response<Body> {
    let (mut head, body) = response.into_parts();
    headers::remove_hop_by_hop(&mut head.headers);
    headers::remove_cross_origin(&mut head.headers);
    let broken_off = BrokenOff::default();
    let draining = call.inner.draining.subscribe();
    let start = (body, links, draining, broken_off.clone());
    let frames = stream::unfold(start, |(mut body, mut links, mut draining, broken_off)| async move {
        let frame = {
            let drained = pin!(draining.wait_for(|draining| *draining).map(drop));
            match select(pin!(body.frame()), drained).await {
                Either::Left((frame, _)) => frame,
                Either::Right(_) => {
                    broken_off.note();
                    return None;
                }
            }
        };
        let Some(frame) = frame else {
            let rest = links.take().map(LinkRewriter::finish).filter(|rest| !rest.is_empty())?;
            return Some((Ok::<_, Infallible>(Frame::data(rest)), (body, links, draining, broken_off)));
        };
        match frame {
            // Trailers are left out.
            Ok(frame) => {
                let data = frame.into_data().unwrap_or_default();
                let data = match &mut links {
                    Some(links) => links.push(&data),
                    None => data,
                };
                Some((Ok(Frame::data(data)), (body, links, draining, broken_off)))
            }
            Err(_) => {
                broken_off.note();
                None
            }
        }
    });
    let mut response = Response::new(StreamBody::new(frames).boxed_unsync());
    *response.status_mut() = head.status;
    *response.headers_mut() = head.headers;
    response.extensions_mut().insert(broken_off);
    response
}
