//! What effects do to requests and responses.

use super::{Effect, WatchEnd};
use crate::request_info::{RequestInfo, query};
use api::status::{Reason, Status};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Response, StatusCode, Uri, header};
use http_body_util::{BodyExt, Full};
use serde_json::{Value, json};
use server::accept::Broken;
use std::convert::Infallible;

const JSON: &str = "application/json";
const METADATA: &str = "as=PartialObjectMetadata;";
const METADATA_LIST: &str = "as=PartialObjectMetadataList;";

/// The response of a server that refuses.
pub(crate) fn error_response(code: u16, reason: &Reason, info: &RequestInfo) -> Response<server::Body> {
    let RequestInfo { verb, resource, name, .. } = info;
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
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

impl WatchEnd {
    /// The last event of a watch, if there is one.
    pub(crate) fn last_event(self, is_protobuf: bool) -> Option<Result<Bytes, Broken>> {
        match self {
            WatchEnd::Broken => Some(Err(Broken)),
            WatchEnd::Closed => None,
            WatchEnd::Expired => {
                let status = Status::expired("too old resource version: a fault was asked for");
                Some(Ok(server::error_event(status, is_protobuf)))
            }
        }
    }
}

impl Effect {
    /// The URL of a stale read: a list at an earlier revision. The server does not answer a get at an earlier
    /// revision, so a get becomes a list of one. `None` for what has no past: writes and subresources.
    pub(crate) fn stale(info: &RequestInfo, uri: &Uri, revision: u64) -> Option<Uri> {
        let mut pairs: Vec<(String, String)> = query(uri)
            .filter(|(name, _)| !matches!(*name, "resourceVersion" | "resourceVersionMatch" | "continue"))
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect();
        let mut path = uri.path().to_owned();
        match info.verb {
            "list" => pairs.push(("resourceVersionMatch".to_owned(), "Exact".to_owned())),
            "get" if !info.resource.contains('/') => {
                path.truncate(path.rfind('/').unwrap_or(path.len()));
                pairs.push(("fieldSelector".to_owned(), format!("metadata.name%3D{}", info.name)));
                pairs.push(("resourceVersionMatch".to_owned(), "Exact".to_owned()));
            }
            "watch" => {}
            _ => return None,
        }
        pairs.push(("resourceVersion".to_owned(), revision.to_string()));
        let pairs: Vec<String> = pairs.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let text = format!("{path}?{}", pairs.join("&"));
        Some(text.parse().expect("parts of a URL that was well-formed make another"))
    }

    /// A get that is carried out as a list asks for JSON, and for the form of a list.
    pub(crate) fn accept_list(headers: &mut HeaderMap) {
        let accept = headers.get(header::ACCEPT).and_then(|accept| accept.to_str().ok()).unwrap_or_default();
        let forms = accept.split(',').map(str::trim).filter(|form| form.starts_with(JSON));
        let forms = forms.map(|form| form.replace(METADATA, METADATA_LIST)).collect::<Vec<_>>().join(",");
        let forms = if forms.is_empty() { JSON.to_owned() } else { forms };
        if let Ok(forms) = HeaderValue::from_str(&forms) {
            headers.insert(header::ACCEPT, forms);
        }
        headers.remove(header::ACCEPT_ENCODING);
    }

    /// The one object of a list, as the response to a get.
    pub(crate) async fn only(info: &RequestInfo, list: Response<server::Body>) -> Response<server::Body> {
        if list.status() != StatusCode::OK {
            return list;
        }
        let body = list.into_body().collect().await.unwrap_or_else(|never: Infallible| match never {});
        let mut list: Value = serde_json::from_slice(&body.to_bytes()).unwrap_or_default();
        // Kubernetes: the table of one object is that of a list.
        if list["kind"] == "Table" {
            return match list["rows"].as_array().is_some_and(|rows| !rows.is_empty()) {
                true => answer(200, &list),
                false => error_response(404, &Reason::NotFound, info),
            };
        }
        let Some(mut object) = list["items"].as_array_mut().and_then(Vec::pop) else {
            return error_response(404, &Reason::NotFound, info);
        };
        object["apiVersion"] = list["apiVersion"].clone();
        let kind = list["kind"].as_str().unwrap_or_default();
        object["kind"] = Value::from(kind.strip_suffix("List").unwrap_or(kind));
        answer(200, &object)
    }
}
