//! An object in one version in, the same object in another version out.
//!
//! A kind whose shape differs between versions brings its conversions; the others only say a different `apiVersion`.

#[cfg(test)]
mod tests;

use std::borrow::Cow;

use api::object;
use serde_json::{Map, Value};

use crate::built_in;
use crate::defaults::member::Members;

/// Group and version; the core group is empty.
pub type GroupVersion<'a> = (&'a str, &'a str);

/// One change of shape between two versions.
#[derive(Debug)]
pub(crate) struct VersionConversion {
    pub(crate) from: GroupVersion<'static>,
    pub(crate) to: GroupVersion<'static>,
    pub(crate) convert: fn(&mut Members),
}

/// Converts a defaulted object. Custom resources have no shapes of their own here, so they only change their name.
pub fn convert(object: Value, from: GroupVersion<'_>, to: GroupVersion<'_>, kind: &str) -> Value {
    let mut object = match object {
        Value::Object(members) => members,
        _ => Map::new(),
    };
    if from != to {
        let conversions = built_in::of_kind(from.0, kind).map_or(&[][..], |it| it.conversions);
        if let Some(it) = conversions.iter().find(|it| (it.from, it.to) == (from, to)) {
            (it.convert)(&mut object);
        }
    }
    let (group, version) = to;
    let api_version = if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
    object.insert("apiVersion".to_owned(), api_version.into());
    Value::Object(object)
}

/// An object as Kubernetes has it inside, where its own shape is like that of another version.
pub(crate) fn internal<'o>(group: &str, version: &str, kind: &str, object: &'o Value) -> Cow<'o, Value> {
    match internal_version(group, version, kind) {
        same if same == version => Cow::Borrowed(object),
        other => Cow::Owned(convert(object.clone(), (group, version), (group, other), kind)),
    }
}

/// The version that is like the internal type.
pub(crate) fn internal_version<'v>(group: &str, version: &'v str, kind: &str) -> &'v str {
    built_in::of_kind(group, kind).and_then(|it| it.internal_version).unwrap_or(version)
}

/// Takes out of an object's metadata the annotations that stand for fields.
// Kubernetes: its internal types have those fields, and metadata that is shown by itself is theirs.
pub fn shed(object: &Value, metadata: &mut Value) {
    let (group, _) = object::api_version(object).split_once('/').unwrap_or_default();
    let standing =
        built_in::of_kind(group, object::kind(object)).map_or(&[][..], |it| it.annotations_for_fields);
    if standing.is_empty() {
        return;
    }
    let Some(metadata) = metadata.as_object_mut() else { return };
    if let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) {
        annotations.retain(|name, _| !standing.contains(&name.as_str()));
        if annotations.is_empty() {
            metadata.remove("annotations");
        }
    }
}
