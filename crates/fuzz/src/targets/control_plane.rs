//! A control plane for one input, in its own simulated world.

use bytes::Bytes;
use http::{Request, header};
use http_body_util::{BodyExt, Full};
use serde_json::Value;
use server::{Caller, Config, Server};
use std::{future::Future, sync::Arc};

/// The answer to a request.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Answer {
    pub(super) code: u16,
    pub(super) body: Bytes,
}

impl Answer {
    pub(super) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }
}

/// Hands a new control plane to `act`.
pub(super) fn with_server<T, F: Future<Output = T>>(act: impl FnOnce(Server) -> F) -> T {
    with_config(Config::default(), act)
}

/// As [`with_server`], started with `config`.
pub(super) fn with_config<T, F: Future<Output = T>>(config: Config, act: impl FnOnce(Server) -> F) -> T {
    let run = world::simulate(1, |world| async move {
        let store = Arc::new(store::Memory::new());
        let server = Server::start(&world, store, config).await.unwrap();
        act(server).await
    });
    run.unwrap().output
}

/// Sends a request, if it is valid HTTP, and checks that the response is well-formed.
pub(super) async fn send(
    server: &Server,
    method: &str,
    uri: &str,
    content_type: &str,
    body: &[u8],
) -> Option<Answer> {
    let request = Request::builder().method(method).uri(uri).header(header::CONTENT_TYPE, content_type);
    let mut request = request.body(Full::new(Bytes::copy_from_slice(body))).ok()?;
    request.extensions_mut().insert(Caller::known("admin", "", vec!["system:masters".to_owned()]));
    Some(answered(server, request).await)
}

/// Sends JSON as an administrator.
pub(super) async fn post(server: &Server, uri: &str, body: &Value) -> Answer {
    let answer = send(server, "POST", uri, "application/json", body.to_string().as_bytes()).await;
    answer.expect("the request is valid HTTP")
}

/// The user that this header authenticates, or the status code; `None` if it is not a valid header.
pub(super) async fn user_of(server: &Server, authorization: &[u8]) -> Option<Result<String, u16>> {
    let uri = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
    let request = Request::builder().method("POST").uri(uri).header(header::AUTHORIZATION, authorization);
    let request = request.header(header::CONTENT_TYPE, "application/json");
    let answer = answered(server, request.body(Full::new(Bytes::from("{}"))).ok()?).await;
    Some(match answer.code {
        201 => Ok(answer.json()["status"]["userInfo"]["username"].as_str().unwrap_or_default().to_owned()),
        code => Err(code),
    })
}

async fn answered(server: &Server, request: Request<Full<Bytes>>) -> Answer {
    let (method, uri) = (request.method().clone(), request.uri().clone());
    let response = server.handle(request).await;
    let code = response.status().as_u16();
    let answer = Answer { code, body: response.into_body().collect().await.unwrap().to_bytes() };
    let about = || format!("{method} {uri}: {code} {:?}", String::from_utf8_lossy(&answer.body));
    assert!((200..500).contains(&code) || is_known(&answer), "{}", about());
    let status = answer.json();
    if code >= 400 && method != "HEAD" && status.is_object() {
        assert!(status["kind"] == "Status" && status["code"] == code, "{}", about());
    }
    answer
}

/// Kubernetes: for some bad requests kube-apiserver, too, answers 500 or 504; the message names the cause.
fn is_known(answer: &Answer) -> bool {
    let text = String::from_utf8_lossy(&answer.body);
    match answer.code {
        500 => !text.contains("InternalError"),
        504 => text.contains("ResourceVersionTooLarge"),
        _ => false,
    }
}
