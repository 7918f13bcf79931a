//! A stored object: its JSON as encoded once, without its resourceVersion.
//!
//! The store's revision is the resourceVersion, and it is known only after the bytes are written. So the
//! bytes lack it, and it is inserted when they are sent: two slices of the same bytes with a few digits
//! between, nothing parsed or copied. The place is easy to find, because the encoder writes kind,
//! apiVersion and metadata first, and in metadata the names and the UID.

use crate::{
    refusal::Refusal,
    served::{Kind, Served, StoredAs},
};
use bytes::{BufMut, Bytes, BytesMut};
use schema::scan::{self, string_end};
use serde_json::Value;
use std::{borrow::Cow, collections::BTreeMap, sync::OnceLock};
use store::Revision;

#[derive(Clone, Debug)]
pub(crate) struct Stored {
    pub(crate) json: Bytes,
    pub(crate) revision: Revision,
}

/// Members of metadata that come before the resourceVersion.
const BEFORE: [&[u8]; 5] = [b"name", b"generateName", b"namespace", b"selfLink", b"uid"];

/// Digits of the largest u64.
const MAX_DIGITS: usize = 20;

impl Stored {
    pub(crate) fn new(json: Bytes, revision: Revision) -> Stored {
        Stored { json, revision }
    }

    /// Writes the object with its resourceVersion, from the byte `start` on.
    pub(crate) fn write(&self, start: usize, out: &mut BytesMut) {
        let place = self.version_place();
        self.write_version(start, place, out);
        out.put_slice(&self.json[place..]);
    }

    /// The offset of the resourceVersion; the end where there is no metadata.
    pub(crate) fn version_place(&self) -> usize {
        place(&self.json).unwrap_or_else(|| {
            // Only objects with metadata are stored: never guess where it would go.
            tracing::error!("stored object has no metadata: sent without resourceVersion");
            self.json.len()
        })
    }

    /// Writes the object from `start` up to `place`, and the resourceVersion there.
    pub(crate) fn write_version(&self, start: usize, place: usize, out: &mut BytesMut) {
        let (before, after) = self.json.split_at(place);
        out.put_slice(before.get(start..).unwrap_or_default());
        if !self.has_version(place) {
            return;
        }
        let is_first = before.ends_with(b"{");
        out.put_slice(if is_first { b"\"resourceVersion\":\"" } else { b",\"resourceVersion\":\"" });
        put_number(self.revision.0, out);
        out.put_slice(if is_first && after.starts_with(b"\"") { b"\"," } else { b"\"" });
    }

    /// Whether it is sent with a resourceVersion. The result of a dry run is not.
    fn has_version(&self, place: usize) -> bool {
        self.revision != Revision(0) && place < self.json.len()
    }

    /// The number of bytes that [`Stored::write`] writes.
    pub(crate) fn written_len(&self, start: usize, place: usize) -> usize {
        let (before, after) = self.json.split_at(place);
        let kept = before.len().saturating_sub(start) + after.len();
        if !self.has_version(place) {
            return kept;
        }
        let digits = self.revision.0.checked_ilog10().unwrap_or(0) as usize + 1;
        let comma = !before.ends_with(b"{") || after.starts_with(b"\"");
        kept + "\"resourceVersion\":\"\"".len() + digits + usize::from(comma)
    }

    /// The parsed object. Undecodable bytes are an error, never an empty object: checks of an empty object
    /// would pass.
    pub(crate) fn value(&self) -> Result<Value, Refusal> {
        let mut value: Value = serde_json::from_slice(&self.json).map_err(|error| self.unreadable(&error))?;
        if self.revision != Revision(0) {
            api::object::set_resource_version(&mut value, &self.revision.to_string());
        }
        Ok(value)
    }

    /// The object with its metadata and one member, for admission configurations that must stay in force
    /// even if another member is undecodable. `None` where that member is undecodable, too.
    pub(crate) fn value_or_member(&self, member: &str) -> Option<Value> {
        if !self.json.starts_with(b"{") {
            return None;
        }
        if let Ok(value) = self.value() {
            let is_known = matches!(value[member], Value::Null | Value::Array(_) | Value::Object(_));
            return is_known.then_some(value);
        }
        let content: Value = serde_json::from_slice(scan::find(&self.json, &[member])?).ok()?;
        let generation = scan::find(&self.json, &["metadata", "generation"]).unwrap_or(b"0");
        let generation: i64 = serde_json::from_slice(generation).ok()?;
        let (name, uid) = (self.text_at(&["metadata", "name"]), self.text_at(&["metadata", "uid"]));
        let metadata = serde_json::json!({"name": name, "uid": uid, "generation": generation});
        Some(serde_json::json!({"metadata": metadata, member: content}))
    }

