//! Text that is no JSON, or not the JSON of an object, and what Go says to it.

use kinds::types;
use schema::decode::{DecodeError, FieldValidation, decode, type_meta};

use crate::decode::of;

/// A body, and either its version and kind or what Go says to it.
const SYNTAX: &[(&str, &str)] = &[
    ("", "unexpected end of JSON input"),
    ("{", "unexpected end of JSON input"),
    ("null", " "),
    (
        "[]",
        r#"json: cannot unmarshal array into Go value of type struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }"#,
    ),
    ("{} x", "invalid character 'x' after top-level value"),
    (r#"{"kind": 5}"#, "json: cannot unmarshal number into Go struct field .kind of type string"),
    (r#"{"KIND": "Pod", "apiversion": "v1"}"#, "v1 Pod"),
    (
        r#"{"kind": {}, "apiVersion": 1}"#,
        "json: cannot unmarshal object into Go struct field .kind of type string",
    ),
    ("{'a': 1}", "invalid character '\\'' looking for beginning of object key string"),
    (r#"{"a" 1}"#, "invalid character '1' after object key"),
    (r#"{"a": 1 "b": 2}"#, r#"invalid character '"' after object key:value pair"#),
    ("{,}", "invalid character ',' looking for beginning of object key string"),
    (r#"{"a": 1,}"#, "invalid character '}' looking for beginning of object key string"),
    ("[1,]", "invalid character ']' looking for beginning of value"),
    ("[1 2]", "invalid character '2' after array element"),
    (r#""\x""#, "invalid character 'x' in string escape code"),
    (r#""\u12g4""#, "invalid character 'g' in \\u hexadecimal character escape"),
    ("\"\n\"", "invalid character '\\n' in string literal"),
    ("-", "invalid character ' ' in numeric literal"),
    ("01", "invalid character '1' after top-level value"),
    ("1.x", "invalid character 'x' after decimal point in numeric literal"),
    ("1e", "invalid character ' ' in exponent of numeric literal"),
    ("tru", "invalid character ' ' in literal true (expecting 'e')"),
    ("nulL", "invalid character 'L' in literal null (expecting 'l')"),
    ("[[[", "unexpected end of JSON input"),
    (r#""\u00"#, "invalid character ' ' in \\u hexadecimal character escape"),
    ("{\"a\": é}", "invalid character 'Ã' looking for beginning of value"),
];

#[test]
fn a_body_says_first_whether_it_is_json_and_what_it_is() {
    for &(body, expected) in SYNTAX {
        let said = match type_meta(body.as_bytes()) {
            Ok(meta) => format!("{} {}", meta.api_version, meta.kind),
            Err(error) => {
                let text = error.to_string();
                text.strip_prefix("couldn't get version/kind; json parse error: ").unwrap().to_owned()
            }
        };
        assert_eq!(said, expected, "{body:?}");
        if !expected.contains("into Go") && !matches!(body, "null") && !expected.starts_with("v1") {
            let refused = decode(types(), of("Pod"), body.as_bytes(), FieldValidation::Strict);
            assert_eq!(refused, Err(DecodeError::Malformed(expected.to_owned())), "{body:?}");
        }
    }
}
