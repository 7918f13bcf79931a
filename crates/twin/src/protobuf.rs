//! Converts protobuf to and from JSON by the types of the built-in kinds, for request and response bodies.

use crate::json::Json;
use schema::{
    decode::{self, FieldValidation},
    proto::{self, Envelope},
};

/// The member that holds a decoded message.
pub const MESSAGE: &str = "message";

/// Encodes an object as its own kind.
pub fn encode(object: &Json) -> Option<Vec<u8>> {
    let (api_version, kind) = (object.text_at(&["apiVersion"])?, object.text_at(&["kind"])?);
    let id = type_id(&api_version, &kind)?;
    let text = object.to_string();
    let decoded = decode::decode(kinds::types(), id, text.as_bytes(), FieldValidation::Ignore).ok()?;
    let message = proto::encode(kinds::types(), id, &decoded.value);
    Some(Envelope::new(&api_version, &kind, &message).seal())
}

/// Decodes a body, and checks that encoding it again gives the same fields: otherwise a field missing in our
/// types would be lost unnoticed.
pub fn message(body: &[u8]) -> Json {
    let Ok(envelope) = Envelope::open(body) else {
        return Json::text(&format!("no protobuf envelope: {}", String::from_utf8_lossy(body)));
    };
    let mut out = Json::Object(Vec::new());
    out.set("apiVersion", Json::text(&envelope.api_version));
    out.set("kind", Json::text(&envelope.kind));
    out.set("contentType", Json::text(&envelope.content_type));
    out.set("contentEncoding", Json::text(&envelope.content_encoding));
    if envelope.content_type == "application/json" {
        let inner = Json::parse(&envelope.raw).map_or(Json::Null, |(json, _)| json);
        out.set(MESSAGE, inner);
        return out;
    }
    let Some(id) = type_id(&envelope.api_version, &envelope.kind) else {
        out.set("unknown type", Json::Bool(true));
        return out;
    };
    match proto::decode(kinds::types(), id, &envelope.raw) {
        Ok(value) => {
            let same = has_same_fields(&proto::encode(kinds::types(), id, &value), &envelope.raw);
            out.set(MESSAGE, Json::from_value(&value));
            out.set("the same fields when encoded again", Json::Bool(same));
        }
        Err(error) => out.set("cannot be decoded", Json::text(&error.to_string())),
    }
    out
}

/// The events of a watch: frames of a length in four bytes and a `WatchEvent`.
pub fn events(mut body: &[u8]) -> Vec<Json> {
    let mut events = Vec::new();
    while let Some((length, rest)) = body.split_first_chunk::<4>() {
        let length = u32::from_be_bytes(*length) as usize;
        // A truncated frame is dropped: the client closed the connection.
        let Some((frame, rest)) = rest.split_at_checked(length) else { break };
        events.push(event(frame).unwrap_or_else(|| Json::text("a frame that is no WatchEvent")));
        body = rest;
    }
    events
}

fn event(frame: &[u8]) -> Option<Json> {
    let (mut event_type, mut object) = (Json::Null, Json::Null);
    for (number, payload) in fields(frame)? {
        match number {
            1 => event_type = Json::text(std::str::from_utf8(payload).ok()?),
            2 => {
                let (_, raw) = fields(payload)?.into_iter().find(|(number, _)| *number == 1)?;
                object = message(raw);
            }
            _ => return None,
        }
    }
    Some(Json::Object(vec![("type".to_owned(), event_type), ("object".to_owned(), object)]))
}

/// Whether two messages have the same fields in the same order. JSON inside may be spelled differently.
fn has_same_fields(one: &[u8], other: &[u8]) -> bool {
    if one == other || (one.starts_with(b"{") && other.starts_with(b"{")) {
        return true;
    }
    let (Some(one), Some(other)) = (fields(one), fields(other)) else { return false };
    one.len() == other.len()
        && one.iter().zip(&other).all(|(one, other)| one.0 == other.0 && has_same_fields(one.1, other.1))
}

/// The fields of a message: numbers, and the bytes of each.
fn fields(mut message: &[u8]) -> Option<Vec<(u64, &[u8])>> {
    let mut fields = Vec::new();
    while !message.is_empty() {
        let (tag, rest) = varint(message)?;
        let (payload, rest) = match tag & 7 {
            0 => {
                let (_, behind) = varint(rest)?;
                rest.split_at_checked(rest.len() - behind.len())?
            }
            1 => rest.split_at_checked(8)?,
            2 => {
                let (length, rest) = varint(rest)?;
                rest.split_at_checked(usize::try_from(length).ok()?)?
            }
            5 => rest.split_at_checked(4)?,
            _ => return None,
        };
        fields.push((tag >> 3, payload));
        message = rest;
    }
    Some(fields)
}

fn varint(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let mut value = 0;
    for (at, byte) in bytes.iter().enumerate().take(10) {
        value |= u64::from(byte & 0x7f).checked_shl(7 * u32::try_from(at).ok()?)?;
        if byte & 0x80 == 0 {
            return Some((value, &bytes[at + 1..]));
        }
    }
    None
}

fn type_id(api_version: &str, kind: &str) -> Option<schema::types::TypeId> {
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let found = kinds::types().kind(group, version, kind);
    // Options and metadata representations can be in any group.
    let found = found.or_else(|| kinds::types().kind("meta.k8s.io", "v1", kind));
    found.map(|(id, _)| id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_config_map_goes_through_protobuf_unchanged() {
        let object = r#"{"apiVersion":"v1","data":{"a":"b"},"kind":"ConfigMap","metadata":{"name":"x"}}"#;
        let decoded = message(&encode(&Json::literal(object)).unwrap());
        assert_eq!(decoded.text_at(&[MESSAGE, "data", "a"]).unwrap(), "b");
        assert_eq!(decoded.get("the same fields when encoded again"), Some(&Json::Bool(true)));
    }

    #[test]
    fn a_watch_in_protobuf_is_read_frame_by_frame() {
        let object = r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x"}}"#;
        let body = encode(&Json::literal(object)).unwrap();
        let mut stream = proto::watch_frame("ADDED", &body);
        stream.extend(&proto::watch_frame("DELETED", &body)[..20]);
        let events = events(&stream);
        assert_eq!(events.len(), 1);
        assert_eq!(events[0].text_at(&["object", MESSAGE, "metadata", "name"]).unwrap(), "x");
    }
}
