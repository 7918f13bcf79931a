//! Merge patches: idempotent, an object as a patch of itself changes nothing, and no nulls are left.

use super::json;
use crate::{
    Target,
    recorded::{divide, recorded, seed},
};
use schema::{
    decode::{FieldValidation, decode_any},
    patch::merge,
};
use serde_json::Value;

pub(super) const TARGET: Target = Target { name: "merge_patch", check, seeds, words: json::WORDS };

fn seeds() -> Vec<Vec<u8>> {
    let patches = [
        r#"{"metadata":{"labels":{"a":"b","c":null},"finalizers":null},"spec":null}"#,
        r#"{"spec":{"template":{"metadata":null},"list":[{"a":null},null]},"metadata":[]}"#,
    ];
    let all = recorded().iter().step_by(7);
    let mut seeds: Vec<_> = all
        .zip(patches.iter().cycle())
        .map(|(recorded, patch)| seed(b'!', &[recorded.json.as_bytes(), patch.as_bytes()]))
        .collect();
    let pairs = recorded().windows(2).step_by(9);
    seeds.extend(pairs.map(|pair| seed(b'!', &[pair[0].json.as_bytes(), pair[1].json.as_bytes()])));
    seeds
}

fn check(input: &[u8]) {
    let Some((document, patch)) = input.get(1..).and_then(divide) else { return };
    let read = |json: &[u8]| decode_any(json, FieldValidation::Ignore).ok().map(|read| read.value);
    let (Some(document), Some(patch)) = (read(document), read(patch)) else { return };
    let Ok(once) = merge::apply(document.clone(), patch.clone()) else { return };
    if !has_null(&document) {
        assert_eq!(merge::apply(document.clone(), document.clone()), Ok(document.clone()), "by itself");
    }
    assert_eq!(
        merge::apply(document.clone(), Value::Object(serde_json::Map::new())).ok(),
        Some(document),
        "by nothing"
    );
    // Kubernetes: nulls inside lists are sometimes dropped and sometimes not.
    if !null_in_list(&patch) {
        assert_eq!(merge::apply(once.clone(), patch), Ok(once), "twice");
    }
}

pub(super) fn has_null(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.iter().any(has_null),
        Value::Object(members) => members.values().any(has_null),
        _ => false,
    }
}

fn null_in_list(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.iter().any(has_null),
        Value::Object(members) => members.values().any(null_in_list),
        _ => false,
    }
}
