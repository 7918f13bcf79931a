//! What field paths and field errors print, against the texts of the real server.

use serde_json::{Value, json};

use super::*;

#[test]
fn paths_print_as_kubernetes_prints_them() {
    let root = Path::ROOT;
    let spec = Path::new("spec");
    let containers = spec.child("containers");
    let first = containers.index(0);
    let metadata = root.child("metadata");
    let labels = metadata.child("labels");
    for (path, expected) in [
        (root, "<nil>"),
        (spec, "spec"),
        (first.child("name"), "spec.containers[0].name"),
        (labels.key("foo"), "metadata.labels[foo]"),
        (first.key("a/b"), "spec.containers[0][a/b]"),
        (root.index(3), "[3]"),
        (root.child("metadata.labels"), "metadata.labels"),
        (spec.child(""), "spec[]"),
    ] {
        assert_eq!(path.to_string(), expected);
    }
}

#[test]
fn errors_print_as_kubernetes_prints_them() {
    let path = Path::new("f");
    let not_a_value = Value::Null;
    for (error, expected) in [
        (Error::required(&path, ""), "f: Required value"),
        (Error::required(&path, "must be specified"), "f: Required value: must be specified"),
        (Error::invalid(&path, "a\"b", "is bad"), "f: Invalid value: \"a\\\"b\": is bad"),
        (Error::invalid(&path, -1, "is bad"), "f: Invalid value: -1: is bad"),
        (Error::invalid(&path, true, "is bad"), "f: Invalid value: true: is bad"),
        (Error::invalid(&path, 1e6, "is bad"), "f: Invalid value: 1e+06: is bad"),
        (Error::invalid(&path, BadValue::OMITTED, "is bad"), "f: Invalid value: is bad"),
        (Error::invalid(&path, &not_a_value, "is bad"), "f: Invalid value: null: is bad"),
        (Error::invalid(&path, None::<&str>, "is bad"), "f: Invalid value: null: is bad"),
        (Error::invalid(&path, Some("x"), "is bad"), "f: Invalid value: \"x\": is bad"),
        (
            Error::invalid(&path, &json!({"b": [1.5, "<"], "a": {}}), ""),
            r#"f: Invalid value: {"a":{},"b":[1.5,"\u003c"]}"#,
        ),
        (Error::invalid(&path, &json!("<"), ""), r#"f: Invalid value: "<""#),
        (
            Error::type_invalid(&path, "string", "must be a number"),
            "f: Invalid value: \"string\": must be a number",
        ),
        (
            Error::not_supported(&path, "x", ["a", "b"]),
            r#"f: Unsupported value: "x": supported values: "a", "b""#,
        ),
        (
            Error::not_supported(&path, BadValue::json(&["x"]), ["All"]),
            r#"f: Unsupported value: ["x"]: supported values: "All""#,
        ),
        (Error::not_supported::<&str>(&path, "x", []), "f: Unsupported value: \"x\""),
        (Error::duplicate(&path, "c"), "f: Duplicate value: \"c\""),
        (Error::not_found(&path, "nope"), "f: Not found: \"nope\""),
        (Error::forbidden(&path, "not now"), "f: Forbidden: not now"),
        (Error::too_long(&path, 128), "f: Too long: may not be more than 128 bytes"),
        (Error::too_long(&path, 1), "f: Too long: may not be more than 1 byte"),
        (Error::too_long_characters(&path, 5), "f: Too long: may not be more than 5 characters"),
        (Error::too_short(&path, 1), "f: Too short: must be at least 1 character"),
        (Error::too_many(&path, 4, 3), "f: Too many: 4: must have at most 3 items"),
        (Error::too_many(&path, BadValue::OMITTED, 1), "f: Too many: must have at most 1 item"),
        (Error::too_few(&path, 0, 2), "f: Too few: 0: must have at least 2 items"),
        (Error::internal(&path, "disk on fire"), "f: Internal error: disk on fire"),
    ] {
        assert_eq!(error.to_string(), expected);
    }
}

#[test]
fn a_list_prints_each_text_once() {
    let duplicate = || Error::duplicate(&Path::new("a"), 1);
    let required = || Error::required(&Path::new("b"), "");
    for (errors, expected) in [
        (vec![], ""),
        (vec![duplicate()], "a: Duplicate value: 1"),
        (vec![duplicate(), duplicate()], "a: Duplicate value: 1"),
        (vec![duplicate(), required(), duplicate()], "[a: Duplicate value: 1, b: Required value]"),
    ] {
        assert_eq!(ErrorList::from_iter(errors).to_string(), expected);
    }
}
