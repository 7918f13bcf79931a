//! Stands between sockets and the server of a cluster: answers the testing API, adds it to discovery, and hands all other
//! requests to the transport, which records them and applies faults.

use crate::{
    Cluster, Credentials,
    definitions::{GROUP, TestingKind},
    plane,
    problem::Problem,
    verbs,
};
use api::path::ResourcePath;
use futures::future::BoxFuture;
use http::{HeaderValue, Method, Request, Response, header, request::Parts};
use http_body_util::{BodyExt, Full, combinators::UnsyncBoxBody};
use serde_json::Value;
use server::{
    Body, Caller,
    accept::{Broken, Front, FrontBody, FrontRequest},
};
use std::sync::Arc;

type RequestBody = UnsyncBoxBody<bytes::Bytes, hyper::Error>;

#[derive(Debug)]
pub(crate) struct TestingFront(Arc<Cluster>);

impl TestingFront {
    pub(crate) fn new(cluster: &Arc<Cluster>) -> TestingFront {
        TestingFront(Arc::clone(cluster))
    }
}

impl Front for TestingFront {
    fn handle(&self, request: FrontRequest) -> BoxFuture<'static, Result<Response<FrontBody>, Broken>> {
        let cluster = Arc::clone(&self.0);
        Box::pin(async move {
            let (mut head, body) = request.into_parts();
            make_relative(&mut head);
            match Destination::of(&head) {
                Destination::Testing => Ok(answer_testing(&cluster, head, body).await.map(unbroken)),
                Destination::Index => index(&cluster, head, body).await,
                Destination::Server => pass_on(&cluster, head, body).await,
            }
        })
    }
}

/// Where a request goes.
enum Destination {
    Testing,
    /// A list of all APIs, to which the testing API is added.
    Index,
    Server,
}

impl Destination {
    fn of(head: &Parts) -> Destination {
        let path = head.uri.path().trim_matches('/');
        let mut parts = path.split('/');
        match (parts.next(), parts.next(), parts.next(), parts.next()) {
            (Some("apis"), Some(GROUP), ..) => Destination::Testing,
            (Some("openapi"), Some("v3"), Some("apis"), Some(GROUP)) => Destination::Testing,
            (Some("apis"), None, ..) | (Some("openapi"), Some("v3"), None, _)
                if head.method == Method::GET =>
            {
                Destination::Index
            }
            _ => Destination::Server,
        }
    }
}

/// HTTP/2 has the host in the URL; traces and the server want the path alone.
fn make_relative(head: &mut Parts) {
    let host = head.uri.authority().and_then(|host| HeaderValue::from_str(host.as_str()).ok());
    if let Some(host) = host {
        head.headers.entry(header::HOST).or_insert(host);
    }
    head.uri = head.uri.path_and_query().cloned().map(http::Uri::from).unwrap_or_default();
}

fn unbroken(body: Body) -> FrontBody {
    body.map_err(|never| match never {}).boxed_unsync()
}

/// Hands a request to the server.
async fn pass_on(
    cluster: &Arc<Cluster>,
    mut head: Parts,
    body: RequestBody,
) -> Result<Response<FrontBody>, Broken> {
    let is_watch = head.uri.query().is_some_and(|query| query.contains("watch="));
    if head.method != Method::GET || is_watch {
        cluster.start_loops();
    }
    let caller = cluster.server().identify(&mut head).await;
    let credentials = caller.map_or(Credentials::OutsideUnknown, Credentials::Outside);
    Arc::clone(&cluster.transport).send(credentials, Request::from_parts(head, body)).await
}

/// The server's list of all APIs, with the testing API in it.
async fn index(
    cluster: &Arc<Cluster>,
    mut head: Parts,
    body: RequestBody,
) -> Result<Response<FrontBody>, Broken> {
    for name in [header::ACCEPT_ENCODING, header::IF_NONE_MATCH, header::IF_MODIFIED_SINCE] {
        head.headers.remove(name);
    }
    let (mut head, body) = pass_on(cluster, head, body).await?.into_parts();
    let body = body.collect().await?.to_bytes();
    // Protobuf, or an error: it stays as it is.
    let Ok(mut list) = serde_json::from_slice::<Value>(&body) else {
        return Ok(Response::from_parts(head, whole(body)));
    };
    let template = &cluster.template;
    match list["kind"].as_str() {
        Some("APIGroupList") => add(&mut list["groups"], &template.group),
        Some("APIGroupDiscoveryList") => add(&mut list["items"], &template.discovery),
        _ => {
            if let (Some(paths), Some(own)) = (list["paths"].as_object_mut(), template.openapi.as_object()) {
                paths.extend(own.clone());
            }
        }
    }
    head.headers.remove(header::CONTENT_LENGTH);
    let tag = head.headers.get(header::ETAG).and_then(|tag| tag.to_str().ok());
    let tag = tag.map(|tag| format!("\"{}-testing\"", tag.trim_matches('"')));
    if let Some(tag) = tag.and_then(|tag| HeaderValue::from_str(&tag).ok()) {
        head.headers.insert(header::ETAG, tag);
    }
    Ok(Response::from_parts(head, whole(list.to_string().into())))
}

fn add(list: &mut Value, entry: &Value) {
    if let Some(list) = list.as_array_mut() {
        list.push(entry.clone());
    }
}

fn whole(body: bytes::Bytes) -> FrontBody {
    Full::new(body).map_err(|never| match never {}).boxed_unsync()
}

/// Answers a request for the testing API.
async fn answer_testing(cluster: &Arc<Cluster>, mut head: Parts, body: RequestBody) -> Response<Body> {
    let caller = match cluster.server().permit(&mut head).await {
        Ok(caller) => caller,
        Err(response) => return *response,
    };
    match route(cluster, &caller, head, body).await {
        Ok(response) => response,
        Err(problem) => problem.response(),
    }
}

async fn route(
    cluster: &Arc<Cluster>,
    caller: &Caller,
    mut head: Parts,
    body: RequestBody,
) -> Result<Response<Body>, Problem> {
    let plane = cluster.plane().await?;
    let path = head.uri.path().to_owned();
    let target = ResourcePath::parse(&path).filter(|target| target.subresource.is_empty());
    let kind = target.and_then(|target| TestingKind::by_resource(target.resource));
    let is_dry = head.uri.query().is_some_and(|query| query.contains("dryRun="));
    let (Some(kind), false) = (kind, is_dry) else {
        return Ok(plane.handle(caller, Request::from_parts(head, body)).await);
    };
    match head.method {
        Method::POST => verbs::check_room(cluster, kind)?,
        Method::GET => verbs::refresh(cluster, plane, kind).await?,
        _ => {}
    }
    let changes = matches!(head.method, Method::POST | Method::PUT | Method::PATCH);
    if changes {
        head.headers.insert(header::ACCEPT, HeaderValue::from_static("application/json"));
        head.headers.remove(header::ACCEPT_ENCODING);
    }
    let method = head.method.clone();
    let response = plane.handle(caller, Request::from_parts(head, body)).await;
    if !response.status().is_success() {
        return Ok(response);
    }
    match method {
        _ if changes => {
            let (code, object) = plane::read(response).await;
            let object = verbs::carry_out(cluster, plane, kind, object).await?;
            Ok(crate::fault::answer(code.as_u16(), &object))
        }
        Method::DELETE => {
            verbs::forget_deleted(cluster, plane, kind).await?;
            Ok(response)
        }
        _ => Ok(response),
    }
}
