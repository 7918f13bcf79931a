//! Paths of discovery and of the API's own description in, their documents out.

use crate::{
    Inner,
    answer::{self, Body},
    discovery::{self, Listed},
    openapi::{self, CustomSchemas},
};
use http::{HeaderValue, Response, StatusCode, header, request::Parts};

pub(crate) fn answer(inner: &Inner, path: &str, head: &Parts) -> Option<Response<Body>> {
    let all: Vec<Listed<'_>> = inner.registry.listed();
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    let accept = head.headers.get(header::ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let json = match parts[..] {
        ["version"] => discovery::version(),
        ["api" | "apis"] if discovery::is_aggregated_wanted(accept) => {
            return Some(aggregated(&all, parts[0] == "api", head));
        }
        ["api"] => discovery::core_versions(host(head)),
        ["apis"] => discovery::groups(&all),
        ["apis", group] => discovery::group(&all, group)?,
        ["api", version] => discovery::resources(&all, "", version)?,
        ["apis", group, version] => discovery::resources(&all, group, version)?,
        ["openapi", ref rest @ ..] => openapi::at(&all, inner.registry.types, &CustomSchemas::new(), rest)?,
        _ => return None,
    };
    Some(answer::full(StatusCode::OK, "application/json", json))
}

/// Everything at once, for clients that remember what they have seen.
fn aggregated(all: &[Listed<'_>], is_core: bool, head: &Parts) -> Response<Body> {
    let document = discovery::aggregated(all, is_core);
    let etag = HeaderValue::from_str(&document.etag).ok();
    let known = head.headers.get(header::IF_NONE_MATCH).is_some_and(|known| Some(known) == etag.as_ref());
    let mut response = if known {
        answer::full(StatusCode::NOT_MODIFIED, discovery::AGGREGATED_MEDIA_TYPE, "")
    } else {
        answer::full(StatusCode::OK, discovery::AGGREGATED_MEDIA_TYPE, document.body)
    };
    let headers = response.headers_mut();
    if let Some(etag) = etag {
        headers.insert(header::ETAG, etag);
    }
    headers.insert(header::VARY, HeaderValue::from_static("Accept"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("public"));
    response
}

fn host(head: &Parts) -> &str {
    let host = head.headers.get(header::HOST).and_then(|host| host.to_str().ok());
    host.or_else(|| head.uri.authority().map(http::uri::Authority::as_str)).unwrap_or_default()
}
