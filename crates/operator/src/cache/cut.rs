//! Cuts fields out of an object's JSON by its brackets, without making a tree of it.

use crate::cache::Transform;
use std::{collections::BTreeMap, ops::Range};

/// The form in which a cache keeps its objects.
#[derive(Clone, Debug)]
pub(crate) struct Shape {
    pub(crate) api_version: String,
    pub(crate) kind: String,
    /// Nothing but `metadata` is kept.
    pub(crate) metadata_only: bool,
    pub(crate) dropped: DroppedFields,
    /// Applied after the fields are dropped.
    pub(crate) transforms: Vec<Transform>,
}

/// The fields to leave out: a tree of names, whose leaves are dropped.
#[derive(Clone, Debug, Default)]
pub(crate) struct DroppedFields(BTreeMap<String, DroppedFields>);

/// The text is no JSON object, or one without metadata.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not the JSON of an object")]
pub(crate) struct NotAnObject;

impl DroppedFields {
    pub(crate) fn new(paths: impl IntoIterator<Item = impl IntoIterator<Item = String>>) -> DroppedFields {
        let mut dropped = DroppedFields::default();
        for path in paths {
            path.into_iter().fold(&mut dropped, |dropped, name| dropped.0.entry(name).or_default());
        }
        dropped
    }

    fn at(&self, name: &str) -> Option<&DroppedFields> {
        self.0.get(name)
    }

    fn is_leaf(&self) -> bool {
        self.0.is_empty()
    }
}

/// Writes `json` into `out` in the given shape, and returns the range of its metadata in `out`.
/// apiVersion and kind come from the shape, because the items of a list do not carry theirs.
pub(crate) fn cut(json: &str, shape: &Shape, out: &mut String) -> Result<Range<usize>, NotAnObject> {
    out.clear();
    out.push_str("{\"apiVersion\":\"");
    out.push_str(&shape.api_version);
    out.push_str("\",\"kind\":\"");
    out.push_str(&shape.kind);
    out.push('"');
    let mut metadata = None;
    let mut scan = Scan::new(json);
    scan.members(|scan, name| {
        let dropped = shape.dropped.at(name);
        let is_metadata = name == "metadata";
        let is_dropped = matches!(name, "apiVersion" | "kind")
            || (shape.metadata_only && !is_metadata)
            || dropped.is_some_and(DroppedFields::is_leaf);
        if is_dropped {
            return scan.value().map(drop);
        }
        out.push_str(",\"");
        out.push_str(name);
        out.push_str("\":");
        let start = out.len();
        copy(scan, dropped, out)?;
        if is_metadata {
            metadata = Some(start..out.len());
        }
        Ok(())
    })?;
    out.push('}');
    metadata.ok_or(NotAnObject)
}

fn copy(scan: &mut Scan<'_>, dropped: Option<&DroppedFields>, out: &mut String) -> Result<(), NotAnObject> {
    match (dropped, scan.peek()) {
        (Some(dropped), Some(b'{')) => copy_object(scan, dropped, out),
        (Some(dropped), Some(b'[')) => {
            out.push('[');
            let mut separator = "";
            scan.elements(|scan| {
                out.push_str(separator);
                separator = ",";
                copy(scan, Some(dropped), out)
            })?;
            out.push(']');
            Ok(())
        }
        _ => {
            out.push_str(scan.value()?);
            Ok(())
        }
    }
}

fn copy_object(scan: &mut Scan<'_>, dropped: &DroppedFields, out: &mut String) -> Result<(), NotAnObject> {
    out.push('{');
    let mut separator = "";
    scan.members(|scan, name| {
        let below = dropped.at(name);
        if below.is_some_and(DroppedFields::is_leaf) {
            return scan.value().map(drop);
        }
        out.push_str(separator);
        separator = ",";
        out.push('"');
        out.push_str(name);
        out.push_str("\":");
        copy(scan, below, out)
    })?;
    out.push('}');
    Ok(())
}

