//! A value in, the text that Go prints for it out: `%q`, `%v` of a float, and `json.Marshal`.
//!
//! Kubernetes puts such text into messages, and clients match on those.

use std::fmt::Write as _;
use std::io;
use std::num::{IntErrorKind, ParseIntError};

use serde::Serialize;
use serde_json::{Value, ser::Formatter};

/// `%q`: a double-quoted string with Go's escapes.
pub fn quote(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            '\x07' => out.push_str("\\a"),
            '\x08' => out.push_str("\\b"),
            '\x0c' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\x0b' => out.push_str("\\v"),
            c if is_print(c) => out.push(c),
            c => push_code(&mut out, u32::from(c)),
        }
    }
    out.push('"');
    out
}

/// `strings.Join` of `%q`: how Kubernetes lists what it would have accepted.
pub fn quote_all<T: AsRef<str>>(texts: impl IntoIterator<Item = T>) -> String {
    texts.into_iter().map(|text| quote(text.as_ref())).collect::<Vec<_>>().join(", ")
}

/// `%q` of a list: `["a" "b"]`.
pub fn quote_list<T: AsRef<str>>(texts: &[T]) -> String {
    let quoted: Vec<_> = texts.iter().map(|text| quote(text.as_ref())).collect();
    format!("[{}]", quoted.join(" "))
}

/// `unicode.IsPrint`: letters, marks, numbers, punctuation, symbols and the ASCII space.
pub fn is_print(c: char) -> bool {
    if c.is_ascii() {
        return matches!(c, ' '..='~');
    }
    // The standard library keeps the same table, but shows it only through `escape_debug`, which also
    // escapes a mark that nothing precedes: hence the `a`.
    let text = String::from_iter(['a', c]);
    text.escape_debug().eq(text.chars())
}

/// `strconv.ParseUint` of a decimal number, or its error.
pub fn parse_uint(text: &str) -> Result<u64, String> {
    // Go knows no sign here; Rust would take a plus.
    let digits = if text.starts_with('+') { "" } else { text };
    digits.parse().map_err(|error| number_error("ParseUint", text, &error))
}

/// `strconv.ParseInt` of a decimal number, or its error.
pub fn parse_int(text: &str) -> Result<i64, String> {
    text.parse().map_err(|error| number_error("ParseInt", text, &error))
}

fn number_error(function: &str, text: &str, error: &ParseIntError) -> String {
    let problem = match error.kind() {
        IntErrorKind::PosOverflow | IntErrorKind::NegOverflow => "value out of range",
        _ => "invalid syntax",
    };
    format!("strconv.{function}: parsing {}: {problem}", quote(text))
}

/// `%v` of a `float64`: the shortest digits, with an exponent below 1e-4 and from 1e6 on.
pub fn float(value: f64) -> String {
    let plain = value == 0.0 || (1e-4..1e6).contains(&value.abs());
    if plain { value.to_string() } else { scientific(value, 2) }
}

/// What `encoding/json` calls a value that stands where something else should.
#[must_use]
pub fn json_kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// `json.Marshal`: compact, fields in their order, HTML characters escaped.
pub fn json(value: &(impl Serialize + ?Sized)) -> Result<String, serde_json::Error> {
    let mut out = Vec::new();
    value.serialize(&mut serde_json::Serializer::with_formatter(&mut out, GoJson))?;
    Ok(String::from_utf8(out).expect("serde_json writes UTF-8"))
}

struct GoJson;

impl Formatter for GoJson {
    fn write_f64<W: ?Sized + io::Write>(&mut self, out: &mut W, value: f64) -> io::Result<()> {
        let plain = value == 0.0 || (1e-6..1e21).contains(&value.abs());
        let text = if plain { value.to_string() } else { scientific(value, 1) };
        out.write_all(text.as_bytes())
    }

