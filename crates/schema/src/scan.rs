//! Finds the value at a path in JSON bytes; skips the other values without parsing them.
//!
//! The bytes come from our own encoder: valid, and without spaces between tokens.

use memchr::{memchr2, memmem};
use std::borrow::Cow;

/// The value at a path of member names.
#[must_use]
pub fn find<'a>(json: &'a [u8], path: &[&str]) -> Option<&'a [u8]> {
    // A quick check: if the last name is nowhere in the text, there is no value at the path.
    if path.last().is_some_and(|name| memmem::find(json, name.as_bytes()).is_none()) {
        return None;
    }
    let start = start(json, 0, path)?;
    json.get(start..value_end(json, start)?)
}

/// The position of the value at a path, in the value that begins at `from`. Does not look for its end.
#[must_use]
pub fn start(json: &[u8], from: usize, path: &[&str]) -> Option<usize> {
    path.iter().try_fold(from, |at, name| member(json, at, name))
}

fn member(json: &[u8], object: usize, name: &str) -> Option<usize> {
    let mut at = object + 1;
    while json.get(object) == Some(&b'{') {
        let name_end = string_end(json, at)?;
        let value = name_end + 1;
        if json.get(at + 1..name_end - 1)? == name.as_bytes() {
            return Some(value);
        }
        at = value_end(json, value)? + 1;
    }
    None
}

/// The string at a path; empty where there is none.
#[must_use]
pub fn text<'a>(json: &'a [u8], path: &[&str]) -> Cow<'a, str> {
    let raw = find(json, path).and_then(|raw| serde_json::from_slice::<Text<'_>>(raw).ok());
    raw.map(|Text(text)| text).unwrap_or_default()
}

#[derive(serde::Deserialize)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

/// The members of an object: the name without its quotes, and the value. None if it is not an object.
pub fn members(object: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    let mut at = if object.first() == Some(&b'{') { 1 } else { object.len() };
    std::iter::from_fn(move || {
        let name_end = string_end(object, at)?;
        let name = object.get(at + 1..name_end - 1)?;
        let start = name_end + 1;
        let end = value_end(object, start)?;
        at = end + 1;
        Some((name, object.get(start..end)?))
    })
}

/// The end of the value that begins at `at`.
#[must_use]
pub fn value_end(json: &[u8], at: usize) -> Option<usize> {
    match json.get(at)? {
        b'"' => string_end(json, at),
        b'{' | b'[' => closed(json, at + 1, 1),
        _ => {
            let rest = &json[at..];
            let length =
                rest.iter().position(|byte| matches!(byte, b',' | b'}' | b']')).unwrap_or(rest.len());
            Some(at + length)
        }
    }
}

/// The end of the object or array that is `depth` levels around `at`, which is between two values: 1 is the
/// innermost.
#[must_use]
pub fn closed(json: &[u8], mut at: usize, mut depth: usize) -> Option<usize> {
    loop {
        match json.get(at)? {
            b'"' => {
                at = string_end(json, at)?;
                continue;
            }
            b'{' | b'[' => depth += 1,
            b'}' | b']' => {
                depth -= 1;
                if depth == 0 {
                    return Some(at + 1);
                }
            }
            _ => {}
        }
        at += 1;
    }
}

/// The end of the string that begins at `at`. `None` where none does.
#[must_use]
pub fn string_end(json: &[u8], at: usize) -> Option<usize> {
    if json.get(at) != Some(&b'"') {
        return None;
    }
    let mut end = at + 1;
    loop {
        end += memchr2(b'"', b'\\', json.get(end..)?)?;
        match json.get(end)? {
            b'"' => return Some(end + 1),
            _ => end += 2,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_off_the_path_are_skipped() {
        let json =
            br#"{"kind":"a\"b","n":-1.5e3,"metadata":{"x":[{"labels":1},"]}"],"labels":{"k":"v"}},"z":null}"#;
        for (path, expected) in [
            (&["kind"][..], Some(r#""a\"b""#)),
            (&["n"], Some("-1.5e3")),
            (&["z"], Some("null")),
            (&["metadata", "labels"], Some(r#"{"k":"v"}"#)),
            (&["metadata", "labels", "k"], Some(r#""v""#)),
            (&["metadata", "none"], None),
            (&["kind", "deeper"], None),
            (&[], Some(str::from_utf8(json).unwrap())),
        ] {
            let found = find(json, path).map(|raw| str::from_utf8(raw).unwrap());
            assert_eq!(found, expected, "{path:?}");
        }
        assert_eq!(text(json, &["kind"]), "a\"b");
        assert_eq!(text(json, &["n"]), "");
        assert_eq!(find(b"", &["a"]), None);
        assert_eq!(find(b"{}", &["a"]), None);
    }

    #[test]
    fn members_are_split_into_name_and_value() {
        let found: Vec<_> = members(br#"{"a\"":{},"b":[2]}"#).collect();
        assert_eq!(found, [(&br#"a\""#[..], &b"{}"[..]), (b"b", b"[2]")]);
        assert_eq!(members(b"[\"a\"]").count(), 0);
    }

    #[test]
    fn ends_of_enclosing_containers_are_found() {
        let json = br#"{"a":[{"b":{"c":"}"},"d":1},2],"e":3}"#;
        let start = start(json, 0, &["a"]).unwrap() + 1;
        let inner = super::start(json, start, &["b", "c"]).unwrap();
        let end = value_end(json, inner).unwrap();
        for (depth, expected) in [(1, r#""}"}"#), (2, r#""}"},"d":1}"#), (3, r#""}"},"d":1},2]"#)] {
            let to = closed(json, end, depth).unwrap();
            assert_eq!(str::from_utf8(&json[inner..to]).unwrap(), expected);
        }
        assert_eq!(closed(json, end, 5), None);
    }
}
