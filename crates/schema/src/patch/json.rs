//! JSON patches (RFC 6902), as lenient as kube-apiserver.
//!
//! `replace` of a missing member adds it; a missing `value`, and a missing member in `test` and `copy`, is
//! null; negative indexes count from the end.

use serde_json::Value;

use super::{PatchError, is_too_deep};
use crate::depth::{MAX_DEPTH, depth};

mod pointer;

/// Kubernetes: the most operations in a patch.
pub const MAX_OPERATIONS: usize = 10_000;

/// Kubernetes: the most bytes that the `copy` operations of one patch may add.
pub const MAX_COPIED_BYTES: usize = 3 * 1024 * 1024;

/// How often one patch may measure the depth of a value that it moves, see [`Nesting`]: enough for any patch
/// written by hand, and only a few passes over the largest object.
const MAX_MEASUREMENTS: usize = 64;

/// A list of operations. Each may still fail when it is carried out.
#[derive(Clone, Debug)]
pub struct JsonPatch {
    operations: Vec<PatchOperation>,
}

#[derive(Clone, Debug)]
struct PatchOperation {
    kind: String,
    path: PathText,
    from: PathText,
    value: Value,
}

/// The text of a `path` or `from`, or why there is none.
#[derive(Clone, Debug)]
enum PathText {
    At(String),
    Missing,
    NoText(&'static str),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    /// Field validation is `Warn` or `Strict`: members of operations must have the right type.
    Checked,
    /// Field validation is `Ignore`, or the patch comes from a webhook.
    Lenient,
}

impl JsonPatch {
    pub fn decode(patch: &Value, reading: Reading) -> Result<JsonPatch, PatchError> {
        if is_too_deep(patch) {
            return Err(PatchError::too_deep());
        }
        if reading == Reading::Checked {
            check(patch)
                .map_err(|problem| PatchError::Malformed(format!("error decoding patch: {problem}")))?;
        }
        let operations = match patch {
            Value::Array(operations) => operations.as_slice(),
            Value::Null => &[],
            other => return Err(PatchError::Malformed(mistyped(other, "jsonpatch.Patch"))),
        };
        let operations: Vec<_> = operations.iter().map(PatchOperation::decode).collect::<Result<_, _>>()?;
        match operations.len() {
            0..=MAX_OPERATIONS => Ok(JsonPatch { operations }),
            got => Err(PatchError::TooManyOperations { limit: MAX_OPERATIONS, got }),
        }
    }

    /// Unknown members of operations, as strict field validation reports them.
    #[must_use]
    pub fn unknown_members(patch: &Value) -> Vec<String> {
        const KNOWN: [&str; 4] = ["op", "path", "from", "value"];
        let operations = patch.as_array().map(Vec::as_slice).unwrap_or_default();
        let members =
            operations.iter().enumerate().filter_map(|(at, operation)| Some((at, operation.as_object()?)));
        let members = members.flat_map(|(at, members)| members.keys().map(move |name| (at, name)));
        let unknown = members.filter(|(_, name)| !KNOWN.contains(&name.as_str()));
        unknown
            .map(|(at, name)| {
                format!("json patch unknown field {}", api::go::quote(&format!("[{at}].{name}")))
            })
            .collect()
    }

    /// Carries out the operations in order. The first that fails fails the patch.
    pub fn apply(&self, document: Value) -> Result<Value, PatchError> {
        let mut work = Work { nesting: Nesting::of(&document), document, copied: 0, moved: Moved(0) };
        for operation in &self.operations {
            work.carry_out(operation).map_err(PatchError::Unfit)?;
        }
        Ok(work.document)
    }
}

impl PatchOperation {
    fn decode(operation: &Value) -> Result<PatchOperation, PatchError> {
        let member = |name: &str| match operation {
            Value::Object(members) => members.get(name).cloned().unwrap_or_default(),
            _ => Value::Null,
        };
        match operation {
            Value::Object(_) | Value::Null => Ok(PatchOperation {
                kind: member("op").as_str().unwrap_or("unknown").into(),
                path: PathText::decode(member("path")),
                from: PathText::decode(member("from")),
                value: member("value"),
            }),
            other => Err(PatchError::Malformed(mistyped(other, "jsonpatch.Operation"))),
        }
    }

    fn path(&self) -> Result<&str, String> {
        self.path.text("operation missing path field")
    }

    fn from(&self) -> Result<&str, String> {
        self.from.text("operation, missing from field")
    }
}

impl PathText {
    fn decode(value: Value) -> PathText {
        match value {
            Value::String(text) => PathText::At(text),
            Value::Null => PathText::Missing,
            other => PathText::NoText(api::go::json_kind(&other)),
        }
    }

