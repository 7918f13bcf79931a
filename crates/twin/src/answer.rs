//! Parses a response for comparison: JSON with its order, protobuf decoded, watches event by event.

use crate::{client::Reply, json::Json, protobuf};

/// Headers that clients use.
const COMPARED_HEADERS: [&str; 8] = [
    "content-type",
    "warning",
    "location",
    "allow",
    "retry-after",
    "www-authenticate",
    "cache-control",
    "x-content-type-options",
];

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// 0 if there was no response.
    pub status: u16,
    pub headers: Vec<(&'static str, String)>,
    pub content: Content,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    Empty,
    Json(Json),
    /// The events of a watch.
    Events(Vec<Json>),
    Text(String),
    /// No response, or half of one.
    Failed(String),
}

impl Answer {
    pub fn failed() -> Answer {
        // The client's error text is not compared, only that there was no response.
        Answer { status: 0, headers: Vec::new(), content: Content::Failed("no answer".to_owned()) }
    }

    pub fn read(reply: &Reply, is_watch: bool) -> Answer {
        let mut headers = Vec::new();
        for name in COMPARED_HEADERS {
            for value in reply.headers.get_all(name) {
                headers.push((name, String::from_utf8_lossy(value.as_bytes()).into_owned()));
            }
        }
        let content_type = headers.first().filter(|(name, _)| *name == "content-type");
        let content_type = content_type.map_or("", |(_, value)| value);
        let content = content(content_type, &reply.body, is_watch && reply.status == 200);
        Answer { status: reply.status, headers, content }
    }

    /// The object or list of the response, without the protobuf envelope.
    pub fn object(&self) -> Option<&Json> {
        match &self.content {
            Content::Json(json) => Some(json.get(protobuf::MESSAGE).unwrap_or(json)),
            _ => None,
        }
    }

    /// Drops the events of a watch after the first that contains a text: how many more arrive depends on the
    /// network.
    pub fn end_events_with(&mut self, text: &str) {
        if let Content::Events(events) = &mut self.content
            && let Some(at) = events.iter().position(|event| event.to_string().contains(text))
        {
            events.truncate(at + 1);
        }
    }

    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }
}

fn content(content_type: &str, body: &[u8], is_watch: bool) -> Content {
    if body.is_empty() {
        return if is_watch { Content::Events(Vec::new()) } else { Content::Empty };
    }
    let form = content_type.split(';').next().unwrap_or_default();
    if form.ends_with("protobuf") {
        return if is_watch {
            Content::Events(protobuf::events(body))
        } else {
            Content::Json(protobuf::message(body))
        };
    }
    if form.ends_with("yaml")
        && let Some(value) = unordered_yaml(body)
    {
        return Content::Json(value);
    }
    if !form.ends_with("json") {
        return text(body);
    }
    if is_watch {
        return Content::Events(events(body));
    }
    match Json::parse(body) {
        Some((json, [])) => Content::Json(json),
        _ => text(body),
    }
}

/// The value of a YAML document, for errors and discovery: there, kube-apiserver's lists or quotations are in
/// hash map order. Other documents are compared as text.
fn unordered_yaml(body: &[u8]) -> Option<Json> {
    let is_kind = |kind: &str| body.windows(kind.len()).any(|text| text == kind.as_bytes());
    if !["Status", "APIResourceList", "APIGroupList"].iter().any(|kind| is_kind(&format!("kind: {kind}\n"))) {
        return None;
    }
    let read = schema::yaml::to_json(body).ok()?;
    Json::parse(&read.json).map(|(json, _)| json)
}

/// The events of a watch in JSON. A truncated last one is dropped: the client closed the connection.
fn events(mut body: &[u8]) -> Vec<Json> {
    let mut events = Vec::new();
    while let Some((event, rest)) = Json::parse(body) {
        events.push(event);
        body = rest;
    }
    if body.contains(&b'\n') {
        events.push(Json::text(&format!("not JSON: {}", String::from_utf8_lossy(body))));
    }
    events
}

fn text(body: &[u8]) -> Content {
    Content::Text(String::from_utf8_lossy(body).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn broken_json_is_kept_as_text() {
        let body = br#"{"metadata":{}},"resourceVersion":"5"}"#;
        assert!(matches!(content("application/json", body, false), Content::Text(_)));
    }

    #[test]
    fn a_watch_is_read_event_by_event() {
        let body = b"{\"type\":\"ADDED\"}\n{\"type\":\"DELETED\"}\n{\"ty";
        let Content::Events(events) = content("application/json", body, true) else { panic!() };
        assert_eq!(events.len(), 2);
    }
}
