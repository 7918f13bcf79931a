//! Bytes of any sort: a reader may refuse them, but must come back.

use kinds::types;
use proptest::prelude::*;
use schema::decode::{FieldValidation, decode, decode_any, type_meta};
use schema::encode::{encode, encode_any};
use schema::proto::{self, Envelope};
use schema::types::TypeId;
use schema::yaml;

/// What readers do with text and messages is decided by few characters.
fn likely_json() -> impl Strategy<Value = Vec<u8>> {
    let pieces = prop::sample::select(vec![
        "{",
        "}",
        "[",
        "]",
        ":",
        ",",
        "\"",
        "\\",
        "\\u",
        "d800",
        "null",
        "true",
        "-",
        "1",
        ".5",
        "e9",
        " ",
        "\n",
        "\"spec\"",
        "\"metadata\"",
        "\"labels\"",
        "\"containers\"",
        "\"name\"",
        "\"é\"",
        "\u{0}",
        "&a",
        "*a",
        "<<",
        "- ",
        "? ",
        "|",
        ">",
        "#",
        "!!",
        "%",
        "0x",
    ]);
    prop::collection::vec(pieces, 0..60).prop_map(|pieces| pieces.concat().into_bytes())
}

fn check_text(body: &[u8]) {
    let _ = type_meta(body);
    if let Ok(read) = decode_any(body, FieldValidation::Warn) {
        let written = encode_any(&read.value);
        assert_eq!(decode_any(&written, FieldValidation::Strict).unwrap().value, read.value);
    }
    for kind in ["Pod", "Secret", "ConfigMap"] {
        let (id, _) = types().kind("", "v1", kind).unwrap();
        if let Ok(read) = decode(types(), id, body, FieldValidation::Warn) {
            let written = encode(types(), id, &read.value);
            assert_eq!(decode(types(), id, &written, FieldValidation::Strict).unwrap().value, read.value);
        }
    }
    let _ = yaml::to_json(body);
}

fn check_message(body: &[u8], id: TypeId) {
    let _ = Envelope::open(body);
    if let Ok(read) = proto::decode(types(), id, body) {
        let again = proto::decode(types(), id, &proto::encode(types(), id, &read)).unwrap();
        assert_eq!(again, read);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn bytes_never_break_a_reader(body in prop::collection::vec(any::<u8>(), 0..200)) {
        check_text(&body);
    }

    #[test]
    fn text_never_breaks_a_reader(body in likely_json()) {
        check_text(&body);
    }

    #[test]
    fn messages_never_break_a_reader(
        body in prop::collection::vec(prop_oneof![any::<u8>(), 0..0x20_u8], 0..120),
        id in 0..types().len(),
    ) {
        check_message(&body, TypeId(id));
    }
}

#[test]
fn nested_messages_are_refused_before_the_stack_ends() {
    let (id, of) =
        types().named("io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps").unwrap();
    let number = of.field("not").unwrap().proto.as_ref().unwrap().number;
    let mut message = Vec::new();
    for _ in 0..600 {
        let mut outer = Vec::new();
        push_varint(&mut outer, u64::from(number) << 3 | 2);
        push_varint(&mut outer, message.len() as u64);
        outer.append(&mut message);
        message = outer;
    }
    let refused = proto::decode(types(), id, &message).unwrap_err();
    assert_eq!(refused.to_string(), "proto: nesting exceeds 120 levels");
}

fn push_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}
