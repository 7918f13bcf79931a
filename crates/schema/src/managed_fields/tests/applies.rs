//! Server-side apply.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

#[test]
fn appliers_share_force_and_leave() {
    let config = |spec: Value| thing(&spec);
    let first = applied(None, &config(json!({"labels": {"x": "1", "y": "2"}})), "one", false).unwrap();
    assert_eq!(entries(&first), [r#"one Apply {"f:spec":{"f:labels":{"f:x":{},"f:y":{}}}}"#]);

    let other = applied(Some(&first), &config(json!({"labels": {"x": "9", "y": "9"}})), "two", false);
    let text = "Apply failed with 2 conflicts: conflicts with \"one\":\n- .spec.labels.x\n- .spec.labels.y";
    assert_eq!(other, Err(text.into()));

    let shared =
        applied(Some(&first), &config(json!({"labels": {"x": "1", "z": "3"}})), "two", false).unwrap();
    assert_eq!(entries(&shared)[1], r#"two Apply {"f:spec":{"f:labels":{"f:x":{},"f:z":{}}}}"#);
    assert_eq!(shared["spec"]["labels"], json!({"x": "1", "y": "2", "z": "3"}));

    let forced = applied(Some(&shared), &config(json!({"labels": {"x": "9"}})), "two", true).unwrap();
    assert_eq!(
        entries(&forced),
        [
            r#"one Apply {"f:spec":{"f:labels":{"f:y":{}}}}"#,
            r#"two Apply {"f:spec":{"f:labels":{"f:x":{}}}}"#
        ]
    );
    assert_eq!(forced["spec"]["labels"], json!({"x": "9", "y": "2"}));

    let left = applied(Some(&forced), &nothing(), "one", false).unwrap();
    assert_eq!(entries(&left), [r#"two Apply {"f:spec":{"f:labels":{"f:x":{}}}}"#]);
    assert_eq!(left["spec"]["labels"], json!({"x": "9"}));

    let mut changed = left.clone();
    changed["spec"]["labels"]["x"] = json!("10");
    let changed = updated(&left, changed, "three");
    let text = "Apply failed with 1 conflict: conflict with \"three\" using example.com/v1: .spec.labels.x";
    assert_eq!(
        applied(Some(&changed), &config(json!({"labels": {"x": "11"}})), "two", false),
        Err(text.into())
    );
}

#[test]
fn the_time_of_an_applier_changes_only_with_the_object() {
    let config = thing(&json!({"count": 1}));
    let live = applied(None, &config, "one", false).unwrap();
    let again = on_thing(|target| apply(target, Some(&live), &config, "one", false, LATER)).unwrap();
    assert_eq!(again, Applied::Unchanged(live.clone()));
    // Kubernetes: a manager that applies what others own already gets no time.
    let Applied::Unchanged(joined) =
        on_thing(|target| apply(target, Some(&live), &config, "two", false, LATER)).unwrap()
    else {
        panic!("changed")
    };
    assert_eq!(
        entries(&joined),
        [r#"two Apply {"f:spec":{"f:count":{}}} -"#, r#"one Apply {"f:spec":{"f:count":{}}}"#]
    );
}

#[test]
fn lists_keep_the_order_of_the_object_and_take_that_of_the_configuration() {
    let names =
        |names: &str| -> Value { names.chars().map(|name| json!({"name": name.to_string()})).collect() };
    for (live, config, expected) in [
        ("abc", "d", "abcd"),
        ("abc", "ca", "bca"),
        ("abc", "cb", "acb"),
        ("abc", "bd", "abcd"),
        ("abc", "dab", "dabc"),
        ("abc", "axb", "axbc"),
        ("ab", "ba", "ba"),
        ("abcd", "dxa", "bcdxa"),
        ("", "ab", "ab"),
    ] {
        let object = created(thing(&json!({"items": names(live)})), "u");
        let merged = applied(Some(&object), &thing(&json!({"items": names(config)})), "one", true).unwrap();
        let order: String = merged["spec"]["items"]
            .as_array()
            .unwrap()
            .iter()
            .map(|item| item["name"].as_str().unwrap())
            .collect();
        assert_eq!(order, expected, "{live} and {config}");
    }
}

#[test]
fn malformed_configurations_are_rejected() {
    let live = created(thing(&json!({"count": 1})), "one");
    let with = |change: &dyn Fn(&mut Value)| {
        let mut config = thing(&json!({}));
        change(&mut config);
        config
    };
    let failed = "failed to create typed patch object (/n; example.com/v1, Kind=Thing): ";
    for (config, expected) in [
        (
            with(&|config| config["kind"] = json!("Other")),
            "invalid object type: example.com/v1, Kind=Other".to_owned(),
        ),
        (with(&|config| config["apiVersion"] = json!(null)), "invalid object type: /, Kind=Thing".into()),
        (with(&|config| config["apiVersion"] = json!("a/b/c")), "invalid object type: /, Kind=".into()),
        (
            with(&|config| config["metadata"]["managedFields"] = json!([])),
            "metadata.managedFields must be nil".into(),
        ),
        (with(&|config| config["nope"] = json!(1)), format!("{failed}.nope: field not declared in schema")),
        (
            with(&|config| config["spec"]["count"] = json!("x")),
            format!("{failed}.spec.count: expected numeric (int or float), got string"),
        ),
        (
            with(&|config| config["spec"]["flag"] = json!("x")),
            format!("{failed}.spec.flag: expected boolean, got &{{x}}"),
        ),
        (
            with(&|config| config["spec"]["labels"] = json!([1])),
            format!("{failed}.spec.labels: expected map, got &{{[1]}}"),
        ),
        (
            with(&|config| config["spec"]["labels"] = json!({"a": 1})),
            format!("{failed}.spec.labels.a: expected string, got &value.valueUnstructured{{Value:1}}"),
        ),
        (
            with(&|config| config["spec"]["items"] = json!({})),
            format!("{failed}.spec.items: expected list, got &{{map[]}}"),
        ),
        (
            with(&|config| config["spec"]["items"] = json!([null])),
            format!("{failed}.spec.items: element 0: associative list with keys may not have a null element"),
        ),
        (
            with(&|config| config["spec"]["tags"] = json!(["a", "a"])),
            format!("{failed}.spec.tags: duplicate entries for key [=\"a\"]"),
        ),
        (
            with(&|config| config["spec"]["items"] = json!([{"name": "a"}, {"name": "a", "value": 1}])),
            format!(
                "{failed}errors:\n  .spec.items: duplicate entries for key [name=\"a\"]\n  \
                 .spec.items[name=\"a\"].value: expected string, got &value.valueUnstructured{{Value:1}}"
            ),
        ),
    ] {
        assert_eq!(applied(Some(&live), &config, "two", false), Err(expected), "{config}");
    }
}

#[test]
fn first_apply_gives_existing_fields_to_before_first_apply() {
    let mut live = thing(&json!({"count": 1, "flag": true}));
    live["metadata"]["uid"] = json!("u");
    let merged = applied(Some(&live), &thing(&json!({"flag": true})), "one", false).unwrap();
    let before = r#"before-first-apply Update {"f:spec":{"f:count":{},"f:flag":{}}}"#;
    assert_eq!(entries(&merged), [r#"one Apply {"f:spec":{"f:flag":{}}} -"#, before]);
    let text =
        "Apply failed with 1 conflict: conflict with \"before-first-apply\" using example.com/v1: .spec.flag";
    assert_eq!(applied(Some(&live), &thing(&json!({"flag": false})), "one", false), Err(text.into()));
}

#[test]
fn an_object_whose_fields_cannot_be_owned_is_rejected_before_the_owners_of_the_configuration() {
    let live = thing(&json!({"items": [null]}));
    let mut config = nothing();
    config["metadata"]["managedFields"] = json!([]);
    let problem = applied(Some(&live), &config, "one", false).unwrap_err();
    assert!(problem.starts_with("failed to create manager for existing fields: "), "{problem}");
}

#[test]
fn kubectl_moves_on_from_client_side_apply_without_conflicts() {
    let annotation = "kubectl.kubernetes.io/last-applied-configuration";
    let last = thing(&json!({"count": 1, "flag": true})).to_string();
    let mut object = thing(&json!({"count": 1, "flag": true}));
    object["metadata"]["annotations"] = json!({annotation: last});
    let live = created(object, "kubectl-client-side-apply");
    let config = thing(&json!({"count": 2}));
    assert!(applied(Some(&live), &config, "someone", false).is_err());
    let merged = applied(Some(&live), &config, "kubectl", false).unwrap();
    assert_eq!(merged["spec"]["count"], json!(2));
    assert_eq!(merged["metadata"]["annotations"][annotation], json!(format!("{config}\n")));

    // But not for fields that another manager changed since.
    let mut changed = live.clone();
    changed["spec"]["count"] = json!(7);
    let changed = updated(&live, changed, "other");
    let text = "Apply failed with 1 conflict: conflict with \"other\" using example.com/v1: .spec.count";
    assert_eq!(
        applied(Some(&changed), &thing(&json!({"count": 2, "flag": false})), "kubectl", false),
        Err(text.into())
    );
}

/// Any thing that has an owner.
fn owned() -> impl Strategy<Value = Value> {
    samples::thing().prop_map(|mut thing| {
        thing["spec"]["flag"] = json!(true);
        created(thing, "creator")
    })
}

proptest! {
    #[test]
    fn apply_twice_is_apply_once(live in owned(), config in samples::thing(), force in any::<bool>()) {
        if let Ok(once) = applied(Some(&live), &config, "one", force) {
            prop_assert_eq!(applied(Some(&once), &config, "one", force), Ok(once));
        }
    }

    #[test]
    fn the_object_contains_the_applied_configuration(live in owned(), config in samples::thing()) {
        let merged = applied(Some(&live), &config, "one", true).unwrap();
        for name in ["count", "args"] {
            let said = config["spec"].get(name);
            prop_assert!(said.is_none() || merged["spec"].get(name) == said);
        }
        prop_assert_eq!(applied(Some(&merged), &config, "two", false).map(|_| ()), Ok(()));
    }

    #[test]
    fn applying_an_empty_configuration_removes_the_applied_fields(live in owned(), config in samples::thing()) {
        if let Ok(merged) = applied(Some(&live), &config, "one", false) {
            let left = applied(Some(&merged), &nothing(), "one", false).unwrap();
            prop_assert!(entries(&left).iter().all(|entry| entry.starts_with("creator ")));
            prop_assert_eq!(left["spec"].get("count"), live["spec"].get("count"));
        }
    }
}
