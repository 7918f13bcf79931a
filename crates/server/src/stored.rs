//! An object at rest: its JSON as it was encoded once, without its resourceVersion.
//!
//! The store's revision is the resourceVersion, and it is known only after the bytes are written. So
//! the bytes leave its place empty, and whoever hands them out puts it there: two slices of the same
//! bytes with a few digits between, nothing parsed or copied. The place is easy to find, because the
//! encoder writes kind, apiVersion and metadata first, and in metadata the names and the uid.

use bytes::Bytes;
use serde_json::Value;
use store::Revision;

#[derive(Clone, Debug)]
pub(crate) struct Stored {
    pub(crate) json: Bytes,
    pub(crate) revision: Revision,
}

/// Members of metadata that are written before the resourceVersion.
const BEFORE: [&str; 5] = ["name", "generateName", "namespace", "selfLink", "uid"];

impl Stored {
    pub(crate) fn new(json: Bytes, revision: Revision) -> Stored {
        Stored { json, revision }
    }

    /// The object as it goes out, in up to three pieces.
    pub(crate) fn pieces(&self) -> [Bytes; 3] {
        if self.revision == Revision(0) {
            // A dry run: it never got one.
            return [self.json.clone(), Bytes::new(), Bytes::new()];
        }
        let at = place(&self.json);
        let text = format!("\"resourceVersion\":\"{}\"", self.revision);
        let before = self.json.slice(..at);
        let needs_comma_before = !before.ends_with(b"{");
        let needs_comma_after = self.json.get(at) == Some(&b'"');
        let text = match (needs_comma_before, needs_comma_after) {
            (false, true) => format!("{text},"),
            (true, _) => format!(",{text}"),
            (false, false) => text,
        };
        [before, Bytes::from(text), self.json.slice(at..)]
    }

    /// The object, parsed.
    pub(crate) fn value(&self) -> Value {
        let mut value = serde_json::from_slice(&self.json).unwrap_or_default();
        if self.revision != Revision(0) {
            api::object::set_resource_version(&mut value, &self.revision.to_string());
        }
        value
    }

    /// Where the member `metadata` begins: what comes before it says the kind.
    pub(crate) fn metadata_member(&self) -> Option<usize> {
        metadata_start(&self.json).map(|start| start - "\"metadata\":".len())
    }

    /// The metadata alone, parsed: enough for label selectors.
    pub(crate) fn metadata(&self) -> Value {
        let Some(start) = metadata_start(&self.json) else { return Value::Null };
        let mut reader = serde_json::Deserializer::from_slice(&self.json[start..]).into_iter::<Value>();
        reader.next().and_then(Result::ok).unwrap_or_default()
    }
}

/// What is kept of an object: everything but its resourceVersion.
pub(crate) fn at_rest(types: &schema::types::Types, of: schema::types::TypeId, object: &Value) -> Bytes {
    let mut object = object.clone();
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("resourceVersion");
    }
    schema::encode::encode(types, of, &object).into()
}

/// Where in the bytes the resourceVersion belongs.
fn place(json: &[u8]) -> usize {
    let Some(mut at) = metadata_start(json) else { return json.len() };
    at += 1;
    // Behind each member that comes before it, and before its comma.
    loop {
        let start = if json.get(at) == Some(&b',') { at + 1 } else { at };
        let Some((name, value_start)) = member(json, start) else { return at };
        if !BEFORE.contains(&name) {
            return at;
        }
        let Some(end) = string_end(json, value_start) else { return at };
        at = end;
    }
}

/// Where the object `metadata` begins.
fn metadata_start(json: &[u8]) -> Option<usize> {
    let mut at = 1;
    loop {
        if json.get(at) == Some(&b',') {
            at += 1;
        }
        let (name, value_start) = member(json, at)?;
        if name == "metadata" {
            return Some(value_start);
        }
        at = string_end(json, value_start)?;
    }
}

/// The name of the member that begins here, and where its value does.
fn member(json: &[u8], at: usize) -> Option<(&str, usize)> {
    let end = string_end(json, at)?;
    let name = str::from_utf8(json.get(at + 1..end - 1)?).ok()?;
    (json.get(end) == Some(&b':')).then_some((name, end + 1))
}

/// The end of the string that begins here.
fn string_end(json: &[u8], at: usize) -> Option<usize> {
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
    fn the_resource_version_goes_where_the_encoder_would_have_put_it() {
        for (json, expected) in [
            (
                r#"{"kind":"A","apiVersion":"v1","metadata":{"name":"a\"b","uid":"u","labels":{}},"x":1}"#,
                r#"{"kind":"A","apiVersion":"v1","metadata":{"name":"a\"b","uid":"u","resourceVersion":"7","labels":{}},"x":1}"#,
            ),
            (r#"{"metadata":{"name":"a"}}"#, r#"{"metadata":{"name":"a","resourceVersion":"7"}}"#),
            (r#"{"metadata":{}}"#, r#"{"metadata":{"resourceVersion":"7"}}"#),
            (
                r#"{"metadata":{"creationTimestamp":null}}"#,
                r#"{"metadata":{"resourceVersion":"7","creationTimestamp":null}}"#,
            ),
        ] {
            let stored = Stored::new(Bytes::from(json), Revision(7));
            let out = stored.pieces().concat();
            assert_eq!(str::from_utf8(&out).unwrap(), expected);
            assert_eq!(serde_json::from_slice::<Value>(&out).unwrap(), stored.value());
        }
    }
}
