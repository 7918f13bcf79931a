//! Bodies that are well-formed but too much: deep, repetitive, or full of faults.

use kinds::types;
use schema::decode::{DecodeError, FieldValidation, decode, decode_any};
use schema::yaml;

use crate::decode::of;

#[test]
fn strict_errors_are_limited() {
    let members: Vec<_> = (0..150).map(|nth| format!("\"unknown{nth}\": 1")).collect();
    let body = format!("{{{}}}", members.join(","));
    let read = decode(types(), of("Pod"), body.as_bytes(), FieldValidation::Warn).unwrap();
    assert_eq!(read.warnings.len(), 100);
}

#[test]
fn nesting_is_refused_before_the_stack_ends() {
    let deep =
        |open: &str, close: &str, times: usize| format!("{}{}", open.repeat(times), close.repeat(times));
    let read = |body: &str| decode(types(), of("ConfigMap"), body.as_bytes(), FieldValidation::Ignore);
    let too_deep =
        |sign: char| DecodeError::Malformed(format!("invalid character '{sign}' exceeded max depth"));
    // What no type knows is passed over as deep as Go does.
    assert!(read(&format!(r#"{{"unknown": {}}}"#, deep("[", "]", 9_999))).is_ok());
    assert_eq!(read(&format!(r#"{{"unknown": {}}}"#, deep("[", "]", 10_000))), Err(too_deep('[')));
    assert_eq!(read(&format!(r#"{{"unknown": {}}}"#, deep("[", "]", 1_000_000))), Err(too_deep('[')));
    assert_eq!(decode_any("[".repeat(1_000_000).as_bytes(), FieldValidation::Warn), Err(too_deep('[')));
    let custom = |times| {
        let body = format!(r#"{}1{}"#, r#"{"a":"#.repeat(times), "}".repeat(times));
        decode_any(body.as_bytes(), FieldValidation::Warn)
    };
    assert!(custom(120).is_ok());
    assert_eq!(custom(121), Err(too_deep('{')));
    let schema = r#"{"properties":{"a":"#.repeat(100_000);
    let schema = format!(r#"{{"spec":{{"versions":[{{"schema":{{"openAPIV3Schema":{schema}"#);
    let crd = decode(types(), of("CustomResourceDefinition"), schema.as_bytes(), FieldValidation::Strict);
    assert_eq!(crd, Err(too_deep('{')));
}

#[test]
fn yaml_cannot_outgrow_its_text() {
    let read = |text: &str| yaml::to_json(text.as_bytes());
    for nested in ["[".repeat(1_000_000), "- ".repeat(100_000), "{a: ".repeat(100_000)] {
        assert!(read(&nested).is_err());
    }
    let ladder: String = (1..=600).map(|nth| format!("a{nth}: &a{nth} [*a{}]\n", nth - 1)).collect();
    let refused =
        read(&format!("filler: [{}]\na0: &a0 x\n{ladder}", "1, ".repeat(20_000))).unwrap_err().to_string();
    assert_eq!(refused, "yaml: exceeded max depth");
    let bomb = "a: &a [x, x, x, x, x, x, x, x, x, x]\n".to_owned()
        + &["ab", "bc", "cd", "de", "ef", "fg", "gh"]
            .map(|pair| {
                let (from, to) = pair.split_at(1);
                format!("{to}: &{to} [{}]\n", format!("*{from}, ").repeat(10))
            })
            .concat();
    let refused = read(&bomb).unwrap_err().to_string();
    assert_eq!(refused, "yaml: document contains excessive aliasing");
}
