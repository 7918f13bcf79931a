//! Operations: one table for results and one for errors.

use super::*;
use crate::patch::samples;
use proptest::prelude::*;
use serde_json::json;

fn patched(document: &Value, patch: &Value) -> Result<Value, PatchError> {
    JsonPatch::decode(patch, Reading::Lenient)?.apply(document.clone())
}

#[test]
fn operations_change_the_document() {
    let list = json!({"l": [1, 2, 3]});
    for (document, patch, expected) in [
        (json!({}), json!(null), json!({})),
        (json!({}), json!([{"op": "add", "path": "/a", "value": 1}]), json!({"a": 1})),
        (json!({"a": 1}), json!([{"op": "add", "path": "/a"}]), json!({"a": null})),
        (list.clone(), json!([{"op": "add", "path": "/l/1", "value": 9}]), json!({"l": [1, 9, 2, 3]})),
        (list.clone(), json!([{"op": "add", "path": "/l/-", "value": 9}]), json!({"l": [1, 2, 3, 9]})),
        (list.clone(), json!([{"op": "add", "path": "/l/3", "value": 9}]), json!({"l": [1, 2, 3, 9]})),
        (list.clone(), json!([{"op": "add", "path": "/l/-1", "value": 9}]), json!({"l": [1, 2, 3, 9]})),
        (list.clone(), json!([{"op": "add", "path": "/l/-4", "value": 9}]), json!({"l": [9, 1, 2, 3]})),
        (list.clone(), json!([{"op": "remove", "path": "/l/-1"}]), json!({"l": [1, 2]})),
        (list.clone(), json!([{"op": "remove", "path": "/l/+1"}]), json!({"l": [1, 3]})),
        (list.clone(), json!([{"op": "replace", "path": "/l/0", "value": [7]}]), json!({"l": [[7], 2, 3]})),
        (json!({}), json!([{"op": "replace", "path": "/a", "value": 1}]), json!({"a": 1})),
        (json!({"a": 1}), json!([{"op": "replace", "path": "", "value": {"b": 2}}]), json!({"b": 2})),
        (json!({"a": 1}), json!([{"op": "move", "from": "/a", "path": "/b"}]), json!({"b": 1})),
        (list.clone(), json!([{"op": "move", "from": "/l/0", "path": "/l/2"}]), json!({"l": [2, 3, 1]})),
        (
            json!({"a": {"b": 1}}),
            json!([{"op": "copy", "from": "/a", "path": "/a/c"}]),
            json!({"a": {"b": 1, "c": {"b": 1}}}),
        ),
        (json!({}), json!([{"op": "copy", "from": "/a", "path": "/b"}]), json!({"b": null})),
        (json!({"a/b": {"~1": 1}}), json!([{"op": "remove", "path": "/a~1b/~01"}]), json!({"a/b": {}})),
        (json!({"": {"a": 1}}), json!([{"op": "remove", "path": "//a"}]), json!({"": {}})),
        (json!({"a": 1}), json!([{"op": "remove", "path": "ignored/a"}]), json!({})),
        (
            json!({"a": {"b": [1, null]}}),
            json!([{"op": "test", "path": "/a", "value": {"b": [1, null]}}]),
            json!({"a": {"b": [1, null]}}),
        ),
        (json!({}), json!([{"op": "test", "path": "/a", "value": null}]), json!({})),
        (json!({}), json!([{"op": "test", "path": "/a"}]), json!({})),
        (json!({"a": 1}), json!([{"op": "test", "path": "", "value": {"a": 1}}]), json!({"a": 1})),
    ] {
        assert_eq!(patched(&document, &patch), Ok(expected), "{document} and {patch}");
    }
}

fn refuses(cases: &[(Value, &str)]) {
    let document = json!({"a": {"b": 1}, "l": [1, 2], "s": "x", "n": null});
    for (operation, expected) in cases {
        let expected = PatchError::Unfit((*expected).into());
        assert_eq!(patched(&document, &json!([operation])), Err(expected), "{operation}");
    }
}

