//! JSON bytes and a path in, the bytes that stand there out: what is not on the path is stepped over, not parsed.
//!
//! The bytes are our own encoder's: valid, and without space between things.

use memchr::memmem;
use std::borrow::Cow;

/// The value at a path of member names.
pub(super) fn find<'a>(json: &'a [u8], path: &[&str]) -> Option<&'a [u8]> {
    // What is nowhere in the text is not at the path either, and that shows at a glance.
    if path.last().is_some_and(|name| memmem::find(json, name.as_bytes()).is_none()) {
        return None;
    }
    let mut value = json;
    for name in path {
        value = member(value, name)?;
    }
    Some(value)
}

/// The text at a path; empty where there is none.
pub(super) fn text<'a>(json: &'a [u8], path: &[&str]) -> Cow<'a, str> {
    let raw = find(json, path).and_then(|raw| serde_json::from_slice::<Text<'_>>(raw).ok());
    raw.map(|Text(text)| text).unwrap_or_default()
}

#[derive(serde::Deserialize)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

fn member<'a>(object: &'a [u8], name: &str) -> Option<&'a [u8]> {
    let mut at = 1;
    while object.first() == Some(&b'{') && object.get(at) == Some(&b'"') {
        let end = string_end(object, at)?;
        let value = end + 1;
        let next = value_end(object, value)?;
        if object.get(at + 1..end - 1)? == name.as_bytes() {
            return object.get(value..next);
        }
        at = next + 1;
    }
    None
}

fn value_end(json: &[u8], at: usize) -> Option<usize> {
    match json.get(at)? {
        b'"' => string_end(json, at),
        b'{' | b'[' => nested_end(json, at),
        _ => {
            let rest = &json[at..];
            let length =
                rest.iter().position(|byte| matches!(byte, b',' | b'}' | b']')).unwrap_or(rest.len());
            Some(at + length)
        }
    }
}

fn nested_end(json: &[u8], mut at: usize) -> Option<usize> {
    let mut depth = 0_usize;
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

/// The end of the string that begins here.
pub(super) fn string_end(json: &[u8], at: usize) -> Option<usize> {
    if json.get(at) != Some(&b'"') {
        return None;
    }
    let mut end = at + 1;
    loop {
        match json.get(end)? {
            b'\\' => end += 2,
            b'"' => return Some(end + 1),
            _ => end += 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_on_the_path_is_stepped_over() {
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
}