    /// Logs that the stored bytes are damaged, and returns an error for the client.
    fn unreadable(&self, error: &serde_json::Error) -> Refusal {
        let [kind, namespace, name] =
            [&["kind"][..], &["metadata", "namespace"], &["metadata", "name"]].map(|path| self.text_at(path));
        tracing::error!(%kind, %namespace, %name, revision = self.revision.0, %error, "cannot decode stored object");
        Refusal::internal_error(format!(
            "unable to decode the stored object {kind} \"{namespace}/{name}\": {error}"
        ))
    }

    /// The offset of `metadata`; kind and apiVersion come before it.
    pub(crate) fn metadata_member(&self) -> Option<usize> {
        metadata_start(&self.json).map(|start| start - "\"metadata\":".len())
    }

    /// Its labels, with nothing else parsed.
    pub(crate) fn labels(&self) -> Result<BTreeMap<String, String>, Refusal> {
        match scan::find(&self.json, &["metadata", "labels"]) {
            Some(raw) => serde_json::from_slice(raw).map_err(|error| self.unreadable(&error)),
            None => Ok(BTreeMap::new()),
        }
    }

    /// Whether it has a deletionTimestamp.
    pub(crate) fn is_deleting(&self) -> bool {
        !self.text_at(&["metadata", "deletionTimestamp"]).is_empty()
    }

    /// The text at a path, with nothing else parsed; empty where there is none.
    pub(crate) fn text_at(&self, path: &[&str]) -> Cow<'_, str> {
        scan::text(&self.json, path)
    }
}

/// The parts of an object that selectors read.
pub(crate) trait Selectable {
    fn labels(&self) -> Result<Cow<'_, BTreeMap<String, String>>, Refusal>;
    fn text_at(&self, path: &[&str]) -> Cow<'_, str>;
    fn value(&self) -> Result<Cow<'_, Value>, Refusal>;
}

impl Selectable for Stored {
    fn labels(&self) -> Result<Cow<'_, BTreeMap<String, String>>, Refusal> {
        self.labels().map(Cow::Owned)
    }

    fn text_at(&self, path: &[&str]) -> Cow<'_, str> {
        self.text_at(path)
    }

    fn value(&self) -> Result<Cow<'_, Value>, Refusal> {
        self.value().map(Cow::Owned)
    }
}

/// A stored object that many watchers read: each part is parsed once.
#[derive(Debug)]
pub(crate) struct Parsed {
    pub(crate) stored: Stored,
    labels: OnceLock<BTreeMap<String, String>>,
    value: OnceLock<Value>,
}

impl Parsed {
    pub(crate) fn new(stored: Stored) -> Parsed {
        Parsed { stored, labels: OnceLock::new(), value: OnceLock::new() }
    }
}

impl Selectable for Parsed {
    fn labels(&self) -> Result<Cow<'_, BTreeMap<String, String>>, Refusal> {
        kept(&self.labels, || self.stored.labels())
    }

    fn text_at(&self, path: &[&str]) -> Cow<'_, str> {
        self.stored.text_at(path)
    }

    fn value(&self) -> Result<Cow<'_, Value>, Refusal> {
        kept(&self.value, || self.stored.value())
    }
}

/// The cell's value, parsed at first use.
fn kept<T: Clone>(
    cell: &OnceLock<T>,
    parse: impl FnOnce() -> Result<T, Refusal>,
) -> Result<Cow<'_, T>, Refusal> {
    if let Some(known) = cell.get() {
        return Ok(Cow::Borrowed(known));
    }
    let parsed = parse()?;
    Ok(Cow::Borrowed(cell.get_or_init(|| parsed)))
}

/// Kubernetes: all other built-in kinds are stored as protobuf, which has no empty lists.
const KEPT_AS_JSON: [&str; 2] = ["apiextensions.k8s.io", "apiregistration.k8s.io"];

/// Whether Kubernetes stores the object as protobuf.
fn is_kept_as_protobuf(served: &Served) -> bool {
    matches!(served.kind, Kind::BuiltIn { .. })
        && served.stored.as_ref().is_some_and(|stored| !KEPT_AS_JSON.contains(&&*stored.group))
}

/// Encodes an object for the store, without its resourceVersion. Removes fields that are not stored from
/// `object`.
pub(crate) fn at_rest(served: &Served, object: &mut Value) -> Bytes {
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("resourceVersion");
    }
    if let (Kind::BuiltIn { types, of }, Some(StoredAs { of: stored, .. })) = (&served.kind, &served.stored)
        && is_kept_as_protobuf(served)
    {
        schema::proto::forget_empty(types, stored.unwrap_or(*of), object);
    }
    let json = match (&served.kind, &served.stored) {
        (Kind::BuiltIn { types, .. }, Some(StoredAs { of: Some(of), .. })) => {
            schema::encode::encode(types, *of, object)
        }
        _ => served.encode(object),
    };
    // Kept for long: a copy has no spare capacity.
    Bytes::copy_from_slice(&json)
}

