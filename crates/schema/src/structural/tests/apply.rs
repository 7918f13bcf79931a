//! Server-side apply with the types of a definition: custom resources have owners as built-in kinds do.

use std::sync::LazyLock;

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::widget;
use crate::managed_fields::{Applied, Target, Unconvertible, apply, create};
use crate::types::{TypeId, Types};

const NOW: &str = "2026-01-01T00:00:00Z";
const VERSION: &str = "example.com/v1";

fn on_widget<T>(run: impl FnOnce(&Target<'_>) -> T) -> T {
    static TYPES: LazyLock<(Types, TypeId)> = LazyLock::new(|| widget().types("example.com", "v1", "Widget"));
    let (types, of) = &*TYPES;
    let convert = |_: &Value, _: &str| Err(Unconvertible::NoSuchVersion);
    run(&Target { types, of: *of, version: VERSION, subresource: "", filters: &[], convert: &convert })
}

fn object(spec: &Value) -> Value {
    json!({"apiVersion": VERSION, "kind": "Widget", "metadata": {"name": "a"}, "spec": spec})
}

fn applied(live: Option<&Value>, spec: &Value, manager: &str, force: bool) -> Result<Value, String> {
    let done = on_widget(|target| apply(target, live, &object(spec), manager, force, NOW));
    match done.map_err(|problem| problem.to_string())? {
        Applied::Changed(mut object) | Applied::Unchanged(mut object) => {
            widget().default(&mut object);
            object["metadata"]["uid"] = json!("u");
            Ok(object)
        }
    }
}

fn fields(object: &Value, nth: usize) -> String {
    object["metadata"]["managedFields"][nth]["fieldsV1"].to_string()
}

#[test]
fn lists_maps_and_sets_are_owned_by_their_parts() {
    let spec = json!({"size": "small", "tags": ["a"], "ports": [{"port": 80, "label": "web"}]});
    let first = applied(None, &spec, "one", false).unwrap();
    let owns = r#"{"f:spec":{"f:ports":{"k:{\"port\":80,\"protocol\":\"TCP\"}":{".":{},"f:label":{},"f:port":{}}},"f:size":{},"f:tags":{"v:\"a\"":{}}}}"#;
    assert_eq!(fields(&first, 0), owns);

    let spec = json!({"tags": ["b"], "ports": [{"port": 81}, {"port": 80, "protocol": "UDP"}]});
    let second = applied(Some(&first), &spec, "two", false).unwrap();
    assert_eq!(second["spec"]["tags"], json!(["a", "b"]));
    assert_eq!(second["spec"]["ports"].as_array().unwrap().len(), 3);

    let refused = applied(Some(&second), &json!({"size": "large"}), "two", false);
    assert_eq!(refused, Err("Apply failed with 1 conflict: conflict with \"one\": .spec.size".to_owned()));
}

#[test]
fn creator_owns_the_fields_of_a_custom_object() {
    let mut new =
        object(&json!({"size": "large", "free": {"any": {"thing": [1]}}, "opt": null, "port": "x"}));
    on_widget(|target| create(target, &mut new, "t", NOW));
    let owns = r#"{"f:spec":{".":{},"f:free":{".":{},"f:any":{".":{},"f:thing":{}}},"f:opt":{},"f:port":{},"f:size":{}}}"#;
    assert_eq!(fields(&new, 0), owns);
}

#[test]
fn unknown_fields_cannot_be_applied() {
    let failed = "failed to create typed patch object (/a; example.com/v1, Kind=Widget): ";
    for (spec, message) in [
        (json!({"nope": 1}), ".spec.nope: field not declared in schema"),
        (json!({"replicas": "x"}), ".spec.replicas: expected numeric (int or float), got string"),
    ] {
        assert_eq!(applied(None, &spec, "one", false), Err(format!("{failed}{message}")));
    }
}

/// Some fields of a widget, by name.
fn parts(names: &'static [&'static str]) -> impl Strategy<Value = Value> {
    let word = || prop::sample::select(["a", "b", "c"].as_slice());
    let chosen = prop::sample::subsequence(names.to_vec(), 0..=names.len());
    (chosen, word(), 1..4_i64, prop::sample::subsequence(vec!["a", "b", "c"], 1..3), any::<bool>()).prop_map(
        |(names, word, number, words, udp)| {
            let value = |name: &str| match name {
                "size" | "name" | "opt" => json!(word),
                "replicas" | "port" => json!(number),
                "tags" => json!(words),
                "ports" if udp => json!([{"port": number, "protocol": "UDP", "label": word}, {"port": number}]),
                "ports" => json!([{"port": number, "label": word}]),
                "map" => words.iter().map(|word| ((*word).to_owned(), json!(number))).collect::<Map<_, _>>().into(),
                "free" => json!({word: {"deep": [number]}}),
                _ => json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"labels": {word: word}}, "data": number}),
            };
            names.into_iter().map(|name| (name.to_owned(), value(name))).collect::<Map<_, _>>().into()
        },
    )
}

const SOME: &[&str] = &["size", "replicas", "tags", "ports", "free"];
const OTHERS: &[&str] = &["name", "port", "opt", "map", "template"];

proptest! {
    #[test]
    fn applying_twice_is_applying_once(first in parts(SOME), then in parts(SOME), force in any::<bool>()) {
        let live = applied(None, &first, "one", false).unwrap();
        if let Ok(once) = applied(Some(&live), &then, "two", force) {
            prop_assert_eq!(applied(Some(&once), &then, "two", force), Ok(once));
        }
    }

    #[test]
    fn managers_of_different_fields_commute(some in parts(SOME), others in parts(OTHERS)) {
        let base = applied(None, &json!({}), "base", false).unwrap();
        let both = |first: (&Value, &str), then: (&Value, &str)| {
            let live = applied(Some(&base), first.0, first.1, false).unwrap();
            applied(Some(&live), then.0, then.1, false).unwrap()["spec"].take()
        };
        prop_assert_eq!(both((&some, "one"), (&others, "two")), both((&others, "two"), (&some, "one")));
    }

    #[test]
    fn a_field_that_has_no_owner_any_more_is_removed(some in parts(SOME), others in parts(OTHERS)) {
        let live = applied(None, &some, "one", false).unwrap();
        let live = applied(Some(&live), &others, "two", false).unwrap();
        let left = applied(Some(&live), &json!({}), "one", false).unwrap();
        let mut expected = object(&others);
        widget().default(&mut expected);
        // Defaults of the schema stay.
        let without_presets = |object: &Value| {
            let mut spec = object["spec"].as_object().cloned().unwrap_or_default();
            spec.remove("replicas");
            spec
        };
        prop_assert_eq!(without_presets(&left), without_presets(&expected));
    }
}
