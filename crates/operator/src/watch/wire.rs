//! The URLs of lists and watches, and their answers, parsed only as deep as needed.

use super::state::{ApiError, Query};
use http::{HeaderValue, Request, header, response};
use kube::client::Body;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::{borrow::Cow, time::Duration};

/// What to list and watch.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    /// The path of the collection, as `/api/v1/namespaces/prod/pods`.
    pub(crate) path: String,
    pub(crate) label_selector: String,
    pub(crate) field_selector: String,
    pub(crate) metadata_only: bool,
}

/// One event of a watch. `O` is its object: JSON on the wire, then an item of the cache.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum WatchEvent<O> {
    /// `ADDED` or `MODIFIED`.
    Applied(O),
    Deleted(O),
    /// `ends_list` marks the bookmark after the last object of a list that came as events.
    Bookmark {
        version: u64,
        ends_list: bool,
    },
    Error(ApiError),
}

/// One page of a list.
#[derive(Debug)]
pub(crate) struct Page<'a> {
    pub(crate) version: u64,
    pub(crate) continue_token: Option<String>,
    pub(crate) items: Vec<&'a RawValue>,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum BadResponse {
    #[error("the answer is not what a watch or list answers: {0}")]
    Json(#[from] serde_json::Error),
    #[error("the answer has a resourceVersion that is not a number: \"{0}\"")]
    Version(String),
    #[error("an event has the unknown type \"{0}\"")]
    Type(String),
}

/// Objects in a page: client-go asks for as many.
const PAGE_SIZE: u32 = 500;

const JSON: &str = "application/json";
// Kubernetes: a list in metadata form has a kind of its own.
const METADATA: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
const METADATA_LIST: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";

const INITIAL_EVENTS_END: &str = "k8s.io/initial-events-end";

pub(crate) fn request(target: &Target, query: &Query, seconds: u64) -> Result<Request<Body>, http::Error> {
    let mut url = Url { text: target.path.clone(), separator: '?' };
    if !target.label_selector.is_empty() {
        url.add("labelSelector", &target.label_selector);
    }
    if !target.field_selector.is_empty() {
        url.add("fieldSelector", &target.field_selector);
    }
    match query {
        Query::ListPage { continue_token, is_whole } => {
            if !is_whole {
                url.add("limit", &PAGE_SIZE.to_string());
            }
            if let Some(token) = continue_token {
                url.add("continue", token);
            }
        }
        Query::StreamList | Query::Watch { .. } => {
            url.add("watch", "true");
            url.add("allowWatchBookmarks", "true");
            url.add("timeoutSeconds", &seconds.to_string());
        }
    }
    match query {
        Query::StreamList => {
            url.add("sendInitialEvents", "true");
            url.add("resourceVersionMatch", "NotOlderThan");
        }
        Query::Watch { from } => url.add("resourceVersion", &from.to_string()),
        Query::ListPage { .. } => {}
    }
    let accept = match (target.metadata_only, query) {
        (false, _) => JSON,
        (true, Query::ListPage { .. }) => METADATA_LIST,
        (true, Query::StreamList | Query::Watch { .. }) => METADATA,
    };
    Request::get(url.text)
        .header(header::ACCEPT, accept)
        // Kubernetes compresses every event by itself from 1.37 on, which decompression layers cannot read.
        .header(header::ACCEPT_ENCODING, HeaderValue::from_static("identity"))
        .body(Body::empty())
}

struct Url {
    text: String,
    separator: char,
}

impl Url {
    fn add(&mut self, name: &str, value: &str) {
        self.text.push(std::mem::replace(&mut self.separator, '&'));
        self.text.push_str(name);
        self.text.push('=');
        for byte in value.bytes() {
            match byte {
                b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                    self.text.push(char::from(byte));
                }
                _ => self.text.push_str(&format!("%{byte:02X}")),
            }
        }
    }
}

impl<O> WatchEvent<O> {
    /// The same event with another form of its object, or nothing if `read` cannot read it.
    pub(super) fn try_map<T>(self, read: impl FnOnce(O) -> Option<T>) -> Option<WatchEvent<T>> {
        Some(match self {
            WatchEvent::Applied(object) => WatchEvent::Applied(read(object)?),
            WatchEvent::Deleted(object) => WatchEvent::Deleted(read(object)?),
            WatchEvent::Bookmark { version, ends_list } => WatchEvent::Bookmark { version, ends_list },
            WatchEvent::Error(error) => WatchEvent::Error(error),
        })
    }
}

pub(crate) fn event(line: &[u8]) -> Result<WatchEvent<&str>, BadResponse> {
    #[derive(Deserialize)]
    struct Line<'a> {
        r#type: &'a str,
        #[serde(borrow)]
        object: &'a RawValue,
    }
    let event: Line<'_> = serde_json::from_slice(line)?;
    let json = event.object.get();
    match event.r#type {
        "ADDED" | "MODIFIED" => Ok(WatchEvent::Applied(json)),
        "DELETED" => Ok(WatchEvent::Deleted(json)),
        "BOOKMARK" => bookmark(json),
        "ERROR" => Ok(WatchEvent::Error(status(json.as_bytes()))),
        other => Err(BadResponse::Type(other.to_owned())),
    }
}

fn bookmark(json: &str) -> Result<WatchEvent<&str>, BadResponse> {
    #[derive(Deserialize)]
    struct Bookmark<'a> {
        #[serde(borrow)]
        metadata: Metadata<'a>,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Metadata<'a> {
        resource_version: &'a str,
        #[serde(default)]
        annotations: std::collections::BTreeMap<String, String>,
    }
    let Bookmark { metadata } = serde_json::from_str(json)?;
    let ends_list = metadata.annotations.get(INITIAL_EVENTS_END).is_some_and(|value| value == "true");
    Ok(WatchEvent::Bookmark { version: number(metadata.resource_version)?, ends_list })
}

