//! YAML bodies: the same objects, read through another grammar.

use kinds::types;
use schema::decode::{DecodeError, FieldValidation};
use schema::yaml::{decode_yaml, to_json};

use crate::decode::of;

#[test]
fn yaml_goes_the_same_way() {
    let read = |yaml: &str, validation| decode_yaml(types(), of("ConfigMap"), yaml.as_bytes(), validation);
    let warned = read("data:\n  a: x\n  a: z\nextra: 1\n", FieldValidation::Warn).unwrap();
    assert_eq!(warned.value, serde_json::json!({"data": {"a": "z"}}));
    let line = r#"line 3: key "a" already set in map"#;
    assert_eq!(warned.warnings, [line, r#"unknown field "extra""#]);
    let refused = read("data: {a: x}\ndata: {b: z}\n", FieldValidation::Strict).unwrap_err();
    let line = "yaml: unmarshal errors:\n  line 2: key \"data\" already set in map";
    assert_eq!(refused, DecodeError::Strict(vec![line.to_owned()]));
    let refused = read("data: {a: 0x10}\n", FieldValidation::Strict).unwrap_err();
    let text = "json: cannot unmarshal number into Go struct field ConfigMap.data of type string";
    assert_eq!(refused, DecodeError::Malformed(text.to_owned()));
}

#[test]
fn plain_scalars_mean_what_go_yaml_takes_them_for() {
    for (scalar, expected) in [
        ("yes", "true"),
        ("Off", "false"),
        ("y", "true"),
        ("yEs", r#""yEs""#),
        ("~", "null"),
        ("", "null"),
        ("nULL", r#""nULL""#),
        ("0644", "420"),
        ("0o17", "15"),
        ("08", "8"),
        ("0x1F", "31"),
        ("-0b11", "-3"),
        ("+5", "5"),
        ("1_000", "1000"),
        ("_1", r#""_1""#),
        ("9223372036854775808", "9223372036854775808"),
        ("-9223372036854775809", "-9223372036854776000"),
        ("1.50", "1.5"),
        (".5", "0.5"),
        ("1.", "1"),
        (".", r#"".""#),
        ("1e3", "1000"),
        ("1e21", "1e+21"),
        ("1e400", r#""1e400""#),
        ("12:30", r#""12:30""#),
        ("2024-01-01", r#""2024-01-01""#),
        ("1Gi", r#""1Gi""#),
        ("'5'", r#""5""#),
        ("\"\\u00e9\"", r#""é""#),
        ("!!str 5", r#""5""#),
        ("!!int \"5\"", "5"),
        ("!!binary YWJj", r#""abc""#),
        ("!custom 5", r#""5""#),
        ("|\n  x\n  y", r#""x\ny""#),
        (">\n  x\n  y\n\n  z\n", r#""x y\nz\n""#),
        ("[1, b, {c: d}]", r#"[1,"b",{"c":"d"}]"#),
    ] {
        let read = to_json(format!("a: {scalar}").as_bytes()).unwrap();
        assert_eq!(String::from_utf8(read.json).unwrap(), format!("{{\"a\":{expected}}}"), "{scalar}");
    }
}

#[test]
fn documents_keys_and_aliases_follow_go_yaml() {
    for (text, expected) in [
        ("", "null"),
        ("a: 1\n---\nb: 2\n", r#"{"a":1}"#),
        ("1: a\ntrue: b\n1.5: c\n", r#"{"1":"a","1.5":"c","true":"b"}"#),
        ("a: &x {b: 1}\nc: *x\n", r#"{"a":{"b":1},"c":{"b":1}}"#),
        ("a: &x {k: 1, l: 2}\nb:\n  <<: *x\n  k: 3\n", r#"{"a":{"k":1,"l":2},"b":{"k":3,"l":2}}"#),
        (
            "a: &x {k: 1}\nb: &z {k: 2, m: 3}\nc: {<<: [*x, *z]}\n",
            r#"{"a":{"k":1},"b":{"k":2,"m":3},"c":{"k":1,"m":3}}"#,
        ),
        ("a: 1\na: 2\n", r#"{"a":2}"#),
    ] {
        assert_eq!(String::from_utf8(to_json(text.as_bytes()).unwrap().json).unwrap(), expected, "{text}");
    }
    for text in [
        "a: [1, 2\n",
        "a: b: c\n",
        "a: &a [*a]\n",
        "a: *nope\n",
        "a: .nan\n",
        "[1]: a\n",
        "null: a\n",
        "a: !!int x\n",
    ] {
        let refused = to_json(text.as_bytes()).unwrap_err().to_string();
        assert!(refused.starts_with("yaml: "), "{text} {refused}");
    }
}
