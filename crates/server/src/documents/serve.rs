//! Responses with a document: whole, compressed, or 304.
//!
//! Kubernetes: as Go's `http.ServeContent`, without ranges.

use super::kept::Document;
use crate::answer::{self, Body, Gzip};
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode, header, request::Parts};
use world::Timestamp;

const YEAR_SECONDS: i64 = 365 * 24 * 3600;

pub(super) fn whole(document: &Document, head: &Parts) -> Response<Body> {
    let is_compressed = Gzip::accepted_by(&head.headers).suits(document.body.len() as u64);
    match is_compressed {
        true => answer::mark_gzipped(answer::full(StatusCode::OK, document.content_type, document.gzipped())),
        false => answer::full(StatusCode::OK, document.content_type, document.body.clone()),
    }
}

/// 304 if the client has this document already.
pub(super) fn conditional(document: &Document, head: &Parts) -> Response<Body> {
    let modified = document.made.map(http_date);
    if is_known(document, modified.as_deref(), &head.headers) {
        return not_modified(document);
    }
    let mut response = whole(document, head);
    set(&mut response, header::ETAG, &document.etag);
    if let Some(modified) = modified {
        set(&mut response, header::LAST_MODIFIED, &modified);
    }
    response
}

/// Redirects a request with an outdated hash.
pub(super) fn moved(document: &Document, to: &str) -> Response<Body> {
    let mut response = answer::full(StatusCode::MOVED_PERMANENTLY, document.content_type, "");
    set(&mut response, header::ETAG, &document.etag);
    set(&mut response, header::LOCATION, to);
    response
}

pub(super) fn keep_for_ever(response: &mut Response<Body>, now: Timestamp) {
    let year = Timestamp::from_second(now.as_second() + YEAR_SECONDS).unwrap_or(Timestamp::MAX);
    set(response, header::CACHE_CONTROL, "public, immutable");
    set(response, header::EXPIRES, &http_date(year));
}

fn not_modified(document: &Document) -> Response<Body> {
    let mut response = answer::full(StatusCode::NOT_MODIFIED, document.content_type, "");
    response.headers_mut().remove(header::CONTENT_TYPE);
    set(&mut response, header::ETAG, &document.etag);
    response
}

fn is_known(document: &Document, modified: Option<&str>, headers: &HeaderMap) -> bool {
    let value = |name: HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
    match value(header::IF_NONE_MATCH) {
        Some(known) => {
            let weak = |tag: &str| tag.trim().trim_start_matches("W/") == document.etag;
            !document.etag.is_empty() && (known.trim() == "*" || known.split(',').any(weak))
        }
        // Clients send back the Last-Modified that they got.
        None => modified.is_some() && value(header::IF_MODIFIED_SINCE) == modified,
    }
}

fn http_date(at: Timestamp) -> String {
    at.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string()
}

fn set(response: &mut Response<Body>, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value)
        && !value.is_empty()
    {
        response.headers_mut().insert(name, value);
    }
}
