//! Recorded objects: the Go code of Kubernetes wrote these bytes, so we must.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use kinds::types;
use schema::decode::{FieldValidation, decode};
use schema::encode::{encode, normalize};
use schema::proto::{self, Envelope};
use serde_json::Value;

use crate::random::as_message;

static RECORDED: &str = include_str!("../data/recorded.txt");

struct Recorded {
    group: &'static str,
    version: &'static str,
    kind: &'static str,
    json: &'static str,
    /// Empty where the kind has no message.
    body: Vec<u8>,
}

fn recorded() -> Vec<Recorded> {
    let mut lines = RECORDED.lines().filter(|line| !line.starts_with('#'));
    let mut all = Vec::new();
    while let Some(head) = lines.next() {
        let mut words = head.strip_prefix('@').unwrap().split(' ');
        let (group, version, kind) = (words.next().unwrap(), words.next().unwrap(), words.next().unwrap());
        let group = if group == "-" { "" } else { group };
        let (json, body) = (lines.next().unwrap(), lines.next().unwrap());
        let body = if body == "-" { Vec::new() } else { STANDARD.decode(body).unwrap() };
        all.push(Recorded { group, version, kind, json, body });
    }
    all
}

#[test]
fn json_is_read_and_written_without_a_change() {
    for Recorded { group, version, kind, json, .. } in recorded() {
        let (id, _) = types().kind(group, version, kind).unwrap();
        let read = decode(types(), id, json.as_bytes(), FieldValidation::Strict).unwrap();
        assert_eq!(String::from_utf8(encode(types(), id, &read.value)).unwrap(), json, "{kind}");

        let mut normal = read.value.clone();
        normalize(types(), id, &mut normal);
        assert_eq!(normal, serde_json::from_str::<Value>(json).unwrap(), "{kind}");
        assert_eq!(String::from_utf8(encode(types(), id, &normal)).unwrap(), json, "{kind}");
    }
}

#[test]
fn protobuf_is_read_and_written_without_a_change() {
    let mut bodies = 0;
    for Recorded { group, version, kind, json, body } in recorded() {
        let (id, of) = types().kind(group, version, kind).unwrap();
        assert_eq!(of.message().is_empty(), body.is_empty(), "{kind}");
        if body.is_empty() {
            continue;
        }
        bodies += 1;
        let envelope = Envelope::open(&body).unwrap();
        assert_eq!(envelope.kind, kind);
        let from_json = decode(types(), id, json.as_bytes(), FieldValidation::Strict).unwrap().value;
        let mut from_message = proto::decode(types(), id, &envelope.raw).unwrap();
        from_message["kind"] = Value::from(envelope.kind.clone());
        from_message["apiVersion"] = Value::from(envelope.api_version.clone());
        let said = |object: &Value| as_message(id, object.clone());
        assert_eq!(said(&from_message), said(&from_json), "{kind}");
        for object in [from_message, from_json] {
            let message = proto::encode(types(), id, &object);
            let sealed = Envelope::new(&envelope.api_version, &envelope.kind, &message).seal();
            assert_eq!(sealed, body, "{kind}");
        }
    }
    assert_eq!(bodies, 143);
}

#[test]
fn a_watch_frame_holds_the_body_of_its_object() {
    let frame = proto::watch_frame("ADDED", b"k8s\0...");
    let expected = b"\0\0\0\x12\x0a\x05ADDED\x12\x09\x0a\x07k8s\0...";
    assert_eq!(frame, expected);
    let (event, _) = types().named("io.k8s.apimachinery.pkg.apis.meta.v1.WatchEvent").unwrap();
    // The object of this one is JSON, which is what a reader of ours can show.
    let frame = proto::watch_frame("DELETED", br#"{"a":1}"#);
    let read = proto::decode(types(), event, &frame[4..]).unwrap();
    assert_eq!(read, serde_json::json!({"type": "DELETED", "object": {"a": 1}}));
}