/// Whether two states of an object have the same stored bytes: empty lists and maps are not stored.
pub(crate) fn is_kept_alike(served: &Served, draft: &Value, current: &Value) -> bool {
    let Kind::BuiltIn { types, of } = &served.kind else { return false };
    if !is_kept_as_protobuf(served) || !differ_only_in_empty_values(draft, current) {
        return false;
    }
    let mut kept = draft.clone();
    schema::proto::forget_empty(types, *of, &mut kept);
    served.normalize(&mut kept);
    kept == *current
}

/// A cheap first check: whether two values are equal except for empty lists and maps.
fn differ_only_in_empty_values(one: &Value, other: &Value) -> bool {
    let is_empty = |value: &Value| match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    };
    match (one, other) {
        (Value::Array(one), Value::Array(other)) if one.len() == other.len() => {
            one.iter().zip(other).all(|(one, other)| differ_only_in_empty_values(one, other))
        }
        (Value::Object(one), Value::Object(other)) if one.len() == other.len() => one
            .iter()
            .zip(other)
            .all(|(one, other)| one.0 == other.0 && differ_only_in_empty_values(one.1, other.1)),
        _ => one == other || (is_empty(one) && is_empty(other)),
    }
}

/// Writes a number without `fmt`, which costs more than the rest of a response.
fn put_number(mut number: u64, out: &mut BytesMut) {
    let (mut digits, mut at) = ([0; MAX_DIGITS], MAX_DIGITS);
    loop {
        at -= 1;
        digits[at] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    out.put_slice(&digits[at..]);
}

/// The offset of the resourceVersion; `None` where there is no metadata.
fn place(json: &[u8]) -> Option<usize> {
    let mut at = metadata_start(json)? + 1;
    // After each member that comes before it, and before its comma.
    loop {
        let start = if json.get(at) == Some(&b',') { at + 1 } else { at };
        let Some((name, value_start)) = member(json, start) else { return Some(at) };
        if !BEFORE.contains(&name) {
            return Some(at);
        }
        let Some(end) = string_end(json, value_start) else { return Some(at) };
        at = end;
    }
}

/// The offset of the object `metadata`. Members of a custom resource may come before it, of any type.
fn metadata_start(json: &[u8]) -> Option<usize> {
    scan::start(json, 0, &["metadata"]).filter(|start| json.get(*start) == Some(&b'{'))
}

/// The name of the member that begins here, and the offset of its value.
fn member(json: &[u8], at: usize) -> Option<(&[u8], usize)> {
    let end = string_end(json, at)?;
    let name = json.get(at + 1..end - 1)?;
    (json.get(end) == Some(&b':')).then_some((name, end + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn undecodable_bytes_are_an_error_not_an_empty_object() {
        let deep = format!(
            r#"{{"kind":"A","metadata":{{"name":"n","labels":{{"a":1}}}},"x":{}{}}}"#,
            "[".repeat(200),
            "]".repeat(200)
        );
        let stored = Stored::new(deep.into(), Revision(7));
        let status = stored.value().unwrap_err().into_status();
        assert_eq!(status.code, 500);
        assert!(
            status.message.contains(r#"unable to decode the stored object A "/n""#),
            "{}",
            status.message
        );
        assert_eq!(stored.labels().unwrap_err().into_status().code, 500);
    }

    #[test]
    fn the_resource_version_is_inserted_where_the_encoder_would_write_it() {
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
            (
                r#"{"a":{"metadata":{"b":1}},"apiVersion":"v1","data":[{}],"kind":"A","metadata":{"name":"a"}}"#,
                r#"{"a":{"metadata":{"b":1}},"apiVersion":"v1","data":[{}],"kind":"A","metadata":{"name":"a","resourceVersion":"7"}}"#,
            ),
            (r#"{"a":7,"b":null,"metadata":{}}"#, r#"{"a":7,"b":null,"metadata":{"resourceVersion":"7"}}"#),
        ] {
            let stored = Stored::new(Bytes::from(json), Revision(7));
            let mut out = BytesMut::new();
            stored.write(0, &mut out);
            assert_eq!(str::from_utf8(&out).unwrap(), expected);
            assert_eq!(stored.written_len(0, stored.version_place()), expected.len());
            assert_eq!(serde_json::from_slice::<Value>(&out).unwrap(), stored.value().unwrap());
        }
    }

    #[test]
    fn values_without_metadata_are_written_unchanged() {
        for json in [r#"{"a":1}"#, r#"{"metadata":null}"#, r#"{"metadata":"x"}"#, "{}", ""] {
            let mut out = BytesMut::new();
            Stored::new(Bytes::from(json), Revision(7)).write(0, &mut out);
            assert_eq!(str::from_utf8(&out).unwrap(), json);
        }
    }
}
