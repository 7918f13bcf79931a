//! Strategic merge patches of every built-in kind: idempotent, and an object as a patch of itself changes
//! nothing.

use super::merge_patch::has_null;
use crate::{
    Target,
    recorded::{Kind, divide, recorded, seed},
};
use kinds::types;
use schema::{
    decode::{FieldValidation, decode, decode_any},
    patch::{PatchError, strategic},
    types::{Node, Types},
};
use serde_json::Value;

pub(super) const TARGET: Target = Target { name: "strategic_patch", check, seeds, words: WORDS };

const WORDS: &[&str] = &[
    "\"$patch\":\"delete\"",
    "\"$patch\":\"replace\"",
    "\"$patch\":\"merge\"",
    "\"$retainKeys\":[\"a\"]",
    "\"$setElementOrder/containers\":",
    "\"$deleteFromPrimitiveList/finalizers\":",
    "\"$setElementOrder/finalizers\":",
    "{\"name\":\"a\"}",
    "null",
    "{}",
    "[]",
    "\"metadata\":",
    "\"spec\":",
    "\"containers\":",
    "\"ports\":",
    "\"name\":",
];

fn seeds() -> Vec<Vec<u8>> {
    let patches = [
        r#"{"metadata":{"labels":{"a":"b","c":null},"finalizers":["a/b"],"$deleteFromPrimitiveList/finalizers":["c"]}}"#,
        r#"{"spec":{"template":{"spec":{"$setElementOrder/containers":[{"name":"d"},{"name":"c"}],"containers":[{"name":"c","$patch":"delete"},{"name":"d","image":"x"}]}},"strategy":{"$retainKeys":["type"],"type":"Recreate"}}}"#,
        r#"{"spec":{"containers":[{"name":"a","ports":[{"containerPort":80,"$patch":"replace"}]}],"volumes":[{"$patch":"replace"}]},"status":{"conditions":[{"type":"A","status":"B"}]}}"#,
    ];
    let all = recorded().iter();
    let mut seeds: Vec<_> = all
        .zip(patches.iter().cycle())
        .map(|(recorded, patch)| seed(recorded.choice, &[recorded.json.as_bytes(), patch.as_bytes()]))
        .collect();
    let objects = recorded().iter().map(|it| seed(it.choice, &[b"{}", it.json.as_bytes()]));
    seeds.extend(objects);
    seeds
}

fn check(input: &[u8]) {
    let Some((kind, rest)) = Kind::chosen(input) else { return };
    let Some((document, patch)) = divide(rest) else { return };
    let Some(document) = kind.normal(document) else { return };
    let Ok(patch) = decode_any(patch, FieldValidation::Ignore).map(|read| read.value) else { return };
    let apply =
        |document: &Value, patch: &Value| strategic::apply(types(), kind.of, document.clone(), patch.clone());
    assert_eq!(apply(&document, &Value::Object(serde_json::Map::new())), Ok(document.clone()), "by nothing");
    let Ok(once) = apply(&document, &patch) else { return };
    // A patch that is an object of the kind, without duplicate items.
    let is_plain =
        !has_null(&patch) && !has_directive(&patch) && is_distinct(types(), &Node::Object(kind.of), &patch);
    let is_object =
        decode(types(), kind.of, &schema::encode::encode_any(&patch), FieldValidation::Strict).is_ok();
    if is_plain && is_object {
        match apply(&once, &patch) {
            // Kubernetes: a map of lists can be created, but not patched.
            Err(PatchError::Unexpected(_)) => {}
            twice => assert_eq!(twice, Ok(once.clone()), "twice"),
        }
    }
}

fn has_directive(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.iter().any(has_directive),
        Value::Object(members) => {
            members.iter().any(|(name, value)| name.starts_with('$') || has_directive(value))
        }
        _ => false,
    }
}

/// Whether no merged list has two items with the same key.
fn is_distinct(types: &Types, node: &Node, value: &Value) -> bool {
    match (node, value) {
        (Node::Object(id) | Node::AtomicObject(id), Value::Object(members)) => {
            members.iter().all(|(name, value)| {
                let Some(field) = types.get(*id).field(name) else { return true };
                let items =
                    value.as_array().filter(|_| field.patch.merges()).map(Vec::as_slice).unwrap_or_default();
                let keys: Vec<&Value> = match field.merge_key.as_deref() {
                    Some(key) => items.iter().map(|item| item.get(key).unwrap_or(&Value::Null)).collect(),
                    None => items.iter().collect(),
                };
                let mut texts: Vec<String> = keys.iter().map(ToString::to_string).collect();
                texts.sort();
                texts.dedup();
                texts.len() == keys.len() && is_distinct(types, &field.node, value)
            })
        }
        (Node::List(list), Value::Array(items)) => {
            items.iter().all(|item| is_distinct(types, &list.items, item))
        }
        (Node::Map(map), Value::Object(members)) => {
            members.values().all(|it| is_distinct(types, &map.values, it))
        }
        _ => true,
    }
}
