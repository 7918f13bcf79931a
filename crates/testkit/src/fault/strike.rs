//! What an effect does to a request on its way, and to an answer on its way back.

use super::{Effect, End};
use crate::asked::{Asked, query};
use api::status::Reason;
use bytes::Bytes;
use http::{Response, StatusCode, Uri, header};
use http_body_util::{BodyExt, Full};
use serde_json::{Value, json};
use std::convert::Infallible;

/// The caller will never know what became of its request.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("connection reset by peer")]
pub(crate) struct Lost;

/// The answer of a server that refuses.
pub(crate) fn refusal(code: u16, reason: &Reason, asked: &Asked) -> Response<server::Body> {
    let Asked { verb, resource, name, .. } = asked;
    let message = match reason {
        // Kubernetes: the text of a real conflict.
        Reason::Conflict => format!(
            "Operation cannot be fulfilled on {resource} {name:?}: the object has been modified; \
             please apply your changes to the latest version and try again"
        ),
        _ => format!("a fault was asked for: {verb} {resource} {name:?} fails with {code} {reason}"),
    };
    let mut status = status(code, reason, message);
    status["details"] = json!({"name": name, "kind": resource});
    answer(code, &status)
}

fn status(code: u16, reason: &Reason, message: String) -> Value {
    json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": message, "reason": reason.as_str(), "code": code,
    })
}

pub(crate) fn answer(code: u16, body: &Value) -> Response<server::Body> {
    let mut response = Response::new(Full::new(Bytes::from(body.to_string())).boxed_unsync());
    *response.status_mut() = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static("application/json"));
    response
}

impl End {
    /// What a watch tells last.
    pub(crate) fn last_words(self) -> Option<Result<Bytes, Lost>> {
        match self {
            End::Broken => Some(Err(Lost)),
            End::Closed => None,
            End::Expired => {
                let message = "too old resource version: a fault was asked for".to_owned();
                let event = json!({"type": "ERROR", "object": status(410, &Reason::Expired, message)});
                Some(Ok(Bytes::from(format!("{event}\n"))))
            }
        }
    }
}

impl Effect {
    /// How a stale read is asked for: a list of what was then. The server answers no single
    /// object as of an earlier time, so that a get becomes a list of one.
    pub(crate) fn stale(asked: &Asked, uri: &Uri, revision: u64) -> Uri {
        let mut pairs: Vec<(String, String)> = query(uri)
            .filter(|(name, _)| !matches!(*name, "resourceVersion" | "resourceVersionMatch" | "continue"))
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect();
        let mut path = uri.path().to_owned();
        match asked.verb {
            "list" => pairs.push(("resourceVersionMatch".to_owned(), "Exact".to_owned())),
            "get" => {
                path.truncate(path.rfind('/').unwrap_or(path.len()));
                pairs.push(("fieldSelector".to_owned(), format!("metadata.name%3D{}", asked.name)));
                pairs.push(("resourceVersionMatch".to_owned(), "Exact".to_owned()));
            }
            "watch" => {}
            _ => return uri.clone(),
        }
        pairs.push(("resourceVersion".to_owned(), revision.to_string()));
        let pairs: Vec<String> = pairs.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let text = format!("{path}?{}", pairs.join("&"));
        text.parse().expect("parts of a URL that was well-formed make another")
    }

    /// The one object of a list, as a get would answer it.
    pub(crate) async fn only(asked: &Asked, list: Response<server::Body>) -> Response<server::Body> {
        if list.status() != StatusCode::OK {
            return list;
        }
        let body = list.into_body().collect().await.unwrap_or_else(|never: Infallible| match never {});
        let mut list: Value = serde_json::from_slice(&body.to_bytes()).unwrap_or_default();
        let Some(mut object) = list["items"].as_array_mut().and_then(Vec::pop) else {
            return refusal(404, &Reason::NotFound, asked);
        };
        object["apiVersion"] = list["apiVersion"].clone();
        let kind = list["kind"].as_str().unwrap_or_default();
        object["kind"] = Value::from(kind.strip_suffix("List").unwrap_or(kind));
        answer(200, &object)
    }
}
