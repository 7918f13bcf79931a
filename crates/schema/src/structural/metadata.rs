//! Normalizes the metadata of a custom object, and of objects embedded in it, as Go decodes it into
//! `ObjectMeta`.

use std::sync::LazyLock;

use api::field::{Error, Path};
use serde_json::{Map as Members, Value};

use super::shape::{Shape, ShapeId, Structural};
use crate::decode::{DecodeError, FieldValidation, decode};
use crate::encode::{encode_any, normalize};
use crate::types::{Field, GoNames, List, ListKind, Map, Node, Type, TypeId, Types};

/// What happens to malformed metadata.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Malformed {
    Refused,
    /// Each malformed member is dropped. For objects that are stored already.
    Dropped,
}

/// The types that all custom objects share, and the type of their metadata.
pub(super) fn shared_types() -> (&'static Types, TypeId) {
    static SHARED: LazyLock<(Types, TypeId)> = LazyLock::new(build);
    (&SHARED.0, SHARED.1)
}

fn build() -> (Types, TypeId) {
    const PACKAGE: &str = "io.k8s.apimachinery.pkg.apis.meta.v1";
    let text = |name| Field::new(name, Node::String);
    let named = |name, of: &'static str| Field {
        go: Some(Box::new(GoNames { type_name: Some(of.into()), within: None })),
        ..text(name)
    };
    let pointer = |name, node| Field { pointer: true, ..Field::new(name, node) };
    let always = |field: Field| Field { always: true, required: true, ..field };
    let texts = |name| Field::new(name, Node::Map(Box::new(Map { values: Node::String, atomic: false })));
    let list = |items, kind| Node::List(Box::new(List { items, kind, wrapped: false }));

    let mut types = Types::default();
    let owner = types.add(Type::new(
        format!("{PACKAGE}.OwnerReference"),
        [
            always(text("apiVersion")),
            always(text("kind")),
            always(text("name")),
            always(named("uid", "types.UID")),
            pointer("controller", Node::Bool),
            pointer("blockOwnerDeletion", Node::Bool),
        ],
    ));
    let entry = types.add(Type::new(
        format!("{PACKAGE}.ManagedFieldsEntry"),
        [
            text("manager"),
            named("operation", "v1.ManagedFieldsOperationType"),
            text("apiVersion"),
            pointer("time", Node::Time),
            text("fieldsType"),
            pointer("fieldsV1", Node::FieldsV1),
            text("subresource"),
        ],
    ));
    let metadata = types.add(Type::new(
        format!("{PACKAGE}.ObjectMeta"),
        [
            text("name"),
            text("generateName"),
            text("namespace"),
            text("selfLink"),
            named("uid", "types.UID"),
            text("resourceVersion"),
            Field::new("generation", Node::Int64),
            Field::new("creationTimestamp", Node::Time),
            pointer("deletionTimestamp", Node::Time),
            pointer("deletionGracePeriodSeconds", Node::Int64),
            texts("labels"),
            texts("annotations"),
            Field::new(
                "ownerReferences",
                list(Node::AtomicObject(owner), ListKind::Map(["uid".into()].into())),
            ),
            Field::new("finalizers", list(Node::String, ListKind::Set)),
            Field::new("managedFields", list(Node::Object(entry), ListKind::Atomic)),
        ],
    ));
    (types, metadata)
}

/// Normalizes the metadata of an object. `prefix` is the path of the object; the paths of unknown members are
/// added to `unknown`.
pub(super) fn normalize_metadata(
    object: &mut Members<String, Value>,
    prefix: &Path<'_>,
    malformed: Malformed,
    unknown: &mut Vec<String>,
) -> Result<(), DecodeError> {
    let Some(metadata) = object.get_mut("metadata") else { return Ok(()) };
    // Kubernetes: unlike in built-in objects, an empty managedFields list is dropped before it could count as
    // a reset.
    if let Some(metadata) = metadata.as_object_mut() {
        metadata.retain(|name, value| {
            name != "managedFields" || value.as_array().is_none_or(|it| !it.is_empty())
        });
    }
    let (types, id) = shared_types();
    let mut normalized = match read_reporting(metadata, prefix, unknown) {
        Ok(normalized) => normalized,
        Err(error) if malformed == Malformed::Refused => return Err(error),
        Err(_) => readable_members(metadata, prefix, unknown),
    };
    normalize(types, id, &mut normalized);
    *metadata = normalized;
    Ok(())
}