pub(crate) fn page(body: &[u8]) -> Result<Page<'_>, BadResponse> {
    #[derive(Deserialize)]
    struct List<'a> {
        #[serde(borrow)]
        metadata: Metadata<'a>,
        #[serde(borrow)]
        items: Option<Vec<&'a RawValue>>,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Metadata<'a> {
        resource_version: &'a str,
        #[serde(borrow)]
        r#continue: Option<Cow<'a, str>>,
    }
    let List { metadata, items } = serde_json::from_slice(body)?;
    let continue_token = metadata.r#continue.filter(|token| !token.is_empty()).map(Cow::into_owned);
    Ok(Page { version: number(metadata.resource_version)?, continue_token, items: items.unwrap_or_default() })
}

fn number(version: &str) -> Result<u64, BadResponse> {
    version.parse().map_err(|_| BadResponse::Version(version.to_owned()))
}

/// The error of a response that has an error code.
pub(crate) fn error(head: &response::Parts, body: &[u8]) -> ApiError {
    let seconds = head.headers.get(header::RETRY_AFTER);
    let seconds = seconds.and_then(|value| value.to_str().ok()?.parse().ok());
    let retry_after = Duration::from_secs(seconds.unwrap_or_default());
    ApiError { code: head.status.as_u16(), retry_after, ..status(body) }
}

fn status(body: &[u8]) -> ApiError {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Status {
        code: u16,
        message: String,
        details: Option<Details>,
    }
    #[derive(Default, Deserialize)]
    #[serde(default, rename_all = "camelCase")]
    struct Details {
        retry_after_seconds: u64,
    }
    let status: Status = serde_json::from_slice(body).unwrap_or_default();
    let seconds = status.details.unwrap_or_default().retry_after_seconds;
    ApiError { code: status.code, message: status.message, retry_after: Duration::from_secs(seconds) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(query: &Query, metadata_only: bool, expected: &str) {
        let target = Target {
            path: "/api/v1/pods".to_owned(),
            label_selector: "app in (a,b)".to_owned(),
            field_selector: String::new(),
            metadata_only,
        };
        let request = request(&target, query, 400).unwrap();
        let accept = request.headers()["accept"].to_str().unwrap();
        assert_eq!(format!("{} {accept}", request.uri()), expected);
    }

    #[test]
    fn queries_become_urls() {
        let labels = "/api/v1/pods?labelSelector=app%20in%20%28a%2Cb%29";
        let watch = "watch=true&allowWatchBookmarks=true&timeoutSeconds=400";
        let page = |token: Option<&str>, is_whole| Query::ListPage {
            continue_token: token.map(str::to_owned),
            is_whole,
        };
        check(&page(None, false), false, &format!("{labels}&limit=500 {JSON}"));
        check(&page(Some("a=b"), false), false, &format!("{labels}&limit=500&continue=a%3Db {JSON}"));
        check(&page(None, true), true, &format!("{labels} {METADATA_LIST}"));
        check(&Query::Watch { from: 7 }, false, &format!("{labels}&{watch}&resourceVersion=7 {JSON}"));
        let streaming = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan";
        check(&Query::StreamList, true, &format!("{labels}&{watch}&{streaming} {METADATA}"));
    }

    #[test]
    fn lines_become_watch_events() {
        let error = |code, message: &str, seconds| {
            let retry_after = Duration::from_secs(seconds);
            WatchEvent::Error(ApiError { code, message: message.to_owned(), retry_after })
        };
        for (line, expected) in [
            (r#"{"type":"ADDED","object":{"a":1}}"#, WatchEvent::Applied(r#"{"a":1}"#)),
            (r#"{"type":"MODIFIED","object":{}}"#, WatchEvent::Applied("{}")),
            (r#"{"object":{},"type":"DELETED"}"#, WatchEvent::Deleted("{}")),
            (
                r#"{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"12"}}}"#,
                WatchEvent::Bookmark { version: 12, ends_list: false },
            ),
            (
                r#"{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"12",
                    "annotations":{"k8s.io/initial-events-end":"true"}}}}"#,
                WatchEvent::Bookmark { version: 12, ends_list: true },
            ),
            (r#"{"type":"ERROR","object":{"code":410,"message":"too old"}}"#, error(410, "too old", 0)),
            (
                r#"{"type":"ERROR","object":{"code":429,"details":{"retryAfterSeconds":3}}}"#,
                error(429, "", 3),
            ),
        ] {
            assert_eq!(event(line.as_bytes()).unwrap(), expected, "{line}");
        }
        for line in ["", "{}", r#"{"type":"NEWS","object":{}}"#, r#"{"type":"BOOKMARK","object":{}}"#] {
            event(line.as_bytes()).unwrap_err();
        }
    }

    #[test]
    fn pages_are_read_as_deep_as_needed() {
        let body =
            br#"{"kind":"PodList","metadata":{"resourceVersion":"9","continue":"\u003c"},"items":[{"a":1}]}"#;
        let read = page(body).unwrap();
        assert_eq!((read.version, read.continue_token.as_deref(), read.items.len()), (9, Some("<"), 1));
        let last = page(br#"{"metadata":{"resourceVersion":"9","continue":""},"items":null}"#).unwrap();
        assert_eq!((last.continue_token, last.items.len()), (None, 0));
    }
}
