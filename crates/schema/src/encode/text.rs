//! Strings and numbers as Go's `json.Marshal` writes them.

use std::io::Write as _;

use crate::run;
use api::go;
use serde_json::Value;

/// Which characters a string escapes beyond those that JSON requires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Escape {
    /// `<`, `>`, `&`, U+2028 and U+2029, so that the text is safe inside HTML.
    Html,
    Plain,
}

/// Writes a comma unless it is the first, the key and its colon.
pub(super) fn push_key(out: &mut Vec<u8>, first: &mut bool, key: &str, escape: Escape) {
    if !std::mem::take(first) {
        out.push(b',');
    }
    push_string(out, key, escape);
    out.push(b':');
}

pub(super) fn push_string(out: &mut Vec<u8>, text: &str, escape: Escape) {
    out.push(b'"');
    let bytes = text.as_bytes();
    let (mut written, mut seen) = (0, 0);
    loop {
        let at = seen + run::length(&bytes[seen..], may_need_escape);
        let Some(&byte) = bytes.get(at) else { break };
        seen = at + 1;
        let after = match CLASSES[usize::from(byte)] {
            Class::Plain => continue,
            Class::Html if escape == Escape::Plain => continue,
            // U+2028 and U+2029 are E2 80 A8 and E2 80 A9.
            Class::Separator if escape == Escape::Plain => continue,
            Class::Separator if !matches!(bytes[at..], [_, 0x80, 0xa8 | 0xa9, ..]) => continue,
            Class::Separator => at + 3,
            Class::Html | Class::Short(_) | Class::Control => at + 1,
        };
        out.extend_from_slice(&bytes[written..at]);
        let written_escape = match CLASSES[usize::from(byte)] {
            Class::Short(letter) => out.write_all(&[b'\\', letter]),
            Class::Separator => write!(out, "\\u202{:x}", bytes[at + 2] & 0xf),
            _ => write!(out, "\\u{byte:04x}"),
        };
        written_escape.expect("writing to a Vec cannot fail");
        written = after;
    }
    out.extend_from_slice(&bytes[written..]);
    out.push(b'"');
}

/// Whether a byte is of any class but [`Class::Plain`].
fn may_need_escape(byte: u8) -> bool {
    let always = (byte < 0x20) | (byte == b'"') | (byte == b'\\');
    always | (byte == b'<') | (byte == b'>') | (byte == b'&') | (byte == 0xe2)
}

/// A number, boolean or null.
pub(super) fn push_scalar(out: &mut Vec<u8>, scalar: &Value) {
    let written = match scalar {
        Value::Bool(true) => out.write_all(b"true"),
        Value::Bool(false) => out.write_all(b"false"),
        Value::Number(number) => match (number.as_i64(), number.as_u64(), number.as_f64()) {
            (Some(number), ..) => write!(out, "{number}"),
            (_, Some(number), _) => write!(out, "{number}"),
            (.., float) => {
                // Every JSON number is finite, so it has a text.
                let text = go::json(&float.unwrap_or_default()).unwrap_or_default();
                out.write_all(text.as_bytes())
            }
        },
        _ => out.write_all(b"null"),
    };
    written.expect("writing to a Vec cannot fail");
}

#[derive(Clone, Copy)]
enum Class {
    Plain,
    /// A backslash and a letter.
    Short(u8),
    /// `\u00..`
    Control,
    Html,
    /// The first byte of U+2028 and U+2029, and of other characters.
    Separator,
}

static CLASSES: [Class; 256] = {
    let mut classes = [Class::Plain; 256];
    let mut byte = 0;
    while byte < 0x20 {
        classes[byte] = Class::Control;
        byte += 1;
    }
    classes[b'"' as usize] = Class::Short(b'"');
    classes[b'\\' as usize] = Class::Short(b'\\');
    classes[b'\n' as usize] = Class::Short(b'n');
    classes[b'\r' as usize] = Class::Short(b'r');
    classes[b'\t' as usize] = Class::Short(b't');
    classes[0x08] = Class::Short(b'b');
    classes[0x0c] = Class::Short(b'f');
    classes[b'<' as usize] = Class::Html;
    classes[b'>' as usize] = Class::Html;
    classes[b'&' as usize] = Class::Html;
    classes[0xe2] = Class::Separator;
    classes
};

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn strings_are_escaped_as_go_escapes_them() {
        for (text, html, plain) in [
            ("", r#""""#, r#""""#),
            ("a\"b\\c", r#""a\"b\\c""#, r#""a\"b\\c""#),
            ("\n\r\t\u{8}\u{c}\0\u{1f}\u{7f}", "\"\\n\\r\\t\\b\\f\\u0000\\u001f\u{7f}\"", ""),
            ("<a>&b", r#""\u003ca\u003e\u0026b""#, r#""<a>&b""#),
            ("x\u{2028}\u{2029}\u{2027}€", "\"x\\u2028\\u2029\u{2027}€\"", "\"x\u{2028}\u{2029}\u{2027}€\""),
        ] {
            let shown = |escape| {
                let mut out = Vec::new();
                push_string(&mut out, text, escape);
                String::from_utf8(out).unwrap()
            };
            assert_eq!(shown(Escape::Html), html);
            assert_eq!(shown(Escape::Plain), if plain.is_empty() { html } else { plain });
        }
    }

    #[test]
    fn numbers_are_written_as_go_writes_them() {
        for (number, expected) in [
            (json!(0), "0"),
            (json!(-9_223_372_036_854_775_808_i64), "-9223372036854775808"),
            (json!(18_446_744_073_709_551_615_u64), "18446744073709551615"),
            (json!(1.0), "1"),
            (json!(-0.0), "-0"),
            (json!(0.1), "0.1"),
            (json!(1e20), "100000000000000000000"),
            (json!(1e21), "1e+21"),
            (json!(1.5e-6), "0.0000015"),
            (json!(1.5e-7), "1.5e-7"),
            (json!(true), "true"),
            (json!(null), "null"),
        ] {
            let mut out = Vec::new();
            push_scalar(&mut out, &number);
            assert_eq!(String::from_utf8(out).unwrap(), expected);
        }
    }
}
