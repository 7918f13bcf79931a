//! YAML: the result is JSON, which is YAML itself and parses to the same.

use super::texts;
use crate::{
    Target,
    recorded::{Kind, recorded, seed},
};
use schema::{
    decode::{FieldValidation, decode},
    yaml::{decode_yaml, to_json},
};
use serde_json::Value;

/// YAML: a colon is looked for so many letters after the beginning of a key.
const LONGEST_KEY: usize = 1024;

pub(super) const TARGET: Target = Target { name: "yaml", check, seeds, words: WORDS };

const WORDS: &[&str] = &[
    "- ",
    "? ",
    ": ",
    "&a ",
    "*a",
    "<<: ",
    "|",
    ">",
    "|-",
    "#",
    "!!str ",
    "!!binary ",
    "!!int ",
    "!",
    "%YAML 1.1\n",
    "---\n",
    "...\n",
    "\n",
    "  ",
    "\t",
    "{",
    "}",
    "[",
    "]",
    ",",
    "'",
    "\"",
    "\\x00",
    "yes",
    "~",
    "0x1f",
    "0o7",
    "1_000",
    ".inf",
    ".nan",
    "1e3",
    "2001-01-01",
    "=",
    "@",
    "`",
];

fn seeds() -> Vec<Vec<u8>> {
    let some = recorded().iter().step_by(12);
    let mut seeds: Vec<_> = some.map(|recorded| seed(recorded.choice, &[recorded.json.as_bytes()])).collect();
    seeds.extend(texts(&[
        "!apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n  labels: {b: 'c', d: \"e\\n\"}\ndata:\n  f: |\n    g\n    h\n",
        "!a: &x {b: 1}\nc:\n  <<: *x\n  d: [*x, ~, yes, 0644, 1e3, !!str 1]\n",
        "!- a\n- - b\n  - c: d\n    e: >-\n      f\n      g\n# comment\n...\n---\nnext\n",
        "!? [a]\n: b\n'c d': {e, f: g}\n? h\n",
    ]));
    seeds
}

fn check(input: &[u8]) {
    let Some((kind, body)) = Kind::chosen(input) else { return };
    let Ok(read) = to_json(body) else { return };
    let json = String::from_utf8(read.json.clone()).unwrap();
    // An escape can stand for a character that may not stand in YAML by itself.
    if json.chars().any(|letter| letter.is_control() || ('\u{fffe}'..='\u{ffff}').contains(&letter)) {
        return;
    }
    // Go reads no longer simple keys. A letter may be written as an escape of six.
    if serde_json::from_str(&json).is_ok_and(|value| has_key_above(LONGEST_KEY / 6, &value)) {
        return;
    }
    let again = to_json(&read.json).unwrap_or_else(|error| panic!("{error}: {json}"));
    assert_eq!(String::from_utf8(again.json).unwrap(), json);
    assert_eq!(again.duplicates, None, "{json}");
    let from_yaml = decode_yaml(kinds::types(), kind.of, body, FieldValidation::Ignore);
    assert_eq!(from_yaml, decode(kinds::types(), kind.of, &read.json, FieldValidation::Ignore), "{json}");
}

/// Whether a key of an object in this value has more letters.
fn has_key_above(letters: usize, value: &Value) -> bool {
    match value {
        Value::Array(items) => items.iter().any(|item| has_key_above(letters, item)),
        Value::Object(members) => members
            .iter()
            .any(|(name, member)| name.chars().count() > letters || has_key_above(letters, member)),
        _ => false,
    }
}