    fn text(&self, missing: &str) -> Result<&str, String> {
        match self {
            PathText::At(text) => Ok(text),
            PathText::Missing => Err(format!("{missing}: missing value")),
            PathText::NoText(kind) => {
                Err(format!("json: cannot unmarshal {kind} into Go value of type string"))
            }
        }
    }
}

/// The error for the first member of the wrong type, as kube-apiserver words it.
fn check(patch: &Value) -> Result<(), String> {
    let operations = match patch {
        Value::Array(operations) => operations.as_slice(),
        Value::Null => &[],
        other => return Err(mistyped(other, "[]handlers.jsonPatchOp")),
    };
    for operation in operations {
        match operation {
            Value::Object(members) => {
                let texts =
                    ["op", "path", "from"].into_iter().filter_map(|name| Some((name, members.get(name)?)));
                let mut wrong = texts.filter(|(_, value)| !value.is_string() && !value.is_null());
                if let Some((name, value)) = wrong.next() {
                    let kind = api::go::json_kind(value);
                    return Err(format!(
                        "json: cannot unmarshal {kind} into Go struct field jsonPatchOp.{name} of type string"
                    ));
                }
            }
            Value::Null => {}
            other => return Err(mistyped(other, "handlers.jsonPatchOp")),
        }
    }
    Ok(())
}

fn mistyped(value: &Value, wanted: &str) -> String {
    format!("json: cannot unmarshal {} into Go value of type {wanted}", api::go::json_kind(value))
}

/// A patch that is being carried out.
struct Work {
    document: Value,
    nesting: Nesting,
    copied: usize,
    moved: Moved,
}

/// The most items that all operations together may shift inside lists. Ten thousand inserts at the start of a
/// list of a hundred thousand items would take minutes.
const MAX_MOVED: usize = 50_000_000;

/// The number of items shifted so far.
struct Moved(usize);

impl Moved {
    fn add(&mut self, container: &pointer::Container<'_>, key: &str) -> Result<(), String> {
        self.0 += container.moved_items(key);
        match self.0 > MAX_MOVED {
            true => Err(format!("the operations move more than {MAX_MOVED} items of lists")),
            false => Ok(()),
        }
    }
}

impl Work {
    fn carry_out(&mut self, operation: &PatchOperation) -> Result<(), String> {
        match operation.kind.as_str() {
            "add" => self.add(operation),
            "remove" => self.remove(operation),
            "replace" => self.replace(operation),
            "move" => self.relocate(operation),
            "test" => self.test(operation),
            "copy" => self.copy(operation),
            other => Err(format!("Unexpected kind: {other}")),
        }
    }

    fn add(&mut self, operation: &PatchOperation) -> Result<(), String> {
        let path = operation.path().map_err(|_| "add operation failed to decode path: missing value")?;
        let missing =
            || format!("add operation does not apply: doc is missing path: \"{path}\": missing value");
        self.nesting.admit(segments(path) + depth(&operation.value))?;
        let (mut container, key) = pointer::find(&mut self.document, path).ok_or_else(missing)?;
        self.moved.add(&container, &key)?;
        let added = container.add(&key, operation.value.clone());
        added.map_err(|problem| format!("error in add for path: '{path}': {problem}"))
    }

    fn remove(&mut self, operation: &PatchOperation) -> Result<(), String> {
        let path = operation.path().map_err(|_| "remove operation failed to decode path: missing value")?;
        let missing =
            || format!("remove operation does not apply: doc is missing path: \"{path}\": missing value");
        let (mut container, key) = pointer::find(&mut self.document, path).ok_or_else(missing)?;
        self.moved.add(&container, &key)?;
        let removed = container.remove(&key).map(drop);
        removed.map_err(|problem| format!("error in remove for path: '{path}': {problem}"))
    }

    fn replace(&mut self, operation: &PatchOperation) -> Result<(), String> {
        let decoded = operation.path();
        let path =
            decoded.map_err(|problem| format!("replace operation failed to decode path: {problem}"))?;
        self.nesting.admit(segments(path) + depth(&operation.value))?;
        if path.is_empty() {
            if !matches!(operation.value, Value::Object(_) | Value::Array(_)) {
                return Err("replace operation value must be object or array: %!w(<nil>)".into());
            }
            self.document = operation.value.clone();
            return Ok(());
        }
        let missing =
            || format!("replace operation does not apply: doc is missing path: {path}: missing value");
        let (mut container, key) = pointer::find(&mut self.document, path).ok_or_else(missing)?;
        let replaced = container.replace(&key, operation.value.clone());
        replaced.map_err(|_| {
            format!("replace operation does not apply: doc is missing key: {path}: missing value")
        })
    }