#[test]
fn failed_additions_and_removals_have_their_error_texts() {
    let add = |path: &str| json!({"op": "add", "path": path});
    let remove = |path: &str| json!({"op": "remove", "path": path});
    let missing =
        |path: &str| format!("add operation does not apply: doc is missing path: \"{path}\": missing value");
    for path in ["", "x", "/x/y", "/s/y", "/n/y", "/l/2/y", "/l/x/y"] {
        refuses(&[(add(path), &missing(path))]);
    }
    refuses(&[
        (json!({"op": "add"}), "add operation failed to decode path: missing value"),
        (json!({"op": "add", "path": 5}), "add operation failed to decode path: missing value"),
        (
            add("/l/3"),
            "error in add for path: '/l/3': Unable to access invalid index: 3: invalid index referenced",
        ),
        (
            add("/l/-4"),
            "error in add for path: '/l/-4': Unable to access invalid index: -4: invalid index referenced",
        ),
        (
            add("/l/x"),
            "error in add for path: '/l/x': value was not a proper array index: 'x': \
             strconv.Atoi: parsing \"x\": invalid syntax",
        ),
        (remove("/x"), "error in remove for path: '/x': Unable to remove nonexistent key: x: missing value"),
        (remove("/a/x/y"), "remove operation does not apply: doc is missing path: \"/a/x/y\": missing value"),
        (remove("/l/-"), "error in remove for path: '/l/-': strconv.Atoi: parsing \"-\": invalid syntax"),
        (
            remove("/l/99999999999999999999"),
            "error in remove for path: '/l/99999999999999999999': \
             strconv.Atoi: parsing \"99999999999999999999\": value out of range",
        ),
        (json!({"op": "spin", "path": "/a"}), "Unexpected kind: spin"),
        (json!({"path": "/a"}), "Unexpected kind: unknown"),
        (json!(null), "Unexpected kind: unknown"),
    ]);
}

#[test]
fn failed_replacements_and_tests_have_their_error_texts() {
    let replace = |path: &str| json!({"op": "replace", "path": path, "value": 1});
    let test = |path: &str, value: Value| json!({"op": "test", "path": path, "value": value});
    refuses(&[
        (
            json!({"op": "replace"}),
            "replace operation failed to decode path: operation missing path field: missing value",
        ),
        (
            json!({"op": "replace", "path": true}),
            "replace operation failed to decode path: json: cannot unmarshal bool into Go value of type string",
        ),
        (replace(""), "replace operation value must be object or array: %!w(<nil>)"),
        (replace("/x/y"), "replace operation does not apply: doc is missing path: /x/y: missing value"),
        (replace("/l/2"), "replace operation does not apply: doc is missing key: /l/2: missing value"),
        (test("/a", json!({"b": 2})), "testing value /a failed: test failed"),
        (test("/a/b", json!(1.0)), "testing value /a/b failed: test failed"),
        (test("/a", json!(null)), "testing value /a failed: test failed"),
        (
            test("/l/7", json!(1)),
            "error in test for path: '/l/7': Unable to access invalid index: 7: invalid index referenced",
        ),
        (test("/x/y", json!(1)), "test operation does not apply: is missing path: /x/y: missing value"),
    ]);
}

#[test]
fn failed_moves_and_copies_have_their_error_texts() {
    let from = |kind: &str, from: &str, path: &str| json!({"op": kind, "from": from, "path": path});
    refuses(&[
        (
            json!({"op": "move", "path": "/x"}),
            "move operation failed to decode from: operation, missing from field: missing value",
        ),
        (
            from("move", "/x/y", "/z"),
            "move operation does not apply: doc is missing from path: /x/y: missing value",
        ),
        (
            from("move", "/a/x", "/z"),
            "error in move for path: 'x': Unable to remove nonexistent key: x: missing value",
        ),
        (
            from("move", "/a", "/a/c"),
            "move operation does not apply: doc is missing destination path: /a/c: missing value",
        ),
        (json!({"op": "copy", "from": "/a"}), "copy operation failed to decode path: missing value"),
        (
            from("copy", "/l/9", "/b"),
            "error in copy for from: '/l/9': Unable to access invalid index: 9: invalid index referenced",
        ),
        (
            from("copy", "/a", "/x/y"),
            "copy operation does not apply: doc is missing destination path: /x/y: missing value",
        ),
        (
            from("copy", "/a", "/l/9"),
            "error while adding value during copy: Unable to access invalid index: 9: invalid index referenced",
        ),
    ]);
}

