//! First pass over a body: checks that it is JSON and reads `apiVersion` and `kind`.

use super::DecodeError;
use super::scanner::{Scanner, SyntaxError, Token};

/// `apiVersion` and `kind` of a body; empty where missing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TypeMeta {
    pub api_version: String,
    pub kind: String,
}

impl TypeMeta {
    /// Fails unless both are set. `body` is where they were read from.
    pub fn named(self, body: &[u8]) -> Result<TypeMeta, DecodeError> {
        let problem = if self.api_version.split('/').count() > 2 {
            format!("unexpected GroupVersion string: {}", self.api_version)
        } else if self.kind.is_empty() {
            format!("Object 'Kind' is missing in '{}'", String::from_utf8_lossy(body))
        } else {
            return Ok(self);
        };
        Err(DecodeError::Malformed(problem))
    }
}

/// Kubernetes: what Go prints for the struct that kube-apiserver decodes them into.
const GO_STRUCT: &str =
    r#"struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }"#;

/// Reads `apiVersion` and `kind`, and checks that the whole body is JSON.
///
/// Kubernetes: this comes first, so that syntax errors always have these words. It uses Go's own JSON
/// library, so here, and only here, member names match in any case.
pub fn type_meta(json: &[u8]) -> Result<TypeMeta, DecodeError> {
    read(&mut Scanner::new(json)).unwrap_or_else(|SyntaxError(text)| Err(text)).map_err(|text| {
        DecodeError::Malformed(format!("couldn't get version/kind; json parse error: {text}"))
    })
}

fn read(scanner: &mut Scanner<'_>) -> Result<Result<TypeMeta, String>, SyntaxError> {
    let mut found = Ok(TypeMeta::default());
    match scanner.token()? {
        Token::Object => {
            let mut more = scanner.open(Token::Object)?;
            while more {
                let key = scanner.key()?;
                member(scanner, &key, &mut found)?;
                more = scanner.next_member()?;
            }
        }
        Token::Null => scanner.literal("null")?,
        token => {
            let value = token.described();
            found = Err(format!("json: cannot unmarshal {value} into Go value of type {GO_STRUCT}"));
            scanner.skip(0)?;
        }
    }
    scanner.end()?;
    Ok(found)
}

fn member(
    scanner: &mut Scanner<'_>,
    key: &str,
    found: &mut Result<TypeMeta, String>,
) -> Result<(), SyntaxError> {
    let name = ["kind", "apiVersion"].into_iter().find(|name| key.eq_ignore_ascii_case(name));
    let (Some(name), token) = (name, scanner.token()?) else { return scanner.skip(1) };
    match (token, found) {
        (Token::String, Ok(meta)) => {
            let text = scanner.string()?.into_owned();
            *(if name == "kind" { &mut meta.kind } else { &mut meta.api_version }) = text;
            Ok(())
        }
        (Token::String | Token::Null, _) | (_, Err(_)) => scanner.skip(1),
        (token, found) => {
            let value = token.described();
            *found =
                Err(format!("json: cannot unmarshal {value} into Go struct field .{name} of type string"));
            scanner.skip(1)
        }
    }
}
