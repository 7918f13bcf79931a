//! The last-applied annotation of client-side apply, for clients that move to server-side apply.

use api::go;
use serde_json::{Map, Value};

use super::Target;
use super::compare::Changes;
use super::typed::DuplicateItems;
use crate::field_set::FieldSet;

const ANNOTATION: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Kubernetes: the limit on all annotations of an object together.
const MAX_ANNOTATIONS_BYTES: usize = 256 * 1024;

/// The fields that client-side apply set and that have not changed since: conflicts over them are none.
pub(super) fn excused(target: &Target<'_>, live: &Value) -> Option<FieldSet> {
    let annotation = annotations(live)?.get(ANNOTATION)?.as_str()?;
    let live = target.typed(live, DuplicateItems::Refused).ok()?;
    let last: Value = serde_json::from_str(annotation).ok()?;
    if last.get("apiVersion")? != target.version || last.get("kind")?.as_str()?.is_empty() {
        return None;
    }
    let last = target.typed(&last, DuplicateItems::Refused).ok()?;
    let changes = Changes::between(&last, &live);
    let said = last.fields();
    Some(said.difference(&changes.modified).difference(&changes.added).difference(&changes.removed))
}

/// Updates the annotation where there is one, so that client-side apply still works afterwards.
pub(super) fn carry(object: &mut Value, applied: &Value) {
    let has_it = annotations(object).and_then(|all| all.get(ANNOTATION)).and_then(Value::as_str);
    if has_it.is_none_or(str::is_empty) {
        return;
    }
    let mut applied = applied.clone();
    if let Some(annotations) = applied.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut) {
        annotations.remove(ANNOTATION);
    }
    let Ok(text) = go::json(&applied) else { return };
    let Some(annotations) = object.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut) else {
        return;
    };
    annotations.insert(ANNOTATION.to_owned(), Value::String(text + "\n"));
    let size: usize =
        annotations.iter().map(|(name, value)| name.len() + value.as_str().map_or(0, str::len)).sum();
    if size > MAX_ANNOTATIONS_BYTES {
        annotations.remove(ANNOTATION);
    }
}

fn annotations(object: &Value) -> Option<&Map<String, Value>> {
    object.pointer("/metadata/annotations")?.as_object()
}