/// Walks over JSON token by token. Strings keep their escapes.
struct Scan<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Scan<'a> {
    fn new(text: &'a str) -> Scan<'a> {
        Scan { text, at: 0 }
    }

    fn peek(&mut self) -> Option<u8> {
        let rest = &self.text.as_bytes()[self.at..];
        self.at += rest.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
        self.text.as_bytes().get(self.at).copied()
    }

    fn take(&mut self, expected: u8) -> bool {
        let is_there = self.peek() == Some(expected);
        self.at += usize::from(is_there);
        is_there
    }

    fn members(
        &mut self,
        mut each: impl FnMut(&mut Scan<'a>, &'a str) -> Result<(), NotAnObject>,
    ) -> Result<(), NotAnObject> {
        if !self.take(b'{') {
            return Err(NotAnObject);
        }
        if self.take(b'}') {
            return Ok(());
        }
        loop {
            self.peek();
            let quoted = self.string()?;
            if !self.take(b':') {
                return Err(NotAnObject);
            }
            each(self, &quoted[1..quoted.len() - 1])?;
            if self.take(b'}') {
                return Ok(());
            }
            if !self.take(b',') {
                return Err(NotAnObject);
            }
        }
    }

    fn elements(
        &mut self,
        mut each: impl FnMut(&mut Scan<'a>) -> Result<(), NotAnObject>,
    ) -> Result<(), NotAnObject> {
        if !self.take(b'[') {
            return Err(NotAnObject);
        }
        if self.take(b']') {
            return Ok(());
        }
        loop {
            each(self)?;
            if self.take(b']') {
                return Ok(());
            }
            if !self.take(b',') {
                return Err(NotAnObject);
            }
        }
    }

    /// The text of the next value.
    fn value(&mut self) -> Result<&'a str, NotAnObject> {
        match self.peek() {
            Some(b'"') => self.string(),
            Some(b'{' | b'[') => self.bracketed(),
            Some(_) => {
                let start = self.at;
                let rest = &self.text.as_bytes()[start..];
                let ends = |byte: &u8| matches!(byte, b',' | b'}' | b']') || byte.is_ascii_whitespace();
                self.at += rest.iter().position(ends).unwrap_or(rest.len());
                if self.at == start { Err(NotAnObject) } else { Ok(&self.text[start..self.at]) }
            }
            None => Err(NotAnObject),
        }
    }

    fn bracketed(&mut self) -> Result<&'a str, NotAnObject> {
        let (start, bytes) = (self.at, self.text.as_bytes());
        let mut depth = 0_usize;
        loop {
            match bytes.get(self.at).ok_or(NotAnObject)? {
                b'"' => {
                    self.string()?;
                    continue;
                }
                b'{' | b'[' => depth += 1,
                b'}' | b']' => depth -= 1,
                _ => {}
            }
            self.at += 1;
            if depth == 0 {
                return Ok(&self.text[start..self.at]);
            }
        }
    }

    /// With its quotes.
    fn string(&mut self) -> Result<&'a str, NotAnObject> {
        let (start, bytes) = (self.at, self.text.as_bytes());
        if bytes.get(start) != Some(&b'"') {
            return Err(NotAnObject);
        }
        let mut at = start + 1;
        loop {
            at += memchr::memchr2(b'"', b'\\', bytes.get(at..).ok_or(NotAnObject)?).ok_or(NotAnObject)?;
            if bytes[at] == b'"' {
                self.at = at + 1;
                return Ok(&self.text[start..self.at]);
            }
            at += 2;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(dropped: &[&[&str]], metadata_only: bool, json: &str, expected: Result<&str, NotAnObject>) {
        let paths = dropped.iter().map(|path| path.iter().map(|&name| name.to_owned()));
        let shape = Shape {
            api_version: "v1".to_owned(),
            kind: "Thing".to_owned(),
            metadata_only,
            dropped: DroppedFields::new(paths),
            transforms: Vec::new(),
        };
        let mut out = String::from("what was here before");
        let cut = cut(json, &shape, &mut out).map(|metadata| {
            let metadata: serde_json::Value = serde_json::from_str(&out[metadata]).unwrap();
            assert!(metadata.is_object());
            serde_json::from_str::<serde_json::Value>(&out).unwrap();
            out.strip_prefix(r#"{"apiVersion":"v1","kind":"Thing""#).unwrap()
        });
        assert_eq!(cut, expected, "{json}");
    }

    const MANAGED: &[&str] = &["metadata", "managedFields"];

    #[test]
    fn dropped_fields_go_and_the_rest_stays() {
        for (dropped, json, expected) in [
            (&[][..], r#"{"metadata":{"name":"a"}}"#, r#","metadata":{"name":"a"}}"#),
            (&[], r#"{"kind":"X","metadata":{},"apiVersion":"y"}"#, r#","metadata":{}}"#),
            (
                &[MANAGED],
                r#"{"metadata":{"managedFields":[{"f:a":{"]":"}\""}}],"name":"a"},"spec":{"a":[1,{"b":"\\"}]}}"#,
                r#","metadata":{"name":"a"},"spec":{"a":[1,{"b":"\\"}]}}"#,
            ),
            (&[MANAGED], r#"{"metadata":{"name":"a","managedFields":[]}}"#, r#","metadata":{"name":"a"}}"#),
            (
                &[MANAGED, &["data"]],
                " { \"metadata\" : { \"name\" : \"a\" } , \"data\" : { } } ",
                r#","metadata":{"name":"a"}}"#,
            ),
            (
                &[&["spec", "list", "big"]],
                r#"{"metadata":{},"spec":{"list":[{"big":1,"x":2},{"y":3},4]}}"#,
                r#","metadata":{},"spec":{"list":[{"x":2},{"y":3},4]}}"#,
            ),
            (
                &[&["spec", "a"]],
                r#"{"metadata":{},"spec":null,"n":-1.5e3}"#,
                r#","metadata":{},"spec":null,"n":-1.5e3}"#,
            ),
        ] {
            check(dropped, false, json, Ok(expected));
        }
        let full = r#"{"spec":{},"metadata":{"name":"a"},"status":{}}"#;
        check(&[], true, full, Ok(r#","metadata":{"name":"a"}}"#));
    }

    #[test]
    fn json_that_is_no_object_is_refused() {
        for json in
            ["", "[]", "1", "{", r#"{"spec":{}}"#, r#"{"metadata":"#, r#"{"metadata":{}"#, r#"{"metadata":{"#]
        {
            check(&[MANAGED], false, json, Err(NotAnObject));
        }
    }
}
