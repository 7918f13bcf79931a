//! Random JSON for tests.

use proptest::prelude::*;
use serde_json::{Map, Value, json};

/// Few names, so that two samples have some in common.
const NAMES: [&str; 5] = ["a", "b", "c", "name", "x/y"];

pub(crate) fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-3i64..3).prop_map(Value::from),
        prop::sample::select(NAMES.as_slice()).prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(prop::sample::select(NAMES.as_slice()), inner, 0..4)
                .prop_map(members),
        ]
    })
}

pub(crate) fn object() -> impl Strategy<Value = Value> {
    prop::collection::btree_map(prop::sample::select(NAMES.as_slice()), value(), 0..5).prop_map(members)
}

pub(crate) fn operations() -> impl Strategy<Value = Value> {
    let kind = prop::sample::select(["add", "remove", "replace", "move", "copy", "test"].as_slice());
    let path =
        prop::sample::select(["", "/a", "/b", "/a/b", "/a/0", "/a/-", "/b/-1", "/c/name", "x"].as_slice());
    let operation = (kind, path.clone(), path, value()).prop_map(
        |(kind, path, from, value)| json!({"op": kind, "path": path, "from": from, "value": value}),
    );
    prop::collection::vec(operation, 0..6).prop_map(Value::from)
}

fn members(members: std::collections::BTreeMap<&str, Value>) -> Value {
    Value::Object(members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect::<Map<_, _>>())
}
