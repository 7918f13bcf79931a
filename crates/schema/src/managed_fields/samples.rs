//! A kind with every type of field, for tests.

use std::sync::{Arc, LazyLock};

use proptest::prelude::*;
use serde_json::{Map as Members, Value, json};

use crate::types::{Field, List, ListKind, Map, Node, Type, TypeId, Types};

/// `Thing` of `example.com/v1`.
pub(crate) fn things() -> (&'static Types, TypeId) {
    static TYPES: LazyLock<Types> = LazyLock::new(build);
    let types: &'static Types = &TYPES;
    (types, types.kind("example.com", "v1", "Thing").unwrap().0)
}

fn build() -> Types {
    let mut types = Types::default();
    let list = |items, kind| Node::List(Box::new(List { kind, ..List::atomic(items) }));
    let keys = |names: &[&'static str]| ListKind::Map(names.iter().map(|name| (*name).into()).collect());
    let map = |atomic| Node::Map(Box::new(Map { values: Node::String, atomic }));
    let defaulted =
        |name, node, default: Value| Field { default: Some(Arc::new(default)), ..Field::new(name, node) };
    let always = |name, node| Field { always: true, ..Field::new(name, node) };

    let metadata = types.add(Type::new(
        "Metadata",
        vec![
            Field::new("name", Node::String),
            Field::new("uid", Node::String),
            Field::new("labels", map(false)),
            Field::new("annotations", map(false)),
            Field::new("managedFields", list(Node::Json, ListKind::Atomic)),
        ],
    ));
    let item = types.add(Type::new(
        "Item",
        vec![
            defaulted("name", Node::String, json!("")),
            Field::new("value", Node::String),
            Field::new("other", Node::Int64),
        ],
    ));
    let port = types.add(Type::new(
        "Port",
        vec![Field::new("port", Node::Int32), defaulted("protocol", Node::String, json!("TCP"))],
    ));
    let selector =
        types.add(Type::new("Selector", vec![Field::new("a", Node::String), Field::new("b", Node::String)]));
    let spec = types.add(Type::new(
        "Spec",
        vec![
            Field { pointer: true, ..Field::new("count", Node::Int32) },
            Field::new("flag", Node::Bool),
            Field::new("labels", map(false)),
            Field::new("fixed", map(true)),
            always("items", list(Node::Object(item), keys(&["name"]))),
            Field::new("ports", list(Node::Object(port), keys(&["port", "protocol"]))),
            Field::new("tags", list(Node::String, ListKind::Set)),
            Field::new("args", list(Node::String, ListKind::Atomic)),
            Field::new("selector", Node::AtomicObject(selector)),
            Field::new("any", Node::Json),
            Field::new("raw", Node::Raw),
        ],
    ));
    let status = types.add(Type::new("Status", vec![Field::new("phase", Node::String)]));
    let fields = |spec| {
        vec![
            Field::new("kind", Node::String),
            Field::new("apiVersion", Node::String),
            always("metadata", Node::Object(metadata)),
            always("spec", Node::Object(spec)),
            always("status", Node::Object(status)),
        ]
    };
    types.add(Type::new("Thing", fields(spec)).of_kind("example.com", "v1", "Thing"));
    let renamed = types
        .add(Type::new("SpecV2", vec![Field::new("amount", Node::Int32), Field::new("labels", map(false))]));
    types.add(Type::new("ThingV2", fields(renamed)).of_kind("example.com", "v2", "Thing"));
    types
}

/// A thing with some of its fields. Lists have items: an empty one has no owner, so applying it leaves no
/// trace.
pub(crate) fn thing() -> impl Strategy<Value = Value> {
    let word = || prop::sample::select(["a", "b", "c"].as_slice());
    let words = move || prop::collection::btree_map(word(), word(), 0..3);
    let items = prop::collection::btree_map(word(), prop::option::of(word()), 1..4).prop_map(|items| {
        let item = |(name, value): (&str, Option<&str>)| match value {
            Some(value) => json!({"name": name, "value": value}),
            None => json!({"name": name}),
        };
        Value::from(items.into_iter().map(item).collect::<Vec<_>>())
    });
    let shuffled = (items, any::<bool>()).prop_map(|(mut items, reversed)| {
        if let (Some(items), true) = (items.as_array_mut(), reversed) {
            items.reverse();
        }
        items
    });
    let tags = prop::sample::subsequence(vec!["a", "b", "c"], 1..3).prop_map(Value::from);
    let fields = (
        prop::option::of((0..3).prop_map(Value::from)),
        prop::option::of(words().prop_map(|words| json!(words))),
        prop::option::of(shuffled),
        prop::option::of(tags),
        prop::option::of(words().prop_map(|words| json!(words))),
        prop::option::of(prop::sample::subsequence(vec!["x", "y"], 0..3).prop_map(Value::from)),
    );
    fields.prop_map(|(count, labels, items, tags, any, args)| {
        let parts = [
            ("count", count),
            ("labels", labels),
            ("items", items),
            ("tags", tags),
            ("any", any),
            ("args", args),
        ];
        let spec: Members<String, Value> =
            parts.into_iter().filter_map(|(name, part)| Some((name.to_owned(), part?))).collect();
        json!({"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "n"}, "spec": spec})
    })
}
