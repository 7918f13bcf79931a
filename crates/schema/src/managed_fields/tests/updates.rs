//! Create, update and patch.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

#[test]
fn a_creator_owns_what_goes_beyond_the_empty_object() {
    for (spec, expected) in [
        (json!({}), vec![]),
        (json!({"items": null}), vec![]),
        (json!({"count": 1}), vec![r#"t Update {"f:spec":{"f:count":{}}}"#]),
        (json!({"labels": {"a": "b"}}), vec![r#"t Update {"f:spec":{"f:labels":{".":{},"f:a":{}}}}"#]),
        (
            json!({"items": [{"name": "a"}], "ports": [{"port": 1}]}),
            vec![concat!(
                r#"t Update {"f:spec":{"f:items":{"k:{\"name\":\"a\"}":{".":{},"f:name":{}}},"#,
                r#""f:ports":{".":{},"k:{\"port\":1,\"protocol\":\"TCP\"}":{".":{},"f:port":{}}}}}"#,
            )],
        ),
    ] {
        let mut object = thing(&spec);
        object["status"] = json!({"phase": "Ready"});
        assert_eq!(entries(&created(object, "t")), expected, "{spec}");
    }
    assert_eq!(
        entries(&created(thing(&json!({"count": 1})), "")),
        [r#"unknown Update {"f:spec":{"f:count":{}}}"#]
    );
}

#[test]
fn updates_take_over_changed_fields_and_drop_removed_ones() {
    let live = created(thing(&json!({"count": 1, "flag": true, "labels": {"a": "1", "b": "2"}})), "one");
    let everything =
        r#"one Update {"f:spec":{"f:count":{},"f:flag":{},"f:labels":{".":{},"f:a":{},"f:b":{}}}}"#;
    for (spec, manager, expected) in [
        (
            json!({"count": 1, "flag": true, "labels": {"a": "1", "b": "2"}}),
            "two",
            vec![everything.to_owned()],
        ),
        (
            json!({"count": 2, "flag": true, "labels": {"a": "1", "b": "2"}}),
            "two",
            vec![
                r#"one Update {"f:spec":{"f:flag":{},"f:labels":{".":{},"f:a":{},"f:b":{}}}}"#.into(),
                format!(r#"two Update {{"f:spec":{{"f:count":{{}}}}}} {LATER}"#),
            ],
        ),
        (
            json!({"count": 2, "flag": true, "labels": {"a": "1", "b": "2"}}),
            "one",
            vec![format!("{everything} {LATER}")],
        ),
        // Removing a field of another manager leaves its time.
        (
            json!({"count": 1, "flag": true}),
            "one",
            vec![r#"one Update {"f:spec":{"f:count":{},"f:flag":{}}}"#.into()],
        ),
        (json!({}), "two", vec![]),
    ] {
        assert_eq!(entries(&updated(&live, thing(&spec), manager)), expected, "{spec} by {manager}");
    }
}

#[test]
fn clients_may_send_managed_fields_of_their_own() {
    let live = created(thing(&json!({"count": 1})), "one");
    let mine = json!([entry("m", "example.com/v1", &json!({"f:spec": {"f:count": {}}}))]);
    let kept = r#"one Update {"f:spec":{"f:count":{}}}"#;
    for (sent, expected) in [
        (json!(null), vec![kept]),
        (json!([]), vec![]),
        (json!([{}]), vec![]),
        (json!([{"manager": "x"}]), vec![kept]),
        (json!("x"), vec![kept]),
        (mine.clone(), vec![r#"m Update {"f:spec":{"f:count":{}}}"#]),
    ] {
        let mut new = thing(&json!({"count": 1}));
        new["metadata"]["managedFields"] = sent.clone();
        assert_eq!(entries(&updated(&live, new, "two")), expected, "{sent}");
    }
    // An object without managedFields stays without.
    let bare =
        updated(&live, json!({"metadata": {"uid": "u", "managedFields": []}, "spec": {"count": 1}}), "two");
    assert_eq!(entries(&updated(&bare, thing(&json!({"count": 5})), "two")), Vec::<String>::new());
    // A write through a subresource ignores them.
    let mut new = thing(&json!({"count": 1}));
    new["metadata"]["managedFields"] = mine;
    through("example.com/v1", "status", |target| update(target, &live, &mut new, "two", LATER));
    assert_eq!(entries(&new), [kept]);
}

#[test]
fn status_writes_own_only_status_fields() {
    let live = created(thing(&json!({"count": 1})), "one");
    let mut new = live.clone();
    new["spec"]["count"] = json!(5);
    new["status"] = json!({"phase": "Ready"});
    through("example.com/v1", "status", |target| update(target, &live, &mut new, "one", LATER));
    let status = format!(r#"one Update {{"f:status":{{".":{{}},"f:phase":{{}}}}}} {LATER} status"#);
    assert_eq!(entries(&new), [r#"one Update {"f:spec":{"f:count":{}}}"#, &status]);
}

#[test]
fn old_updaters_are_merged_when_there_are_too_many() {
    let mut live = created(thing(&json!({"labels": {"m00": "x"}})), "m00");
    for n in 1..13 {
        let mut new = live.clone();
        new["spec"]["labels"][format!("m{n:02}")] = json!("x");
        let now = format!("2026-01-01T00:00:{n:02}Z");
        on_thing(|target| update(target, &live, &mut new, &format!("m{n:02}"), &now));
        live = new;
    }
    let entries = entries(&live);
    assert_eq!(entries.len(), 10);
    let labels = r#"{".":{},"f:m00":{},"f:m01":{},"f:m02":{},"f:m03":{}}"#;
    let ancient =
        format!(r#"ancient-changes Update {{"f:spec":{{"f:labels":{labels}}}}} 2026-01-01T00:00:03Z"#);
    assert_eq!(entries[0], ancient);
    assert!(entries[1].starts_with("m04 "), "{}", entries[1]);
}

#[test]
fn owners_in_other_versions_lose_fields_by_other_names() {
    let live = created(thing(&json!({"count": 1, "labels": {"a": "b"}})), "one");
    let (mut live, _, _) = convert(&live, "example.com/v2").unwrap();
    live["metadata"]["managedFields"][0]["apiVersion"] = json!("example.com/v1");
    let gone = entry("g", "example.com/v3", &json!({"f:x": {}}));
    live["metadata"]["managedFields"].as_array_mut().unwrap().push(gone);
    let mut new = live.clone();
    new["spec"]["amount"] = json!(2);
    through("example.com/v2", "", |target| update(target, &live, &mut new, "one", LATER));
    let second = format!(r#"one Update {{"f:spec":{{"f:amount":{{}}}}}} example.com/v2 {LATER}"#);
    assert_eq!(entries(&new), [r#"one Update {"f:spec":{"f:labels":{".":{},"f:a":{}}}}"#, &second]);

    // The owner of what cannot be converted is unknown.
    let mut broken = live.clone();
    broken["metadata"]["managedFields"][0]["apiVersion"] = json!("broken");
    let mut new = broken.clone();
    new["spec"]["amount"] = json!(9);
    through("example.com/v2", "", |target| update(target, &broken, &mut new, "one", LATER));
    assert_eq!(new["metadata"].get("managedFields"), None);
}

#[test]
fn fields_inside_a_now_atomic_field_become_that_field() {
    let mut live = thing(&json!({"selector": {"a": "x"}, "args": ["y"]}));
    let before = json!({"f:spec": {"f:selector": {".": {}, "f:a": {}}, "f:args": {"i:0": {}}}});
    live["metadata"] = json!({"uid": "u", "managedFields": [entry("one", "example.com/v1", &before)]});
    assert_eq!(
        entries(&updated(&live, live.clone(), "two")),
        [r#"one Update {"f:spec":{"f:args":{},"f:selector":{}}}"#]
    );
}

#[test]
fn deep_objects_are_owned_and_deeper_ones_are_not() {
    let nested = |depth: usize| (0..depth).fold(json!(1), |inner, _| json!({"a": inner}));
    // Two levels are above: the object and its spec.
    let fits = created(thing(&json!({"any": nested(crate::depth::MAX_OWNED_DEPTH - 2)})), "one");
    assert_eq!(entries(&fits).len(), 1);
    assert_eq!(entries(&updated(&fits, thing(&json!({"any": 1})), "two")).len(), 1);
    assert!(applied(Some(&fits), &fits_without_owners(&fits), "two", false).is_ok());
    let too_deep = created(thing(&json!({"any": nested(crate::depth::MAX_OWNED_DEPTH - 1)})), "one");
    assert_eq!(entries(&too_deep).len(), 0);
    assert!(applied(None, &too_deep, "two", false).unwrap_err().ends_with("exceeded max depth"));
}

fn fits_without_owners(object: &Value) -> Value {
    let mut object = object.clone();
    object["metadata"] = json!({"name": "n"});
    object
}

#[test]
fn a_write_that_changes_only_times_changes_nothing() {
    let live = created(thing(&json!({"count": 1})), "one");
    let mut timed = live.clone();
    timed["metadata"]["managedFields"][0]["time"] = json!(LATER);
    let mut same = timed.clone();
    keep_times(&live, &mut same, |object| *object == live);
    assert_eq!(same, live);
    timed["spec"]["count"] = json!(2);
    let mut different = timed.clone();
    keep_times(&live, &mut different, |object| *object == live);
    assert_eq!(different, timed);
}

proptest! {
    #[test]
    fn every_field_of_a_new_object_has_one_owner(object in samples::thing(), change in samples::thing()) {
        let live = created(object, "one");
        let new = updated(&live, change, "two");
        let owners = Owners::decode(new.pointer("/metadata/managedFields")).unwrap();
        let sets: Vec<_> = owners.iter().map(|(_, holding)| holding.fields.clone()).collect();
        if let [one, two] = sets.as_slice() {
            prop_assert!(one.clone().intersection(two).is_empty());
        }
    }
}
