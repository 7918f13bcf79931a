//! What a watch asks in URLs, and how it reads the answers: only as deep as it must.

use super::step::{Ask, Refusal};
use http::{HeaderValue, Request, header, response};
use kube::client::Body;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::{borrow::Cow, time::Duration};

/// What is to be followed.
#[derive(Clone, Debug)]
pub(crate) struct Wanted {
    /// Where it is listed, as `/api/v1/namespaces/prod/pods`.
    pub(crate) path: String,
    pub(crate) labels: String,
    pub(crate) fields: String,
    pub(crate) metadata_only: bool,
}

/// One line of a watch.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Frame<'a> {
    Object { is_removed: bool, json: &'a str },
    Bookmark { version: u64, ends_list: bool },
    Refused(Refusal),
}

/// One answer to a list.
#[derive(Debug)]
pub(crate) struct Page<'a> {
    pub(crate) version: u64,
    pub(crate) next: Option<String>,
    pub(crate) items: Vec<&'a RawValue>,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum Garbled {
    #[error("the answer is not what a watch or list answers: {0}")]
    Json(#[from] serde_json::Error),
    #[error("the answer has a resourceVersion that is not a number: \"{0}\"")]
    Version(String),
    #[error("an event has the unknown type \"{0}\"")]
    Type(String),
}

/// How many objects a page holds: client-go asks for as many.
pub(super) const PAGE: u32 = 500;

const JSON: &str = "application/json";
// Kubernetes: the list comes as a table of its own kind, the events as single ones.
const METADATA: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
const METADATA_LIST: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";

/// Marks the bookmark behind the last object of a list that came as events.
const INITIAL_EVENTS_END: &str = "k8s.io/initial-events-end";

pub(crate) fn request(wanted: &Wanted, ask: &Ask, seconds: u64) -> Result<Request<Body>, http::Error> {
    let mut url = Url { text: wanted.path.clone(), separator: '?' };
    if !wanted.labels.is_empty() {
        url.add("labelSelector", &wanted.labels);
    }
    if !wanted.fields.is_empty() {
        url.add("fieldSelector", &wanted.fields);
    }
    match ask {
        Ask::Page { next, is_whole } => {
            if !is_whole {
                url.add("limit", &PAGE.to_string());
            }
            if let Some(next) = next {
                url.add("continue", next);
            }
        }
        Ask::Stream | Ask::Follow { .. } => {
            url.add("watch", "true");
            url.add("allowWatchBookmarks", "true");
            url.add("timeoutSeconds", &seconds.to_string());
        }
    }
    match ask {
        Ask::Stream => {
            url.add("sendInitialEvents", "true");
            url.add("resourceVersionMatch", "NotOlderThan");
        }
        Ask::Follow { version } => url.add("resourceVersion", &version.to_string()),
        Ask::Page { .. } => {}
    }
    let accept = match (wanted.metadata_only, ask) {
        (false, _) => JSON,
        (true, Ask::Page { .. }) => METADATA_LIST,
        (true, Ask::Stream | Ask::Follow { .. }) => METADATA,
    };
    Request::get(url.text)
        .header(header::ACCEPT, accept)
        // Kubernetes from 1.37 packs every event by itself, which decompression layers stumble over.
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

pub(crate) fn frame(line: &[u8]) -> Result<Frame<'_>, Garbled> {
    #[derive(Deserialize)]
    struct Event<'a> {
        r#type: &'a str,
        #[serde(borrow)]
        object: &'a RawValue,
    }
    let event: Event<'_> = serde_json::from_slice(line)?;
    let json = event.object.get();
    match event.r#type {
        "ADDED" | "MODIFIED" => Ok(Frame::Object { is_removed: false, json }),
        "DELETED" => Ok(Frame::Object { is_removed: true, json }),
        "BOOKMARK" => bookmark(json),
        "ERROR" => Ok(Frame::Refused(status(json.as_bytes()))),
        other => Err(Garbled::Type(other.to_owned())),
    }
}

fn bookmark(json: &str) -> Result<Frame<'_>, Garbled> {
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
    Ok(Frame::Bookmark { version: number(metadata.resource_version)?, ends_list })
}

pub(crate) fn page(body: &[u8]) -> Result<Page<'_>, Garbled> {
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
    let next = metadata.r#continue.filter(|token| !token.is_empty()).map(Cow::into_owned);
    Ok(Page { version: number(metadata.resource_version)?, next, items: items.unwrap_or_default() })
}