/// Normalizes the metadata of a custom object: removes what Go's encoder would omit.
pub fn tidy_metadata(object: &mut Value) {
    let Some(members) = object.as_object_mut() else { return };
    let (types, id) = shared_types();
    normalize(types, id, members.entry("metadata").or_insert(Value::Null));
}

/// Removes malformed members from the metadata of a custom object.
pub fn drop_malformed_metadata(object: &mut Value) {
    if let Some(members) = object.as_object_mut() {
        normalize_metadata(members, &Path::ROOT, Malformed::Dropped, &mut Vec::new())
            .expect("nothing is refused where it may be dropped");
    }
}

/// Fails if the metadata of a custom object is malformed.
pub fn check_metadata(object: &Value) -> Result<(), DecodeError> {
    object.get("metadata").map_or(Ok(()), |metadata| read(metadata).map(drop))
}

/// Metadata as Go holds it.
pub(super) fn read(metadata: &Value) -> Result<Value, DecodeError> {
    read_reporting(metadata, &Path::ROOT, &mut Vec::new())
}

fn read_reporting(
    metadata: &Value,
    prefix: &Path<'_>,
    unknown: &mut Vec<String>,
) -> Result<Value, DecodeError> {
    let (types, id) = shared_types();
    let read = decode(types, id, &encode_any(metadata), FieldValidation::Warn)?;
    let paths =
        read.warnings.iter().filter_map(|text| text.strip_prefix("unknown field \"")?.strip_suffix('"'));
    unknown.extend(paths.map(|path| format!("{}.{path}", prefix.child("metadata"))));
    Ok(read.value)
}

fn readable_members(metadata: &Value, prefix: &Path<'_>, unknown: &mut Vec<String>) -> Value {
    let mut normalized = Members::new();
    for (name, value) in metadata.as_object().into_iter().flatten() {
        let alone = Value::Object([(name.clone(), value.clone())].into_iter().collect());
        if let Ok(Value::Object(members)) = read_reporting(&alone, prefix, unknown) {
            normalized.extend(members);
        }
    }
    Value::Object(normalized)
}

/// Normalizes the metadata of embedded objects, wherever the schema declares them.
pub(super) fn normalize_embedded(
    schema: &Structural,
    value: &mut Value,
    malformed: Malformed,
    unknown: &mut Vec<String>,
) -> Result<(), DecodeError> {
    let root = schema.shape(schema.root);
    let mut walk = Embedded { schema, malformed, unknown };
    walk.inside(root, &Path::ROOT, value)
}

struct Embedded<'s, 'u> {
    schema: &'s Structural,
    malformed: Malformed,
    unknown: &'u mut Vec<String>,
}

impl Embedded<'_, '_> {
    fn value(&mut self, id: ShapeId, path: &Path<'_>, value: &mut Value) -> Result<(), DecodeError> {
        let shape = self.schema.shape(id);
        if let (true, Value::Object(members)) = (shape.embedded, &mut *value) {
            self.type_meta(path, members)?;
            let found = members.get("metadata").cloned();
            normalize_metadata(members, path, self.malformed, self.unknown).map_err(|error| {
                let invalid = Error::invalid(&path.child("metadata"), found.as_ref(), error.to_string());
                DecodeError::Malformed(invalid.to_string())
            })?;
        }
        self.inside(shape, path, value)
    }

    fn type_meta(&self, path: &Path<'_>, members: &mut Members<String, Value>) -> Result<(), DecodeError> {
        for name in ["apiVersion", "kind"] {
            let Some(value) = members.get(name).filter(|value| !value.is_string()) else { continue };
            if self.malformed == Malformed::Refused {
                let invalid = Error::invalid(&path.child(name), value, "must be a string");
                return Err(DecodeError::Malformed(invalid.to_string()));
            }
            members.remove(name);
        }
        Ok(())
    }

    fn inside(&mut self, shape: &Shape, path: &Path<'_>, value: &mut Value) -> Result<(), DecodeError> {
        match value {
            Value::Object(members) => {
                for (name, value) in members {
                    match (self.schema.property(shape, name), self.schema.member(shape, name)) {
                        (Some(id), _) => self.value(id, &path.child(name), value)?,
                        (None, Some(id)) => self.value(id, &path.key(name), value)?,
                        (None, None) => {}
                    }
                }
            }
            Value::Array(items) => {
                let Some(id) = shape.items else { return Ok(()) };
                for (nth, item) in items.iter_mut().enumerate() {
                    self.value(id, &path.index(nth), item)?;
                }
            }
            _ => {}
        }
        Ok(())
    }
}
