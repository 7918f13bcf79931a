//! The laws of sets, FieldsV1 in both directions, and the fields of an object.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::managed_fields::samples;

fn set(fields: &Value) -> FieldSet {
    FieldSet::from_value(fields).unwrap()
}

#[test]
fn fields_v1_is_written_as_by_kube_apiserver() {
    for (text, expected) in [
        ("{}", "{}"),
        ("null", "{}"),
        (r#"{"f:a":{"f:b":{}},"f:c":{}}"#, r#"{"f:a":{"f:b":{}},"f:c":{}}"#),
        (r#"{"f:a":{"f:b":{},".":{}}}"#, r#"{"f:a":{".":{},"f:b":{}}}"#),
        (r#"{"f:a":{".":{}}}"#, r#"{"f:a":{}}"#),
        (r#"{"f:a":null}"#, r#"{"f:a":{}}"#),
        (
            r#"{"i:10":{},"i:9":{},"v:1":{},"k:{\"b\":1,\"a\":2}":{},"f:z":{}}"#,
            r#"{"f:z":{},"k:{\"a\":2,\"b\":1}":{},"v:1":{},"i:9":{},"i:10":{}}"#,
        ),
        (r#"{"k:{\"p\":443}":{},"k:{\"p\":53}":{}}"#, r#"{"k:{\"p\":53}":{},"k:{\"p\":443}":{}}"#),
        (r#"{"v:1.0":{},"v:1e30":{},"v:1e-9":{}}"#, r#"{"v:1e-09":{},"v:1":{},"v:1e+30":{}}"#),
        (r#"{"f:<a>":{},"v:\"<a>\"":{}}"#, r#"{"f:<a>":{},"v:\"\\u003ca\\u003e\"":{}}"#),
        (r#"{"x:later":{"f:a":{}},"f:b":{}}"#, r#"{"f:b":{}}"#),
    ] {
        assert_eq!(FieldSet::from_json(text).unwrap().to_json(), expected, "{text}");
    }
}

#[test]
fn malformed_fields_v1_is_rejected() {
    for text in [
        "",
        "[]",
        "{",
        r#"{"a":{}}"#,
        r#"{"fa":{}}"#,
        r#"{"f:a":1}"#,
        r#"{"v:":{}}"#,
        r#"{"k:[]":{}}"#,
        r#"{"i:x":{}}"#,
    ] {
        assert!(FieldSet::from_json(text).is_err(), "{text}");
    }
    let deep = (0..=crate::depth::MAX_DEPTH + 1).fold(json!({}), |below, _| json!({"f:a": below}));
    assert!(FieldSet::from_value(&deep).is_err());
}

#[test]
fn difference_leaves_parents_and_recursive_difference_takes_children() {
    let all = set(&json!({"f:a": {".": {}, "f:b": {".": {}, "f:c": {}}}, "f:d": {}}));
    for (other, difference, recursive) in [
        (
            json!({}),
            json!({"f:a": {".": {}, "f:b": {".": {}, "f:c": {}}}, "f:d": {}}),
            json!({"f:a": {".": {}, "f:b": {".": {}, "f:c": {}}}, "f:d": {}}),
        ),
        (json!({"f:a": {}}), json!({"f:a": {"f:b": {".": {}, "f:c": {}}}, "f:d": {}}), json!({"f:d": {}})),
        (
            json!({"f:a": {"f:b": {}}}),
            json!({"f:a": {".": {}, "f:b": {"f:c": {}}}, "f:d": {}}),
            json!({"f:a": {}, "f:d": {}}),
        ),
        (
            json!({"f:a": {"f:b": {"f:c": {}}}}),
            json!({"f:a": {".": {}, "f:b": {}}, "f:d": {}}),
            json!({"f:a": {".": {}, "f:b": {}}, "f:d": {}}),
        ),
    ] {
        assert_eq!(all.clone().difference(&set(&other)).to_value(), difference, "{other}");
        assert_eq!(all.clone().recursive_difference(&set(&other)).to_value(), recursive, "{other}");
    }
}

#[test]
fn paths_come_level_by_level() {
    let fields = set(&json!({"f:a": {"f:x": {}}, "f:b": {".": {}, "f:y": {}}, "f:c": {}}));
    let paths: Vec<_> = fields.paths().iter().map(Path::to_string).collect();
    assert_eq!(paths, [".b", ".c", ".a.x", ".b.y"]);
    assert_eq!(fields.len(), 4);
    assert!(fields.has(&Path::of_fields(["a", "x"])) && !fields.has(&Path::of_fields(["a"])));
    assert!(!fields.has(&Path::default()));
    assert_eq!(fields.leaves().to_value(), json!({"f:a": {"f:x": {}}, "f:b": {"f:y": {}}, "f:c": {}}));
}

#[test]
fn filters_keep_what_a_resource_can_write() {
    let fields = json!({
        "f:spec": {".": {}, "f:items": {"k:{\"name\":\"a\"}": {".": {}, "f:value": {}, "f:other": {}}}},
        "f:status": {"f:phase": {}},
    });
    let except = Filter::Except(FieldSet::of_fields([["status"].as_slice()]));
    let below = Filter::Below(vec![
        vec![Step::field("spec"), Step::field("items"), Step::Any, Step::field("value")],
        vec![Step::field("none")],
    ]);
    for (filter, expected) in [
        (Filter::All, fields.clone()),
        (except, json!({"f:spec": fields["f:spec"]})),
        (below, json!({"f:spec": {".": {}, "f:items": {"k:{\"name\":\"a\"}": {".": {}, "f:value": {}}}}})),
    ] {
        assert_eq!(filter.apply(set(&fields)).to_value(), expected, "{filter:?}");
    }
}

#[test]
fn fields_of_an_object_are_its_leaves_items_and_entries() {
    let (types, of) = samples::things();
    for (object, expected) in [
        (json!({"spec": {"count": 1, "flag": false}}), json!({"f:spec": {"f:count": {}, "f:flag": {}}})),
        (json!({"spec": {}}), json!({"f:spec": {}})),
        (json!({"spec": null}), json!({"f:spec": {}})),
        (
            json!({"spec": {"labels": {"a": "1", "b": ""}}}),
            json!({"f:spec": {"f:labels": {"f:a": {}, "f:b": {}}}}),
        ),
        (json!({"spec": {"labels": {}}}), json!({"f:spec": {"f:labels": {}}})),
        (
            json!({"spec": {"tags": ["b", "a", "b"]}}),
            json!({"f:spec": {"f:tags": {"v:\"a\"": {}, "v:\"b\"": {}}}}),
        ),
        (json!({"spec": {"tags": []}}), json!({})),
        (json!({"spec": {"args": []}}), json!({"f:spec": {"f:args": {}}})),
        (json!({"spec": {"selector": {"a": "b"}}}), json!({"f:spec": {"f:selector": {}}})),
        (
            json!({"spec": {"items": [{"name": "a", "value": "1"}, {"value": "2"}]}}),
            json!({"f:spec": {"f:items": {
                "k:{\"name\":\"\"}": {".": {}, "f:value": {}},
                "k:{\"name\":\"a\"}": {".": {}, "f:name": {}, "f:value": {}},
            }}}),
        ),
        (
            json!({"spec": {"ports": [{"port": 80}, {"port": 80, "protocol": "UDP"}]}}),
            json!({"f:spec": {"f:ports": {
                "k:{\"port\":80,\"protocol\":\"TCP\"}": {".": {}, "f:port": {}},
                "k:{\"port\":80,\"protocol\":\"UDP\"}": {".": {}, "f:port": {}, "f:protocol": {}},
            }}}),
        ),
        (
            json!({"spec": {"any": {"a": {"b": 1}, "l": [1]}, "raw": {"a": {"b": 1}}}}),
            json!({"f:spec": {"f:any": {"f:a": {".": {}, "f:b": {}}, "f:l": {}}, "f:raw": {}}}),
        ),
    ] {
        assert_eq!(FieldSet::of_value(types, of, &object).to_value(), expected, "{object}");
    }
}

/// Elements of every type, few enough for two sets to share some.
fn fields() -> impl Strategy<Value = FieldSet> {
    const ELEMENTS: [&str; 8] =
        ["f:a", "f:b", "f:c", "k:{\"name\":\"x\"}", "k:{\"port\":80}", "v:\"x\"", "v:1", "i:0"];
    let path = prop::collection::vec(prop::sample::select(ELEMENTS.as_slice()), 1..4);
    prop::collection::vec(path, 0..8).prop_map(|paths| {
        let mut set = FieldSet::default();
        for path in paths {
            let elements = path.iter().map(|text| Element::from_text(text).unwrap().unwrap());
            set.insert(&Path(elements.collect()));
        }
        set
    })
}

proptest! {
    #[test]
    fn sets_obey_the_laws(a in fields(), b in fields(), c in fields()) {
        let union = |x: &FieldSet, y: &FieldSet| x.clone().union(y.clone());
        let both = |x: &FieldSet, y: &FieldSet| x.clone().intersection(y);
        let minus = |x: &FieldSet, y: &FieldSet| x.clone().difference(y);
        prop_assert_eq!(union(&a, &b), union(&b, &a));
        prop_assert_eq!(both(&a, &b), both(&b, &a));
        prop_assert_eq!(union(&a, &union(&b, &c)), union(&union(&a, &b), &c));
        prop_assert_eq!(both(&a, &both(&b, &c)), both(&both(&a, &b), &c));
        prop_assert_eq!(both(&a, &union(&b, &c)), union(&both(&a, &b), &both(&a, &c)));
        prop_assert_eq!(minus(&a, &union(&b, &c)), both(&minus(&a, &b), &minus(&a, &c)));
        prop_assert_eq!(union(&minus(&a, &b), &both(&a, &b)), a.clone());
        prop_assert!(minus(&a, &a).is_empty());
        prop_assert_eq!(union(&a, &a), a.clone());
        prop_assert_eq!(union(&a, &b).len() + both(&a, &b).len(), a.len() + b.len());
        let recursive = a.clone().recursive_difference(&b);
        prop_assert_eq!(both(&recursive, &minus(&a, &b)), recursive);
    }

    #[test]
    fn a_set_contains_exactly_its_paths(a in fields(), b in fields()) {
        let union = a.clone().union(b.clone());
        for path in union.paths() {
            prop_assert!(union.has(&path) && (a.has(&path) || b.has(&path)));
        }
        let mut rebuilt = FieldSet::default();
        a.paths().iter().for_each(|path| rebuilt.insert(path));
        prop_assert_eq!(rebuilt, a);
    }

    #[test]
    fn fields_v1_round_trips(a in fields()) {
        prop_assert_eq!(FieldSet::from_json(&a.to_json()).unwrap(), a.clone());
        prop_assert_eq!(FieldSet::from_value(&a.to_value()).unwrap(), a);
    }
}
