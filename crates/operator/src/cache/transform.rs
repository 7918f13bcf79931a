//! A function of yours that makes objects smaller before a cache keeps them.

use serde_json::Value;
use std::{fmt, sync::Arc};

/// Changes the JSON of every object before it is kept (client-go: `TransformFunc`). Cheap to clone; sources with
/// clones of one transform share a cache.
///
/// Of the metadata only annotations may be changed: caches need the rest. An object without all its fields must
/// not be written back.
///
/// ```
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use operator::{all, cache::Transform};
///
/// /// The names of the entries are enough: their texts may be a megabyte.
/// fn names_only(map: &mut serde_json::Value) {
///     for text in map["data"].as_object_mut().into_iter().flat_map(|data| data.values_mut()) {
///         *text = "".into();
///     }
/// }
/// let source = all::<ConfigMap>().transformed(&Transform::new(names_only));
/// ```
#[derive(Clone)]
pub struct Transform(Arc<dyn Fn(&mut Value) + Send + Sync>);

impl Transform {
    /// The function is called for every object of every list and watch; it must depend on nothing but the object.
    pub fn new(change: impl Fn(&mut Value) + Send + Sync + 'static) -> Transform {
        Transform(Arc::new(change))
    }
}

/// The object after all these transforms.
pub(crate) fn apply(transforms: &[Transform], json: &str) -> Result<String, serde_json::Error> {
    let mut object: Value = serde_json::from_str(json)?;
    let mut metadata = object["metadata"].clone();
    transforms.iter().for_each(|Transform(change)| change(&mut object));
    let annotations = object.get("metadata").and_then(|changed| changed.get("annotations")).cloned();
    if let Some(metadata) = metadata.as_object_mut() {
        match annotations {
            Some(annotations) => drop(metadata.insert("annotations".to_owned(), annotations)),
            None => drop(metadata.remove("annotations")),
        }
    }
    if let Some(object) = object.as_object_mut() {
        object.insert("metadata".to_owned(), metadata);
    }
    serde_json::to_string(&object)
}

impl PartialEq for Transform {
    fn eq(&self, other: &Transform) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Transform {}

impl fmt::Debug for Transform {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Transform")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transform_cannot_change_metadata_but_for_annotations() {
        let json = r#"{"metadata":{"name":"web","labels":{"a":"b"},"annotations":{"long":"text"}},"data":{"k":"v"}}"#;
        for (change, expected) in [
            (Transform::new(|_| ()), json),
            (
                Transform::new(|object| drop(object.as_object_mut().unwrap().remove("data"))),
                r#"{"metadata":{"name":"web","labels":{"a":"b"},"annotations":{"long":"text"}}}"#,
            ),
            (
                Transform::new(|object| object["metadata"] = serde_json::json!({"name": "other"})),
                r#"{"metadata":{"name":"web","labels":{"a":"b"}},"data":{"k":"v"}}"#,
            ),
            (Transform::new(|object| *object = Value::Null), "null"),
        ] {
            let read = |text: &str| serde_json::from_str::<Value>(text).unwrap();
            assert_eq!(read(&apply(&[change], json).unwrap()), read(expected));
        }
    }
}
