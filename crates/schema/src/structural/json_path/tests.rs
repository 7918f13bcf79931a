//! Paths over one object.

use serde_json::{Value, json};

use super::JsonPath;

fn object() -> Value {
    json!({
        "spec": {"replicas": 3, "a.b": "dotted", "list": [1, 2, 3, 4], "none": null, "f": 1.5},
        "status": {"conditions": [
            {"type": "Ready", "status": "True", "n": 1},
            {"type": "Synced", "status": "False", "n": 2},
            {"status": "odd"},
        ]},
    })
}

#[test]
fn paths_find_what_they_name() {
    for (path, expected) in [
        (".spec.replicas", json!([3])),
        ("spec.replicas", json!("unrecognized identifier spec")),
        ("$.spec.replicas", json!([3])),
        (".spec.missing.more", json!([])),
        (".spec.none", json!([null])),
        (".spec.none.more", json!([])),
        (r".spec.a\.b", json!(["dotted"])),
        (r".spec['a\.b']", json!(["dotted"])),
        (".spec['replicas']", json!([3])),
        (".spec.list[0]", json!([1])),
        (".spec.list[-1]", json!([4])),
        (".spec.list[1:3]", json!([2, 3])),
        (".spec.list[::2]", json!([1, 3])),
        (".spec.list[*]", json!([1, 2, 3, 4])),
        (".spec.list[0,2]", json!([1, 3])),
        (".spec.list[9]", json!("array index out of bounds: index 9, length 4")),
        (".spec.replicas[0]", json!("int64 is not array or slice")),
        (".status.conditions[?(@.type==\"Ready\")].status", json!(["True"])),
        (".status.conditions[?(@.type=='Synced')].n", json!([2])),
        (".status.conditions[?(@.type != 'Synced')].n", json!([1])),
        (".status.conditions[?(@.type!='Synced')].n", json!([1])),
        (".status.conditions[?(@.n>1)].type", json!(["Synced"])),
        (".status.conditions[?(@.n<=1)].type", json!(["Ready"])),
        (".status.conditions[?(@.type)].status", json!(["True", "False"])),
        (".status.conditions[?(@.type==1)].status", json!("incompatible types for comparison")),
        (".status.conditions[*].status", json!(["True", "False", "odd"])),
        (
            ".spec[?(@.a)]",
            json!(
                "map[a.b:dotted f:1.5 list:[1 2 3 4] none:<nil> replicas:3] is not array or slice and cannot be filtered"
            ),
        ),
        ("..type", json!(["Ready", "Synced"])),
        (".", json!([])),
    ] {
        let object = object();
        let found =
            match JsonPath::parse(path).and_then(|parsed| parsed.find(&object).map(|found| json!(found))) {
                Ok(found) => found,
                Err(error) => json!(error.to_string()),
            };
        assert_eq!(found, expected, "{path}");
    }
}

#[test]
fn malformed_paths_are_rejected() {
    for (path, expected) in [
        (".a[", "unterminated array"),
        (".a[x]", "invalid array index x"),
        (".a[?(@.b", "unterminated filter"),
        (".a[?(@.b)", "unclosed array expect ]"),
        (".a['b", "unterminated array"),
        (".a....b", "invalid multiple recursive descent"),
        ("#", "unrecognized character in action: U+0023 '#'"),
        (".a\n", "unclosed action"),
        ("'a", "unterminated quoted string"),
    ] {
        assert_eq!(JsonPath::parse(path).unwrap_err().to_string(), expected, "{path}");
    }
}

#[test]
fn plain_paths_are_names() {
    let names = |path| JsonPath::parse(path).unwrap().names().map(|names| names.join("/"));
    assert_eq!(names(".spec.size"), Some("spec/size".to_owned()));
    assert_eq!(names(".spec.list[0]"), None);
}
