//! Field sets: the encoded text decodes to the same set, and the algebra of sets holds.

use super::texts;
use crate::{
    Target,
    recorded::{divide, recorded},
};
use schema::field_set::FieldSet;

pub(super) const TARGET: Target = Target { name: "field_set", check, seeds, words: WORDS };

const WORDS: &[&str] = &[
    "\"f:a\":{}",
    "\".\":{}",
    "\"k:{\\\"name\\\":\\\"a\\\"}\":{}",
    "\"v:1\":{}",
    "\"i:0\":{}",
    "{",
    "}",
    ",",
    "\"v:null\":{}",
];

fn seeds() -> Vec<Vec<u8>> {
    let mut seeds = texts(&[
        r#"{"f:a":{".":{},"f:b":{}},"f:c":{"k:{\"p\":443}":{},"k:{\"p\":80}":{".":{}}},"v:\"x\"":{},"i:3":{}}"#,
        "{}",
    ]);
    seeds.push(b"{\"f:a\":{}}\xfe{\"f:a\":{\"f:b\":{}}}".to_vec());
    let with = recorded().iter().filter_map(|it| {
        let object: serde_json::Value = serde_json::from_str(it.json).ok()?;
        Some(object.pointer("/metadata/managedFields/0/fieldsV1")?.to_string().into_bytes())
    });
    seeds.extend(with.take(20));
    seeds
}

fn check(input: &[u8]) {
    let (one, other) = divide(input).unwrap_or((input, b"{}"));
    let read = |text: &[u8]| FieldSet::from_json(std::str::from_utf8(text).ok()?).ok();
    let Some(one) = read(one) else { return };
    let written = one.to_json();
    let again = FieldSet::from_json(&written).unwrap_or_else(|error| panic!("{error}: {written}"));
    assert_eq!(again, one, "{written}");
    assert_eq!(again.to_json(), written);
    assert_eq!(FieldSet::from_value(&one.to_value()).ok(), Some(one.clone()), "{written}");
    for path in one.paths() {
        assert!(one.has(&path), "{path} of {written}");
    }
    let Some(other) = read(other) else { return };
    let union = one.clone().union(other.clone());
    assert_eq!(union, other.clone().union(one.clone()), "in either order");
    assert_eq!(one.clone().intersection(&other), other.clone().intersection(&one), "in either order");
    assert_eq!(one.clone().intersection(&union), one, "within the union");
    let rest = one.clone().difference(&other);
    assert!(
        rest.paths().iter().all(|path| one.has(path) && !other.has(path)),
        "{} without the other",
        one.to_json()
    );
}
