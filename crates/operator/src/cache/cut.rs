//! Cuts fields out of an object's JSON by its brackets, without making a tree of it.

use std::collections::BTreeMap;

/// How the objects of one cache are kept.
#[derive(Clone, Debug)]
pub(crate) struct Shape {
    pub(crate) api_version: String,
    pub(crate) kind: String,
    /// Nothing but `metadata` is kept.
    pub(crate) metadata_only: bool,
    pub(crate) cuts: Cuts,
}

/// Which fields go: a tree of names, where a name without further names is cut.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cuts(BTreeMap<String, Cuts>);

/// Where in the kept JSON the metadata stands.
pub(crate) type Range = std::ops::Range<usize>;

/// The text is no JSON object, or one without metadata.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not the JSON of an object")]
pub(crate) struct NoObject;

impl Cuts {
    pub(crate) fn new(paths: impl IntoIterator<Item = impl IntoIterator<Item = String>>) -> Cuts {
        let mut cuts = Cuts::default();
        for path in paths {
            path.into_iter().fold(&mut cuts, |cuts, name| cuts.0.entry(name).or_default());
        }
        cuts
    }

    fn at(&self, name: &str) -> Option<&Cuts> {
        self.0.get(name)
    }

    fn ends_here(&self) -> bool {
        self.0.is_empty()
    }
}

/// Writes `json` into `out` as `shape` wants it, and answers where its metadata stands there.
/// The type is written by the shape, because the items of a list do not carry theirs.
pub(crate) fn cut(json: &str, shape: &Shape, out: &mut String) -> Result<Range, NoObject> {
    out.clear();
    out.push_str("{\"apiVersion\":\"");
    out.push_str(&shape.api_version);
    out.push_str("\",\"kind\":\"");
    out.push_str(&shape.kind);
    out.push('"');
    let mut metadata = None;
    let mut scan = Scan::new(json);
    scan.members(|scan, name| {
        let cuts = shape.cuts.at(name);
        let is_metadata = name == "metadata";
        let goes = matches!(name, "apiVersion" | "kind")
            || (shape.metadata_only && !is_metadata)
            || cuts.is_some_and(Cuts::ends_here);
        if goes {
            return scan.value().map(drop);
        }
        out.push_str(",\"");
        out.push_str(name);
        out.push_str("\":");
        let start = out.len();
        copy(scan, cuts, out)?;
        if is_metadata {
            metadata = Some(start..out.len());
        }
        Ok(())
    })?;
    out.push('}');
    metadata.ok_or(NoObject)
}

fn copy(scan: &mut Scan<'_>, cuts: Option<&Cuts>, out: &mut String) -> Result<(), NoObject> {
    match (cuts, scan.peek()) {
        (Some(cuts), Some(b'{')) => copy_object(scan, cuts, out),
        (Some(cuts), Some(b'[')) => {
            out.push('[');
            let mut separator = "";
            scan.elements(|scan| {
                out.push_str(separator);
                separator = ",";
                copy(scan, Some(cuts), out)
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

fn copy_object(scan: &mut Scan<'_>, cuts: &Cuts, out: &mut String) -> Result<(), NoObject> {
    out.push('{');
    let mut separator = "";
    scan.members(|scan, name| {
        let below = cuts.at(name);
        if below.is_some_and(Cuts::ends_here) {
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

/// Walks over JSON token by token. Names and texts stay as they are written, escapes and all.
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
        mut each: impl FnMut(&mut Scan<'a>, &'a str) -> Result<(), NoObject>,
    ) -> Result<(), NoObject> {
        if !self.take(b'{') {
            return Err(NoObject);
        }
        if self.take(b'}') {
            return Ok(());
        }
        loop {
            self.peek();
            let quoted = self.string()?;
            if !self.take(b':') {
                return Err(NoObject);
            }
            each(self, &quoted[1..quoted.len() - 1])?;
            if self.take(b'}') {
                return Ok(());
            }
            if !self.take(b',') {
                return Err(NoObject);
            }
        }
    }

    fn elements(
        &mut self,
        mut each: impl FnMut(&mut Scan<'a>) -> Result<(), NoObject>,
    ) -> Result<(), NoObject> {
        if !self.take(b'[') {
            return Err(NoObject);
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
                return Err(NoObject);
            }
        }
    }

    /// The whole of the next value.
    fn value(&mut self) -> Result<&'a str, NoObject> {
        match self.peek() {
            Some(b'"') => self.string(),
            Some(b'{' | b'[') => self.bracketed(),
            Some(_) => {
                let start = self.at;
                let rest = &self.text.as_bytes()[start..];
                let ends = |byte: &u8| matches!(byte, b',' | b'}' | b']') || byte.is_ascii_whitespace();
                self.at += rest.iter().position(ends).unwrap_or(rest.len());
                if self.at == start { Err(NoObject) } else { Ok(&self.text[start..self.at]) }
            }
            None => Err(NoObject),
        }
    }

    fn bracketed(&mut self) -> Result<&'a str, NoObject> {
        let (start, bytes) = (self.at, self.text.as_bytes());
        let mut depth = 0_usize;
        loop {
            match bytes.get(self.at).ok_or(NoObject)? {
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
    fn string(&mut self) -> Result<&'a str, NoObject> {
        let (start, bytes) = (self.at, self.text.as_bytes());
        if bytes.get(start) != Some(&b'"') {
            return Err(NoObject);
        }
        let mut at = start + 1;
        loop {
            at += memchr::memchr2(b'"', b'\\', bytes.get(at..).ok_or(NoObject)?).ok_or(NoObject)?;
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

    fn check(cuts: &[&[&str]], metadata_only: bool, json: &str, expected: Result<&str, NoObject>) {
        let paths = cuts.iter().map(|path| path.iter().map(|&name| name.to_owned()));
        let shape = Shape {
            api_version: "v1".to_owned(),
            kind: "Thing".to_owned(),
            metadata_only,
            cuts: Cuts::new(paths),
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
    fn fields_go_and_the_rest_stays_as_it_was() {
        for (cuts, json, expected) in [
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
            check(cuts, false, json, Ok(expected));
        }
        let full = r#"{"spec":{},"metadata":{"name":"a"},"status":{}}"#;
        check(&[], true, full, Ok(r#","metadata":{"name":"a"}}"#));
    }

    #[test]
    fn what_is_no_object_is_refused() {
        for json in
            ["", "[]", "1", "{", r#"{"spec":{}}"#, r#"{"metadata":"#, r#"{"metadata":{}"#, r#"{"metadata":{"#]
        {
            check(&[MANAGED], false, json, Err(NoObject));
        }
    }
}
