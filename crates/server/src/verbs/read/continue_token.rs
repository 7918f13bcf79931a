//! The continue token of a list: encode and decode.

use crate::refusal::Refusal;
use api::go;
use base64::{
    Engine, alphabet,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig, general_purpose::URL_SAFE_NO_PAD},
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use store::Revision;

/// Kubernetes: Go accepts non-zero trailing bits.
const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &alphabet::URL_SAFE,
    GeneralPurposeConfig::new()
        .with_decode_allow_trailing_bits(true)
        .with_decode_padding_mode(DecodePaddingMode::RequireNone),
);

/// Kubernetes: the version of the token's own format.
const VERSION: &str = "meta.k8s.io/v1";

#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub(super) struct Continue {
    v: String,
    /// The revision of the whole list; -1 means the latest.
    pub(super) rv: i64,
    pub(super) start: String,
}

impl Continue {
    pub(super) fn parse(token: &str) -> Result<Continue, Refusal> {
        Continue::read(token).map_err(|problem| {
            Refusal::bad_request(format!("invalid continue token: continue key is not valid: {problem}"))
        })
    }

    fn read(token: &str) -> Result<Continue, String> {
        let bytes = LENIENT.decode(token).map_err(|_| bad_base64(token))?;
        let value: Value = serde_json::from_slice(&bytes).map_err(|error| bad_json(&bytes, &error))?;
        let read = Continue::of(value)?;
        if read.v != VERSION {
            return Err(format!("server does not recognize this encoded version {}", read.v));
        }
        if read.rv == 0 {
            return Err("incorrect encoded start resourceVersion (version meta.k8s.io/v1)".to_owned());
        }
        if read.start.is_empty() {
            return Err("encoded start key empty (version meta.k8s.io/v1)".to_owned());
        }
        let path = read.start.strip_prefix('/').unwrap_or(&read.start);
        // Kubernetes: a token must not lead out of the listed prefix.
        if path.split('/').any(|part| matches!(part, "" | "." | "..")) {
            return Err(read.start);
        }
        Ok(Continue { start: path.to_owned(), ..read })
    }

    fn of(value: Value) -> Result<Continue, String> {
        let described = match &value {
            Value::Object(_) => return serde_json::from_value(value.clone()).map_err(|_| bad_member(&value)),
            // Kubernetes: Go decodes null as an empty token.
            Value::Null => return Ok(Continue::default()),
            other => go::json_kind(other),
        };
        Err(format!("json: cannot unmarshal {described} into Go value of type storage.continueToken"))
    }

    /// A token for the same key at the latest revision, when this token's revision is compacted.
    pub(super) fn at_latest(&self) -> String {
        encode(&Continue { v: VERSION.to_owned(), rv: -1, start: self.start.clone() })
    }

    pub(super) fn text(start: &str, revision: Revision) -> String {
        encode(&Continue { v: VERSION.to_owned(), rv: revision.0 as i64, start: start.to_owned() })
    }
}

fn encode(token: &Continue) -> String {
    URL_SAFE_NO_PAD.encode(serde_json::to_vec(token).unwrap_or_default())
}

fn bad_base64(token: &str) -> String {
    let is_known = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    let at = token.bytes().position(|byte| !is_known(byte)).unwrap_or(token.len().saturating_sub(1));
    format!("illegal base64 data at input byte {at}")
}

/// Go's error for a token that is not JSON.
fn bad_json(bytes: &[u8], error: &serde_json::Error) -> String {
    match bytes.iter().find(|byte| !byte.is_ascii_whitespace()) {
        Some(first) if !error.is_eof() => {
            format!("invalid character {} looking for beginning of value", quote_rune(char::from(*first)))
        }
        _ => "unexpected end of JSON input".to_owned(),
    }
}

/// Go's error for a member of another JSON type.
fn bad_member(value: &Value) -> String {
    let members = [("v", "string"), ("rv", "int64"), ("start", "string")];
    let bad = members.into_iter().find_map(|(name, wanted)| {
        let member = value.get(name)?;
        let fits = if wanted == "string" { member.is_string() } else { member.is_i64() };
        let found = match member {
            Value::Number(number) if wanted == "int64" => format!("number {number}"),
            other => go::json_kind(other).to_owned(),
        };
        Some((found, name, wanted)).filter(|_| !fits)
    });
    let (found, name, wanted) = bad.unwrap_or(("object".to_owned(), "v", "string"));
    format!("json: cannot unmarshal {found} into Go struct field continueToken.{name} of type {wanted}")
}

/// A character quoted as in Go.
fn quote_rune(rune: char) -> String {
    match u32::from(rune) {
        code @ 0..0x20 => format!("'\\x{code:02x}'"),
        code @ (0x7f..0xa1) => format!("'\\u{code:04x}'"),
        _ => format!("'{rune}'"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn malformed_tokens_are_rejected_with_the_texts_of_go() {
        let json = |text: &str| URL_SAFE_NO_PAD.encode(text);
        for (token, expected) in [
            ("!!!".to_owned(), "illegal base64 data at input byte 0"),
            ("a".to_owned(), "illegal base64 data at input byte 0"),
            ("eyJ2IjoxfQ=".to_owned(), "illegal base64 data at input byte 10"),
            (json(""), "unexpected end of JSON input"),
            (json("nope"), "invalid character 'n' looking for beginning of value"),
            (json("[]"), "json: cannot unmarshal array into Go value of type storage.continueToken"),
            (json("{}"), "server does not recognize this encoded version "),
            (
                json(r#"{"v":1}"#),
                "json: cannot unmarshal number into Go struct field continueToken.v of type string",
            ),
            (json(r#"{"v":"v2"}"#), "server does not recognize this encoded version v2"),
            (
                json(r#"{"v":"meta.k8s.io/v1","rv":0,"start":"a"}"#),
                "incorrect encoded start resourceVersion (version meta.k8s.io/v1)",
            ),
            (json(r#"{"v":"meta.k8s.io/v1","rv":1}"#), "encoded start key empty (version meta.k8s.io/v1)"),
            (json(r#"{"v":"meta.k8s.io/v1","rv":1,"start":"../a"}"#), "../a"),
        ] {
            assert_eq!(Continue::read(&token).map(|it| it.start).unwrap_err(), expected, "{token}");
        }
        let token = Continue::text("n/a\0", Revision(7));
        assert_eq!(Continue::read(&token).map(|it| (it.rv, it.start)), Ok((7, "n/a\0".to_owned())));
    }
}
