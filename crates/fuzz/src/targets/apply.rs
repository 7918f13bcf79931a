//! Server-side apply of every built-in kind: apply is idempotent, force never conflicts, and removed fields
//! of one manager stay with the other.

use super::json;
use crate::{
    Target,
    recorded::{Kind, divide, recorded, seed},
};
use kinds::types;
use schema::managed_fields::{self, Applied, ApplyError, Target as Written, Unconvertible};
use serde_json::{Value, json};

pub(super) const TARGET: Target = Target { name: "apply", check, seeds, words: json::WORDS };

const NOW: &str = "2024-02-29T12:34:56Z";

fn seeds() -> Vec<Vec<u8>> {
    let all = recorded();
    let mut seeds: Vec<_> =
        all.iter().map(|it| seed(it.choice, &[b"", without_owners(it.json).as_bytes()])).collect();
    seeds.extend(all.iter().map(|it| {
        let live = without_owners(it.json);
        seed(it.choice, &[live.as_bytes(), br#"{"metadata":{"name":"a","labels":{"a":"b"}}}"#])
    }));
    seeds
}

fn without_owners(json: &str) -> String {
    let mut object: Value = serde_json::from_str(json).unwrap();
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.remove("managedFields");
    }
    object.to_string()
}

fn check(input: &[u8]) {
    let Some((kind, rest)) = Kind::chosen(input) else { return };
    let Some((live, config)) = divide(rest) else { return };
    if !has_owners(kind) {
        return;
    }
    let Some(config) = config_of(kind, config) else { return };
    let live = kind.normal(live).filter(|_| !live.is_empty());
    let Ok(first) = run(kind, live.as_ref(), &config, "one", true) else { return };
    assert_eq!(run(kind, Some(&first), &config, "one", false), Ok(first.clone()), "twice");

    // A second manager that applies the same has no conflict, and both own the fields.
    let both = run(kind, Some(&first), &config, "two", false);
    let both = both.unwrap_or_else(|error| panic!("the same, but {error}"));
    assert_eq!(without_entries(&both), without_entries(&first), "applying the same changes nothing");

    // A manager that applies an empty configuration leaves the fields of the other.
    let nothing = json!({"apiVersion": kind.api_version(), "kind": kind.kind});
    let given_up = run(kind, Some(&both), &nothing, "two", false).unwrap();
    assert_eq!(without_entries(&given_up), without_entries(&first), "given up by one of two");
}

/// Whether objects of the kind have managedFields: lists and reviews do not.
fn has_owners(kind: &Kind) -> bool {
    let metadata = types().get(kind.of).field("metadata").and_then(|metadata| metadata.node.object());
    metadata.is_some_and(|of| types().get(of).field("managedFields").is_some())
}

/// A configuration as a client would send it: without managedFields and without values that an encoder omits.
fn config_of(kind: &Kind, json: &[u8]) -> Option<Value> {
    let ignore = schema::decode::FieldValidation::Ignore;
    let mut config = schema::decode::decode(types(), kind.of, json, ignore).ok()?.value;
    config["apiVersion"] = kind.api_version().into();
    config["kind"] = kind.kind.into();
    if let Some(metadata) = config.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
    }
    Some(config)
}

fn run(
    kind: &Kind,
    live: Option<&Value>,
    config: &Value,
    manager: &str,
    force: bool,
) -> Result<Value, String> {
    let version = kind.api_version();
    let written = Written {
        types: types(),
        of: kind.of,
        version: &version,
        subresource: "",
        filters: &[],
        convert: &|_, _| Err(Unconvertible::NoSuchVersion),
    };
    match managed_fields::apply(&written, live, config, manager, force, NOW) {
        Ok(Applied::Changed(value) | Applied::Unchanged(value)) => Ok(value),
        Err(ApplyError::Conflicts(conflicts)) if force => panic!("forced, but {conflicts}"),
        Err(error) => Err(error.to_string()),
    }
}

fn without_entries(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
    }
    object
}