    fn write_string_fragment<W: ?Sized + io::Write>(&mut self, out: &mut W, text: &str) -> io::Result<()> {
        const ESCAPED: [char; 5] = ['<', '>', '&', '\u{2028}', '\u{2029}'];
        for piece in text.split_inclusive(ESCAPED) {
            match piece.char_indices().next_back() {
                Some((at, c)) if ESCAPED.contains(&c) => {
                    write!(out, "{}\\u{:04x}", &piece[..at], u32::from(c))?
                }
                _ => out.write_all(piece.as_bytes())?,
            }
        }
        Ok(())
    }
}

/// `1.5e+21`: Go signs every exponent and pads it to a width.
fn scientific(value: f64, width: usize) -> String {
    let text = format!("{value:e}");
    match text.split_once('e') {
        Some((digits, exponent)) => match exponent.strip_prefix('-') {
            Some(exponent) => format!("{digits}e-{exponent:0>width$}"),
            None => format!("{digits}e+{exponent:0>width$}"),
        },
        None => text,
    }
}

fn push_code(out: &mut String, code: u32) {
    let written = match code {
        ..0x80 => write!(out, "\\x{code:02x}"),
        0x80..0x10000 => write!(out, "\\u{code:04x}"),
        _ => write!(out, "\\U{code:08x}"),
    };
    written.expect("a String takes every write");
}

/// Whether Go's `net.SplitHostPort` accepts it: `host:port` or `[address]:port`; both parts may be empty.
pub fn is_host_and_port(text: &str) -> bool {
    let Some((host, port)) = text.rsplit_once(':') else { return false };
    let host = match host.strip_prefix('[') {
        Some(address) => address.strip_suffix(']'),
        None => (!host.contains(':')).then_some(host),
    };
    let has_brackets = |part: &str| part.contains(['[', ']']);
    host.is_some_and(|host| !has_brackets(host)) && !has_brackets(port)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn strings_quote_as_in_go() {
        for (text, expected) in [
            ("", r#""""#),
            ("it's", r#""it's""#),
            (r#"a"b\c"#, r#""a\"b\\c""#),
            ("\x07\x08\x0c\n\r\t\x0b", r#""\a\b\f\n\r\t\v""#),
            ("\0\x1b\x7f", r#""\x00\x1b\x7f""#),
            ("é ☃ 世 e\u{301}", "\"é ☃ 世 e\u{301}\""),
            ("\u{301}", "\"\u{301}\""),
            ("\u{a0}\u{200b}\u{feff}", r#""\u00a0\u200b\ufeff""#),
            ("\u{10ffff}", r#""\U0010ffff""#),
            ("<&>", r#""<&>""#),
        ] {
            assert_eq!(quote(text), expected);
        }
    }

    #[test]
    fn floats_print_as_percent_v() {
        for (value, expected) in [
            (0.0, "0"),
            (1.0, "1"),
            (-1.5, "-1.5"),
            (123456.0, "123456"),
            (1000000.0, "1e+06"),
            (123456789.0, "1.23456789e+08"),
            (0.0001, "0.0001"),
            (0.00001, "1e-05"),
            (1e100, "1e+100"),
        ] {
            assert_eq!(float(value), expected);
        }
    }

    #[test]
    fn json_prints_as_marshal() {
        for (value, expected) in [
            (json!({"b": 1, "a": [true, null, "x"]}), r#"{"a":[true,null,"x"],"b":1}"#),
            (json!("<a> & b\u{2028}é\""), r#""\u003ca\u003e \u0026 b\u2028é\"""#),
            (json!("\u{1}\n\u{7f}"), "\"\\u0001\\n\u{7f}\""),
            (json!([1.0, 1e6, 1e20, 1e21, 1.5e-7]), "[1,1000000,100000000000000000000,1e+21,1.5e-7]"),
        ] {
            assert_eq!(json(&value).unwrap(), expected);
        }
    }

    #[test]
    fn hosts_and_ports_are_split_as_by_go() {
        for text in ["a:1", ":", "a:", ":80", "[::1]:80", "[]:", "[a]:b"] {
            assert!(is_host_and_port(text), "{text}");
        }
        for text in ["", "a", "a:b:c", "::1", "[::1]", "[::1:80", "[a]b:1", "a[:1", "a:]", "[[a]]:1"] {
            assert!(!is_host_and_port(text), "{text}");
        }
    }
}