#[test]
fn malformed_json_patches_are_rejected() {
    let checked = |problem: &str| format!("error decoding patch: json: cannot unmarshal {problem}");
    for (patch, reading, expected) in [
        (
            json!({"op": "x"}),
            Reading::Checked,
            checked("object into Go value of type []handlers.jsonPatchOp"),
        ),
        (json!([1]), Reading::Checked, checked("number into Go value of type handlers.jsonPatchOp")),
        (
            json!([{"op": "add", "path": 1}]),
            Reading::Checked,
            checked("number into Go struct field jsonPatchOp.path of type string"),
        ),
        (
            json!({"op": "x"}),
            Reading::Lenient,
            "json: cannot unmarshal object into Go value of type jsonpatch.Patch".into(),
        ),
        (
            json!(["x"]),
            Reading::Lenient,
            "json: cannot unmarshal string into Go value of type jsonpatch.Operation".into(),
        ),
    ] {
        let got = JsonPatch::decode(&patch, reading).map(|_| ());
        assert_eq!(got, Err(PatchError::Malformed(expected)), "{patch}");
    }
}

#[test]
fn unknown_members_are_named_by_operation() {
    let patch = json!([{"op": "add", "path": "/a"}, {"op": "add", "pth": "/a", "valu": 1}]);
    let expected = [r#"json patch unknown field "[1].pth""#, r#"json patch unknown field "[1].valu""#];
    assert_eq!(JsonPatch::unknown_members(&patch), expected);
}

#[test]
fn there_is_a_limit_on_operations_copies_and_depth() {
    let operations = vec![json!({"op": "test", "path": "/a"}); MAX_OPERATIONS + 1];
    let error = patched(&json!({}), &json!(operations)).unwrap_err();
    assert_eq!(error.to_string(), "The allowed maximum operations in a JSON patch is 10000, got 10001");

    let large = json!({"a": "x".repeat(1024 * 1024)});
    let copies: Vec<_> =
        (0..4).map(|n| json!({"op": "copy", "from": "/a", "path": format!("/b{n}")})).collect();
    let expected = "Unable to complete the copy, the accumulated size increase of copy is 3145734, \
                    exceeding the limit 3145728";
    assert_eq!(patched(&large, &json!(copies)), Err(PatchError::Unfit(expected.into())));

    let deepening = vec![json!({"op": "copy", "from": "/a", "path": "/a/a"}); MAX_DEPTH];
    let error = patched(&json!({"a": {}}), &json!(deepening)).unwrap_err();
    assert_eq!(error, PatchError::Unfit("exceeded max depth".into()));

    let relocate = |from: &str, path: &str| json!({"op": "move", "from": from, "path": path});
    let wrap =
        || [json!({"op": "add", "path": "/b", "value": {}}), relocate("/a", "/b/c"), relocate("/b", "/a")];
    let around: Vec<_> = (0..500).flat_map(|_| wrap()).collect();
    assert!(patched(&json!({"a": 1}), &json!(around)).is_err());
    let level: Vec<_> = (0..1500).flat_map(|_| [relocate("/a", "/b"), relocate("/b", "/a")]).collect();
    assert_eq!(patched(&json!({"a": {"c": 1}}), &json!(level)), Ok(json!({"a": {"c": 1}})));
}

proptest! {
    #[test]
    fn an_added_value_can_be_tested_and_removed(document in samples::object(), value in samples::value()) {
        let patch = json!([
            {"op": "add", "path": "/new~1member", "value": value},
            {"op": "test", "path": "/new~1member", "value": value},
            {"op": "copy", "from": "/new~1member", "path": "/other"},
            {"op": "test", "path": "/other", "value": value},
            {"op": "remove", "path": "/new~1member"},
            {"op": "remove", "path": "/other"},
        ]);
        prop_assert_eq!(patched(&document, &patch), Ok(document));
    }

    #[test]
    fn a_move_there_and_back_changes_nothing(document in samples::object(), value in samples::value()) {
        let mut document = document;
        document["here"] = value;
        let patch = json!([
            {"op": "move", "from": "/here", "path": "/there"},
            {"op": "move", "from": "/there", "path": "/here"},
        ]);
        prop_assert_eq!(patched(&document, &patch), Ok(document));
    }

    #[test]
    fn no_patch_panics(document in samples::object(), patch in samples::operations()) {
        let _ = patched(&document, &patch);
    }
}
