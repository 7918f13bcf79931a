//! Tables of cases for all of `structural`.

use std::sync::LazyLock;

use serde_json::{Value, json};

use super::*;

mod apply;
mod noise;
mod recorded;

/// A definition with every type of field.
pub(super) fn widget() -> &'static Structural {
    static WIDGET: LazyLock<Structural> = LazyLock::new(|| Structural::compile(&widget_schema()));
    &WIDGET
}

fn widget_schema() -> Value {
    let port = json!({"type": "object", "required": ["port"], "properties": {
        "port": {"type": "integer"},
        "protocol": {"type": "string", "default": "TCP"},
        "label": {"type": "string"},
    }});
    json!({"type": "object", "required": ["spec"], "properties": {
        "spec": {"type": "object", "required": ["size"], "properties": {
            "size": {"type": "string", "enum": ["small", "large"], "description": "the size"},
            "replicas": {"type": "integer", "format": "int32", "minimum": 1, "maximum": 9, "default": 2},
            "ratio": {"type": "number", "exclusiveMinimum": true, "minimum": 0},
            "name": {"type": "string", "pattern": "^[a-z]+$", "maxLength": 5},
            "port": {"x-kubernetes-int-or-string": true},
            "when": {"type": "string", "format": "date-time"},
            "opt": {"type": "string", "nullable": true},
            "tags": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set", "maxItems": 3},
            "ports": {"type": "array", "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["port", "protocol"], "items": port},
            "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
            "map": {"type": "object", "additionalProperties": {"type": "integer"}},
            "template": {"type": "object", "x-kubernetes-embedded-resource": true,
                "x-kubernetes-preserve-unknown-fields": true},
        }},
        "status": {"type": "object", "properties": {
            "replicas": {"type": "integer"}, "selector": {"type": "string"}, "phase": {"type": "string"},
        }},
    }})
}

#[test]
fn bodies_are_read_as_by_kube_apiserver() {
    for (body, expected) in [
        (
            r#"{"metadata":{"name":"a"},"spec":{"size":"small"}}"#,
            Ok((json!({"metadata": {"name": "a"}, "spec": {"size": "small"}}), "")),
        ),
        (
            r#"{"metadata":{"name":"a","odd":1,"labels":{}},"odd":1,"spec":{"b":1,"a":{"c":2},"size":"x"}}"#,
            Ok((
                json!({"metadata": {"name": "a"}, "spec": {"size": "x"}}),
                r#"unknown field "metadata.odd", unknown field "odd", unknown field "spec.a", unknown field "spec.b""#,
            )),
        ),
        (
            r#"{"spec":{"size":"large","size":"small","free":{"x":{"y":[null]}},"map":{"k":{"z":1}}}}"#,
            Ok((
                json!({"spec": {"size": "small", "free": {"x": {"y": [null]}}, "map": {"k": {}}}}),
                r#"duplicate field "spec.size", unknown field "spec.map.k.z""#,
            )),
        ),
        (
            r#"{"spec":{"opt":null,"name":null,"replicas":null,"template":{"metadata":{"name":"x","odd":{}},"z":1}}}"#,
            Ok((
                json!({"spec": {"opt": null, "replicas": null, "template": {"metadata": {"name": "x"}, "z": 1}}}),
                r#"unknown field "spec.template.metadata.odd""#,
            )),
        ),
        (
            r#"{"metadata":{"creationTimestamp":null,"ownerReferences":[{"name":"o"}]}}"#,
            Ok((
                json!({"metadata": {"ownerReferences": [{"apiVersion": "", "kind": "", "name": "o", "uid": ""}]}}),
                "",
            )),
        ),
        (
            r#"{"metadata":{"labels":{"a":1}}}"#,
            Err("json: cannot unmarshal number into Go struct field ObjectMeta.labels of type string"),
        ),
        (r#"{"metadata":5}"#, Err("json: cannot unmarshal number into Go value of type v1.ObjectMeta")),
        (r#"{"kind":5}"#, Err(".kind accessor error: 5 is of the type int64, expected string")),
        (
            r#"{"spec":{"template":{"kind":5}}}"#,
            Err("spec.template.kind: Invalid value: 5: must be a string"),
        ),
        (
            r#"{"spec":{"template":{"metadata":{"name":[]}}}}"#,
            Err(
                "spec.template.metadata: Invalid value: {\"name\":[]}: json: cannot unmarshal array into Go struct \
                 field ObjectMeta.name of type string",
            ),
        ),
        (r#"{"spec":"#, Err("unexpected end of JSON input")),
    ] {
        let read = widget().decode(body.as_bytes(), Encoding::Json, FieldValidation::Warn);
        let shown = read.as_ref().map(|read| (read.value.clone(), read.warnings.join(", ")));
        let expected = expected.map(|(value, warnings)| (value, warnings.to_owned()));
        assert_eq!(shown.map_err(ToString::to_string), expected.map_err(str::to_owned), "{body}");

        let strict = widget().decode(body.as_bytes(), Encoding::Json, FieldValidation::Strict);
        if let Ok(read) = read {
            let message = strict.map_err(|error| error.to_string()).err().unwrap_or_default();
            let wanted = format!("strict decoding error: {}", read.warnings.join(", "));
            assert_eq!(message, if read.warnings.is_empty() { "" } else { &wanted });
        }
    }
}

#[test]
fn yaml_is_read_like_json() {
    let body = b"metadata:\n  name: a\nspec:\n  size: small\n  size: large\n  odd: yes\n";
    let read = widget().decode(body, Encoding::Yaml, FieldValidation::Warn).unwrap();
    assert_eq!(read.value, json!({"metadata": {"name": "a"}, "spec": {"size": "large"}}));
    let duplicate = r#"line 5: key "size" already set in map"#;
    assert_eq!(read.warnings, [duplicate, r#"unknown field "spec.odd""#]);
    let strict = widget().decode(body, Encoding::Yaml, FieldValidation::Strict).unwrap_err();
    let beginning = format!("strict decoding error: yaml: unmarshal errors:\n  {duplicate}, ");
    assert!(strict.to_string().starts_with(&beginning), "{strict}");
}

#[test]
fn stored_objects_are_pruned_and_defaulted() {
    let mut object = json!({
        "metadata": {"name": "a", "labels": {"a": 1}, "annotations": {"b": "c"}},
        "spec": {"size": "small", "gone": 1, "replicas": null, "ports": [{"port": 1}],
            "template": {"kind": 5, "apiVersion": "v1", "metadata": {"name": 1, "uid": "u"}}},
    });
    widget().adopt(&mut object);
    let expected = json!({
        "metadata": {"name": "a", "annotations": {"b": "c"}},
        "spec": {"size": "small", "replicas": 2, "ports": [{"port": 1, "protocol": "TCP"}],
            "template": {"apiVersion": "v1", "metadata": {"uid": "u"}}},
    });
    assert_eq!(object, expected);
}

#[test]
fn objects_are_validated_against_their_schema() {
    for (spec, expected) in [
        (json!({"size": "small"}), &[][..]),
        (json!({}), &["spec.size: Required value"]),
        (json!(null), &[r#"spec: Invalid value: "null": spec in body must be of type object: "null""#]),
        (
            json!({"size": "huge", "replicas": 10, "ratio": 0, "name": "TOOLONG", "when": "yesterday"}),
            &[
                "spec.name: Too long: may not be more than 5 bytes",
                "spec.ratio: Invalid value: 0: spec.ratio in body should be greater than 0",
                "spec.replicas: Invalid value: 10: spec.replicas in body should be less than or equal to 9",
                r#"spec.size: Unsupported value: "huge": supported values: "small", "large""#,
                "spec.when: Invalid value: \"yesterday\": spec.when in body must be of type date-time: \
                 \"yesterday\"",
            ],
        ),
        (
            json!({"size": 5, "tags": "x", "map": {"a": "b"}, "port": true}),
            &[
                r#"spec.map.a: Invalid value: "string": spec.map.a in body must be of type integer: "string""#,
                "spec.port: Invalid value: \"boolean\": spec.port in body must be of type integer,string: \
                 \"boolean\"",
                r#"spec.size: Invalid value: "integer": spec.size in body must be of type string: "integer""#,
                r#"spec.size: Unsupported value: 5: supported values: "small", "large""#,
                r#"spec.tags: Invalid value: "string": spec.tags in body must be of type array: "string""#,
            ],
        ),
        (json!({"size": "small", "tags": ["a", "b", "a"]}), &[r#"spec.tags[2]: Duplicate value: "a""#]),
        (
            json!({"size": "small", "ports": [{"port": 1, "protocol": "TCP"}, {"port": 1, "protocol": "TCP"}]}),
            &[r#"spec.ports[1]: Duplicate value: {"port":1,"protocol":"TCP"}"#],
        ),
        (
            json!({"size": "small", "tags": ["a", "b", "c", "d"]}),
            &["spec.tags: Too many: 4: must have at most 3 items"],
        ),
        (
            json!({"size": "small", "template": {"metadata": {"name": "x/y"}}}),
            &[
                "spec.template.apiVersion: Required value",
                "spec.template.kind: Required value",
                r#"spec.template.metadata.name: Invalid value: "x/y": may not contain '/'"#,
            ],
        ),
        (
            json!({"size": "small", "replicas": 3000000000_i64}),
            &[
                "<nil>: Invalid value: \"\": Checked value must be of type integer with format int32 in spec.replicas",
                "spec.replicas: Invalid value: 3000000000: spec.replicas in body should be less than or equal to 9",
            ],
        ),
    ] {
        let errors = widget().validate(&json!({"spec": spec}), None);
        let messages: Vec<_> = errors.iter().map(ToString::to_string).collect();
        assert_eq!(messages, expected, "{spec}");
    }
}

#[test]
fn errors_of_unchanged_values_are_ratcheted() {
    for (old, new, expected) in [
        (json!({"size": "huge"}), json!({"size": "huge", "replicas": 3}), ""),
        (
            json!({"size": "huge"}),
            json!({"size": "vast"}),
            r#"spec.size: Unsupported value: "vast": supported values: "small", "large""#,
        ),
        (json!({}), json!({"replicas": 3}), "spec.size: Required value"),
        (json!({}), json!({}), ""),
        (
            json!({"size": "small", "ports": [{"port": "a", "protocol": "x"}, {"port": 1, "protocol": "y"}]}),
            json!({"size": "small", "ports": [{"port": 2, "protocol": "z"}, {"port": "a", "protocol": "x"}]}),
            "",
        ),
        (
            json!({"size": "small", "tags": [1, "b"]}),
            json!({"size": "small", "tags": [1, "c"]}),
            r#"spec.tags[0]: Invalid value: "integer": spec.tags[0] in body must be of type string: "integer""#,
        ),
        (json!({"size": "small", "tags": ["a", "a"]}), json!({"size": "small", "tags": ["b", "b"]}), ""),
    ] {
        let errors = widget().validate(&json!({"spec": new}), Some(&json!({"spec": old})));
        assert_eq!(errors.to_string(), expected, "{old} {new}");
    }
}

#[test]
fn scale_paths_need_values_of_the_right_type() {
    let scale = ScalePaths {
        spec_replicas: ".spec.replicas".to_owned(),
        status_replicas: ".status.replicas".to_owned(),
        label_selector: Some(".status.selector".to_owned()),
    };
    for (through, object, expected) in [
        (Through::Object, json!({"spec": {"replicas": 1}}), &[][..]),
        (
            Through::Object,
            json!({"spec": {"replicas": "two"}, "status": {"replicas": -1}}),
            &[
                ".spec.replicas: Invalid value: 0: .spec.replicas accessor error: two is of the type string, \
                 expected int64",
                ".status.replicas: Invalid value: -1: should be a non-negative integer",
            ],
        ),
        (
            Through::Status,
            json!({"spec": 5, "status": {"replicas": 3000000000_i64, "selector": 1}}),
            &[
                ".status.replicas: Invalid value: 3000000000: should be less than or equal to 2147483647",
                ".status.selector: Invalid value: \"\": .status.selector accessor error: 1 is of the type int64, \
                 expected string",
            ],
        ),
        (
            Through::Object,
            json!({"spec": 5}),
            &[".spec.replicas: Invalid value: 0: .spec.replicas accessor error: 5 is of the type int64, \
               expected map[string]interface{}"],
        ),
    ] {
        let schema =
            Structural::compile(&json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true}));
        let mut errors = ErrorList::new();
        schema.check(&Change { new: &object, old: None, through, scale: Some(&scale) }, &mut errors);
        let messages: Vec<_> = errors.iter().map(ToString::to_string).collect();
        assert_eq!(messages, expected, "{object}");
    }
}

#[test]
fn a_status_is_checked_alone() {
    let mut errors = ErrorList::new();
    let new = json!({"spec": {"size": 1}, "status": {"phase": 1}});
    widget().check(
        &Change { new: &new, old: Some(&json!({})), through: Through::Status, scale: None },
        &mut errors,
    );
    let message =
        r#"status.phase: Invalid value: "integer": phase in body must be of type string: "integer""#;
    assert_eq!(errors.to_string(), message);
}

#[test]
fn values_of_defaults_are_checked_under_their_path() {
    let schema = Structural::compile(&json!({"type": "object", "properties": {"a": {"type": "integer"}}}));
    for (value, expected) in [
        (json!("x"), r#"p.default: Invalid value: "string":  in body must be of type object: "string""#),
        (
            json!({"a": "x"}),
            r#"p.default.a: Invalid value: "string": a in body must be of type integer: "string""#,
        ),
    ] {
        assert_eq!(schema.check_value("p.default", &value).to_string(), expected);
    }
}

#[test]
fn equal_parts_of_a_schema_are_stored_once() {
    let text = json!({"type": "string"});
    let part = json!({"type": "object", "description": "a", "properties": {"x": text, "y": text}});
    let names: serde_json::Map<_, _> = (0..1000).map(|n| (format!("f{n}"), part.clone())).collect();
    let schema = Structural::compile(&json!({"type": "object", "properties": names}));
    assert_eq!(schema.shapes.len(), 3);
}

#[test]
fn schemas_nested_too_deep_are_cut_off() {
    let deep = (0..400).fold(json!({"type": "string"}), |inner, _| json!({"type": "array", "items": inner}));
    assert!(Structural::compile(&deep).validate(&json!([[[]]]), None).is_empty());
}

#[test]
fn failed_rules_of_unchanged_values_are_ratcheted_and_returned() {
    let schema = Structural::compile(&json!({"type": "object", "properties": {"a": {
        "type": "string", "maxLength": 9,
        "x-kubernetes-validations": [{"rule": "self == 'good'", "message": "be good"}],
    }}}));
    let (new, old) = (json!({"a": "bad", "b": 1}), json!({"a": "bad"}));
    let mut errors = ErrorList::new();
    let change = Change { new: &new, old: Some(&old), through: Through::Object, scale: None };
    let ratcheted = schema.check(&change, &mut errors);
    assert_eq!((errors.len(), ratcheted.to_string()), (0, r#"a: Invalid value: "bad": be good"#.to_owned()));
}
