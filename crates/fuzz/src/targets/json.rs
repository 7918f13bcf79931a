//! JSON of every built-in kind: a decoded object survives a round trip through JSON and protobuf.

use crate::{
    Target,
    recorded::{Kind, recorded, seed},
};
use kinds::types;
use schema::{
    decode::{FieldValidation, decode, decode_any, type_meta},
    encode::{encode, encode_any, normalize},
    proto,
};
use serde_json::Value;

pub(super) const TARGET: Target = Target { name: "json", check, seeds, words: WORDS };

pub(super) const WORDS: &[&str] = &[
    "{",
    "}",
    "[",
    "]",
    ":",
    ",",
    "\"",
    "\\u0000",
    "\\ud800",
    "\\",
    "null",
    "true",
    "false",
    "\"\"",
    "{}",
    "[]",
    "1.5",
    "\"1Gi\"",
    "\"YQ==\"",
    "\"2024-02-29T12:34:56Z\"",
    "\"metadata\":",
    "\"spec\":",
    "\"status\":",
    "\"labels\":",
    "\"managedFields\":",
    "\"creationTimestamp\":",
    "\"name\":",
    "\"kind\":",
    "\"apiVersion\":",
    "\"items\":",
];

fn seeds() -> Vec<Vec<u8>> {
    recorded().iter().map(|recorded| seed(recorded.choice, &[recorded.json.as_bytes()])).collect()
}

fn check(input: &[u8]) {
    let Some((kind, body)) = Kind::chosen(input) else { return };
    let _ = type_meta(body);
    if let Ok(read) = decode_any(body, FieldValidation::Warn) {
        let again = decode_any(&encode_any(&read.value), FieldValidation::Strict).unwrap();
        // Compared as text: Kubernetes reads `4.0` as a float and writes `4`, which is read as an integer.
        assert_eq!(encode_any(&again.value), encode_any(&read.value), "without a type");
    }
    let warned = decode(types(), kind.of, body, FieldValidation::Warn);
    let quiet = decode(types(), kind.of, body, FieldValidation::Ignore);
    let strict = decode(types(), kind.of, body, FieldValidation::Strict);
    let Ok(read) = warned else {
        assert!(quiet.is_err() && strict.is_err(), "a warning refuses");
        return;
    };
    assert_eq!(quiet.unwrap().value, read.value, "whether warned or not");
    assert_eq!(strict.is_ok(), read.warnings.is_empty(), "{strict:?}, but {:?}", read.warnings);
    survives(kind, &read.value);
}

/// Checks that an object survives JSON, normalization and protobuf.
pub(super) fn survives(kind: &Kind, object: &Value) {
    let json = encode(types(), kind.of, object);
    let again = decode(types(), kind.of, &json, FieldValidation::Strict);
    let again = again.unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&json)));
    assert_eq!(&again.value, object, "through JSON");

    let mut normal = object.clone();
    normalize(types(), kind.of, &mut normal);
    let plain = decode_any(&json, FieldValidation::Strict).unwrap().value;
    assert_eq!(normal, plain, "in its normal form");
    let mut twice = normal.clone();
    normalize(types(), kind.of, &mut twice);
    assert_eq!(twice, normal, "in its normal form, twice");
    assert_eq!(encode(types(), kind.of, &normal), json, "written from its normal form");

    if types().get(kind.of).message().is_empty() {
        return;
    }
    let message = proto::encode(types(), kind.of, object);
    let from_message = proto::decode(types(), kind.of, &message).unwrap();
    assert_eq!(proto::encode(types(), kind.of, &from_message), message, "through protobuf");
}
