//! The errors of strategic merge patches, with kube-apiserver's texts.

use serde_json::{Map, Value};

use crate::patch::{PatchError, print};

pub(super) fn primitive_list_format() -> PatchError {
    PatchError::Malformed("invalid patch format of primitive list".into())
}

pub(super) fn retain_keys_format() -> PatchError {
    PatchError::Malformed("invalid patch format of retainKeys".into())
}

pub(super) fn order_format() -> PatchError {
    PatchError::Malformed("invalid patch format of setElementOrder list".into())
}

pub(super) fn list_of_lists() -> PatchError {
    PatchError::Unfit("lists of lists are not supported".into())
}

pub(super) fn unknown_directive(directive: &Value, patch: &Map<String, Value>) -> PatchError {
    PatchError::Unexpected(format!(
        "unknown patch type: {} in map: {}",
        print::verb_s(directive),
        print::map(patch)
    ))
}

pub(super) fn no_merge_key(item: &Map<String, Value>, key: &str) -> PatchError {
    PatchError::Unexpected(format!("map: {} does not contain declared merge key: {key}", print::map(item)))
}

pub(super) fn mixed_items(current: &[Value], patch: &[Value]) -> PatchError {
    let lists = format!("[{} {}]", print::list(current), print::list(patch));
    PatchError::Unexpected(format!("list element types are not identical: {lists}"))
}

pub(super) fn order_mismatch(patch: &[Value], order: &[Value]) -> PatchError {
    PatchError::Unexpected(format!(
        "The order in patch list:\n{}\n doesn't match $setElementOrder list:\n{}\n",
        print::list(patch),
        print::list(order)
    ))
}

pub(super) fn as_list(value: Value) -> Result<Vec<Value>, PatchError> {
    match value {
        Value::Array(items) => Ok(items),
        other => Err(mistyped("[]interface {}", &other)),
    }
}

pub(super) fn as_map(value: &Value) -> Result<&Map<String, Value>, PatchError> {
    value.as_object().ok_or_else(|| mistyped("map[string]interface {}", value))
}

fn mistyped(expected: &str, got: &Value) -> PatchError {
    let got = if got.is_null() { "%!s(<nil>)" } else { print::type_name(got) };
    PatchError::Unexpected(format!("expected a {expected}, but received a {got}"))
}