    fn relocate(&mut self, operation: &PatchOperation) -> Result<(), String> {
        let decoded = operation.from();
        let from = decoded.map_err(|problem| format!("move operation failed to decode from: {problem}"))?;
        let missing =
            || format!("move operation does not apply: doc is missing from path: {from}: missing value");
        let (mut container, key) = pointer::find(&mut self.document, from).ok_or_else(missing)?;
        self.moved.add(&container, &key)?;
        let value = container
            .remove(&key)
            .map_err(|problem| format!("error in move for path: '{key}': {problem}"))?;
        let decoded = operation.path();
        let path = decoded.map_err(|problem| format!("move operation failed to decode path: {problem}"))?;
        self.nesting.admit_moved(&value, from, path)?;
        let missing = || {
            format!("move operation does not apply: doc is missing destination path: {path}: missing value")
        };
        let (mut container, key) = pointer::find(&mut self.document, path).ok_or_else(missing)?;
        self.moved.add(&container, &key)?;
        let added = container.add(&key, value);
        added.map_err(|problem| format!("error in move for path: '{path}': {problem}"))
    }

    fn test(&mut self, operation: &PatchOperation) -> Result<(), String> {
        let decoded = operation.path();
        let path = decoded.map_err(|problem| format!("test operation failed to decode path: {problem}"))?;
        let same = if path.is_empty() {
            self.document == operation.value
        } else {
            let missing = || format!("test operation does not apply: is missing path: {path}: missing value");
            let (container, key) = pointer::find(&mut self.document, path).ok_or_else(missing)?;
            let found = container.get(&key);
            let found = found.map_err(|problem| format!("error in test for path: '{path}': {problem}"))?;
            *found.unwrap_or(&Value::Null) == operation.value
        };
        if same { Ok(()) } else { Err(format!("testing value {path} failed: test failed")) }
    }

    fn copy(&mut self, operation: &PatchOperation) -> Result<(), String> {
        let decoded = operation.from();
        let from = decoded.map_err(|problem| format!("copy operation failed to decode from: {problem}"))?;
        let missing =
            || format!("copy operation does not apply: doc is missing from path: {from}: missing value");
        let (container, key) = pointer::find(&mut self.document, from).ok_or_else(missing)?;
        let found = container.get(&key);
        let found = found.map_err(|problem| format!("error in copy for from: '{from}': {problem}"))?;
        let value = found.cloned().unwrap_or_default();
        let path = operation.path().map_err(|_| "copy operation failed to decode path: missing value")?;
        self.nesting.admit(segments(path) + depth(&value))?;
        let missing = || {
            format!("copy operation does not apply: doc is missing destination path: {path}: missing value")
        };
        let (mut container, key) = pointer::find(&mut self.document, path).ok_or_else(missing)?;
        if !value.is_null() {
            self.copied += value.to_string().len();
        }
        if self.copied > MAX_COPIED_BYTES {
            return Err(format!(
                "Unable to complete the copy, the accumulated size increase of copy is {}, \
                 exceeding the limit {MAX_COPIED_BYTES}",
                self.copied
            ));
        }
        self.moved.add(&container, &key)?;
        container
            .add(&key, value)
            .map_err(|problem| format!("error while adding value during copy: {problem}"))
    }
}

/// The number of steps in a path.
fn segments(path: &str) -> usize {
    path.matches('/').count()
}

/// An upper bound on the depth of the document. Moving and copying a value into itself doubles the depth each
/// time, and a value too deep cannot even be dropped on a small stack. A moved value may be large, so it is
/// measured only where the bound alone does not prove that it fits.
struct Nesting {
    bound: usize,
    measurements: usize,
}

impl Nesting {
    fn of(document: &Value) -> Self {
        Nesting { bound: depth(document), measurements: 0 }
    }

    fn admit(&mut self, reach: usize) -> Result<(), String> {
        if reach > MAX_DEPTH {
            return Err("exceeded max depth".into());
        }
        self.bound = self.bound.max(reach);
        Ok(())
    }

    fn admit_moved(&mut self, value: &Value, from: &str, path: &str) -> Result<(), String> {
        let bound = segments(path) + self.bound.saturating_sub(segments(from));
        if bound <= MAX_DEPTH || self.measurements >= MAX_MEASUREMENTS {
            return self.admit(bound);
        }
        self.measurements += 1;
        self.admit(segments(path) + depth(value))
    }
}

#[cfg(test)]
mod tests;
