//! A minimal client: a method, a path, a body.

use bytes::Bytes;
use http::{Request, header};
use http_body_util::{BodyExt, Full};
use serde_json::Value;
use server::{Caller, Server};

/// Status code and body of the response.
pub(crate) async fn send(server: &Server, method: &str, path: &str, body: impl Into<Bytes>) -> (u16, Value) {
    let (status, bytes) = send_raw(server, method, path, body).await;
    (status, serde_json::from_slice(&bytes).unwrap_or_default())
}

pub(crate) async fn send_raw(
    server: &Server,
    method: &str,
    path: &str,
    body: impl Into<Bytes>,
) -> (u16, Bytes) {
    send_with(server, method, path, "application/json", body).await
}

pub(crate) async fn send_with(
    server: &Server,
    method: &str,
    path: &str,
    content_type: &str,
    body: impl Into<Bytes>,
) -> (u16, Bytes) {
    let request = Request::builder().method(method).uri(path).header(header::CONTENT_TYPE, content_type);
    let mut request = request.body(Full::new(body.into())).unwrap();
    request.extensions_mut().insert(Caller::known("admin", "", vec!["system:masters".to_owned()]));
    let response = server.handle(request).await;
    let status = response.status().as_u16();
    (status, response.into_body().collect().await.unwrap().to_bytes())
}
