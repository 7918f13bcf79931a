//! A reply's bytes in, what can be compared out: JSON in its own order, protobuf decoded, watches event by event.

use crate::{client::Reply, json::Json, protobuf};

/// Headers that clients look at.
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
    /// 0 where there was none.
    pub status: u16,
    pub headers: Vec<(&'static str, String)>,
    pub content: Content,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    Empty,
    Json(Json),
    /// What a watch told.
    Events(Vec<Json>),
    Text(String),
    /// No answer came, or half of one.
    Failed(String),
}

impl Answer {
    pub fn failed() -> Answer {
        // The reason is the client's own text; that nothing came is what counts.
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

    /// The object or list that it holds, without the wrapping of protobuf.
    pub fn object(&self) -> Option<&Json> {
        match &self.content {
            Content::Json(json) => Some(json.get(protobuf::MESSAGE).unwrap_or(json)),
            _ => None,
        }
    }

    /// Drops the events of a watch behind the first that holds a text: how many come at once is up to the network.
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

/// What a YAML document says, where the order of its lists or of what it quotes is that of a hash map in the real server:
/// refusals and discovery. Other documents are compared as text.
fn unordered_yaml(body: &[u8]) -> Option<Json> {
    let is_kind = |kind: &str| body.windows(kind.len()).any(|text| text == kind.as_bytes());
    if !["Status", "APIResourceList", "APIGroupList"].iter().any(|kind| is_kind(&format!("kind: {kind}\n"))) {
        return None;
    }
    let read = schema::yaml::to_json(body).ok()?;
    Json::parse(&read.json).map(|(json, _)| json)
}

/// The events of a watch in JSON. A last one that is cut off is left out: the client hung up in its middle.
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
