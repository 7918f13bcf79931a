//! The members of an object by name: read where they are, made where they are not.

use serde_json::{Map, Value};

pub(crate) type Members = Map<String, Value>;

/// What is missing reads as empty.
pub(crate) fn text<'a>(members: &'a Members, name: &str) -> &'a str {
    members.get(name).and_then(Value::as_str).unwrap_or_default()
}

pub(crate) fn integer(members: &Members, name: &str) -> i64 {
    members.get(name).and_then(Value::as_i64).unwrap_or_default()
}

pub(crate) fn flag(members: &Members, name: &str) -> bool {
    members.get(name).and_then(Value::as_bool).unwrap_or_default()
}

/// Something stands there, and it is not an empty text, list or map.
pub(crate) fn is_set(members: &Members, name: &str) -> bool {
    match members.get(name) {
        None | Some(Value::Null) => false,
        Some(Value::String(text)) => !text.is_empty(),
        Some(Value::Array(items)) => !items.is_empty(),
        Some(Value::Object(members)) => !members.is_empty(),
        Some(_) => true,
    }
}

pub(crate) fn default_to(members: &mut Members, name: &str, value: impl Into<Value>) {
    if !is_set(members, name) {
        members.insert(name.to_owned(), value.into());
    }
}

pub(crate) fn object<'a>(members: &'a Members, name: &str) -> Option<&'a Members> {
    members.get(name)?.as_object()
}

/// An object inside another, if it is there.
pub(crate) fn present<'a>(members: &'a mut Members, name: &str) -> Option<&'a mut Members> {
    members.get_mut(name)?.as_object_mut()
}

/// An object inside another, made if it is not there.
pub(crate) fn made<'a>(members: &'a mut Members, name: &str) -> &'a mut Members {
    let value = members.entry(name).or_insert(Value::Null);
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    value.as_object_mut().expect("it has just been made an object")
}

/// The objects of a list.
pub(crate) fn items<'a>(members: &'a Members, name: &str) -> impl Iterator<Item = &'a Members> + use<'a> {
    members.get(name).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_object)
}

pub(crate) fn items_mut<'a>(
    members: &'a mut Members,
    name: &str,
) -> impl Iterator<Item = &'a mut Members> + use<'a> {
    members.get_mut(name).and_then(Value::as_array_mut).into_iter().flatten().filter_map(Value::as_object_mut)
}

/// A list inside an object, made if it is not there.
pub(crate) fn list<'a>(members: &'a mut Members, name: &str) -> &'a mut Vec<Value> {
    let value = members.entry(name).or_insert(Value::Null);
    if !value.is_array() {
        *value = Value::Array(Vec::new());
    }
    value.as_array_mut().expect("it has just been made a list")
}

/// Copies the entries of one map that another does not have.
pub(crate) fn add_missing(of: &mut Members, to: &str, from: &str) {
    let Some(entries) = object(of, from).filter(|entries| !entries.is_empty()).cloned() else {
        return;
    };
    let to = made(of, to);
    for (name, value) in entries {
        to.entry(name).or_insert(value);
    }
}