fn number(version: &str) -> Result<u64, Garbled> {
    version.parse().map_err(|_| Garbled::Version(version.to_owned()))
}

/// Why an answer was not what was asked for.
pub(crate) fn refusal(head: &response::Parts, body: &[u8]) -> Refusal {
    let seconds = head.headers.get(header::RETRY_AFTER);
    let seconds = seconds.and_then(|value| value.to_str().ok()?.parse().ok());
    let retry_after = Duration::from_secs(seconds.unwrap_or_default());
    Refusal { code: head.status.as_u16(), retry_after, ..status(body) }
}

fn status(body: &[u8]) -> Refusal {
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
    Refusal { code: status.code, message: status.message, retry_after: Duration::from_secs(seconds) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(ask: &Ask, metadata_only: bool, expected: &str) {
        let wanted = Wanted {
            path: "/api/v1/pods".to_owned(),
            labels: "app in (a,b)".to_owned(),
            fields: String::new(),
            metadata_only,
        };
        let request = request(&wanted, ask, 400).unwrap();
        let accept = request.headers()["accept"].to_str().unwrap();
        assert_eq!(format!("{} {accept}", request.uri()), expected);
    }

    #[test]
    fn urls_say_what_is_asked() {
        let labels = "/api/v1/pods?labelSelector=app%20in%20%28a%2Cb%29";
        let watch = "watch=true&allowWatchBookmarks=true&timeoutSeconds=400";
        let page = |next: Option<&str>, is_whole| Ask::Page { next: next.map(str::to_owned), is_whole };
        check(&page(None, false), false, &format!("{labels}&limit=500 {JSON}"));
        check(&page(Some("a=b"), false), false, &format!("{labels}&limit=500&continue=a%3Db {JSON}"));
        check(&page(None, true), true, &format!("{labels} {METADATA_LIST}"));
        check(&Ask::Follow { version: 7 }, false, &format!("{labels}&{watch}&resourceVersion=7 {JSON}"));
        let streaming = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan";
        check(&Ask::Stream, true, &format!("{labels}&{watch}&{streaming} {METADATA}"));
    }

    #[test]
    fn lines_become_frames() {
        let refused = |code, message: &str, seconds| {
            let retry_after = Duration::from_secs(seconds);
            Frame::Refused(Refusal { code, message: message.to_owned(), retry_after })
        };
        for (line, expected) in [
            (r#"{"type":"ADDED","object":{"a":1}}"#, Frame::Object { is_removed: false, json: r#"{"a":1}"# }),
            (r#"{"type":"MODIFIED","object":{}}"#, Frame::Object { is_removed: false, json: "{}" }),
            (r#"{"object":{},"type":"DELETED"}"#, Frame::Object { is_removed: true, json: "{}" }),
            (
                r#"{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"12"}}}"#,
                Frame::Bookmark { version: 12, ends_list: false },
            ),
            (
                r#"{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"12",
                    "annotations":{"k8s.io/initial-events-end":"true"}}}}"#,
                Frame::Bookmark { version: 12, ends_list: true },
            ),
            (r#"{"type":"ERROR","object":{"code":410,"message":"too old"}}"#, refused(410, "too old", 0)),
            (
                r#"{"type":"ERROR","object":{"code":429,"details":{"retryAfterSeconds":3}}}"#,
                refused(429, "", 3),
            ),
        ] {
            assert_eq!(frame(line.as_bytes()).unwrap(), expected, "{line}");
        }
        for line in ["", "{}", r#"{"type":"NEWS","object":{}}"#, r#"{"type":"BOOKMARK","object":{}}"#] {
            frame(line.as_bytes()).unwrap_err();
        }
    }

    #[test]
    fn pages_are_read_as_deep_as_needed() {
        let body =
            br#"{"kind":"PodList","metadata":{"resourceVersion":"9","continue":"\u003c"},"items":[{"a":1}]}"#;
        let read = page(body).unwrap();
        assert_eq!((read.version, read.next.as_deref(), read.items.len()), (9, Some("<"), 1));
        let last = page(br#"{"metadata":{"resourceVersion":"9","continue":""},"items":null}"#).unwrap();
        assert_eq!((last.next, last.items.len()), (None, 0));
    }
}
