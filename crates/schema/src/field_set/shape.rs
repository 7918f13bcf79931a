//! How server-side apply treats a field: as one value, as a list with item keys, or as a map.
//!
//! The types know more (times, quantities); here these are all scalars. Where there is no type, as inside a
//! [`Node::Json`], the value decides.

use api::go;
use serde_json::Value;

use super::{Element, Key};
use crate::types::{ListKind, Node, Type, Types, Unknown};

/// A field or item, before its value is known.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Place<'t> {
    Typed(&'t Node),
    /// No type: objects are granular, lists are atomic.
    Deduced,
    /// Everything is atomic.
    Opaque,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum FieldShape<'t> {
    Scalar(Scalar),
    List(ListShape<'t>),
    Map(MapShape<'t>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scalar {
    Numeric,
    String,
    Boolean,
    Any,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct ListShape<'t> {
    pub(crate) items: Place<'t>,
    pub(crate) kind: &'t ListKind,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct MapShape<'t> {
    of: Option<&'t Type>,
    /// The type of entries that are not fields. `None` where there may be none.
    rest: Option<Place<'t>>,
    pub(crate) atomic: bool,
}

/// The shape that a value without a type has. Two values with different shapes are compared as both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Face {
    Typed,
    Scalar,
    List,
    Map,
    /// Null has the shape of the other value.
    Open,
}

impl<'t> Place<'t> {
    pub(crate) fn face(self, value: &Value) -> Face {
        match (self, value) {
            (Place::Typed(node), _) if !is_open(node) => Face::Typed,
            (_, Value::Null) => Face::Open,
            (_, Value::Array(_)) => Face::List,
            (_, Value::Object(_)) => Face::Map,
            _ => Face::Scalar,
        }
    }

    /// The shape for a value; a place without a type is a map if the value is absent or null.
    pub(crate) fn shape(self, types: &'t Types, value: Option<&Value>) -> FieldShape<'t> {
        let (inner, atomic) = match self {
            Place::Typed(node) => match typed_shape(types, node) {
                Some(shape) => return shape,
                None if matches!(node, Node::Raw) => (Place::Opaque, true),
                None => (Place::Deduced, false),
            },
            Place::Deduced => (Place::Deduced, false),
            Place::Opaque => (Place::Opaque, true),
        };
        match value {
            Some(Value::Array(_)) => {
                FieldShape::List(ListShape { items: Place::Opaque, kind: &ListKind::Atomic })
            }
            None | Some(Value::Null | Value::Object(_)) => {
                FieldShape::Map(MapShape { of: None, rest: Some(inner), atomic })
            }
            Some(_) => FieldShape::Scalar(Scalar::Any),
        }
    }
}

fn is_open(node: &Node) -> bool {
    matches!(node, Node::Raw | Node::Json | Node::Either(..) | Node::IntOrString)
}

fn typed_shape<'t>(types: &'t Types, node: &'t Node) -> Option<FieldShape<'t>> {
    let object = |id, atomic| {
        let of = types.get(id);
        // Kubernetes: a schema without properties allows every field.
        let open = of.unknown == Unknown::Keep || of.fields().is_empty();
        FieldShape::Map(MapShape { of: Some(of), rest: open.then_some(Place::Deduced), atomic })
    };
    Some(match node {
        // Kubernetes: the schema of `IntOrString` has no type, so that it may be anything here.
        Node::Raw | Node::Json | Node::Either(..) | Node::IntOrString => return None,
        Node::String | Node::Bytes => FieldShape::Scalar(Scalar::String),
        Node::Bool => FieldShape::Scalar(Scalar::Boolean),
        Node::Int32 | Node::Int64 | Node::Double => FieldShape::Scalar(Scalar::Numeric),
        Node::Time | Node::MicroTime | Node::Quantity => FieldShape::Scalar(Scalar::Any),
        Node::FieldsV1 => FieldShape::Map(MapShape { of: None, rest: Some(Place::Deduced), atomic: false }),
        Node::Object(id) => object(*id, false),
        Node::AtomicObject(id) => object(*id, true),
        Node::List(list) => {
            FieldShape::List(ListShape { items: Place::Typed(&list.items), kind: &list.kind })
        }
        Node::Map(map) => {
            FieldShape::Map(MapShape { of: None, rest: Some(Place::Typed(&map.values)), atomic: map.atomic })
        }
    })
}

impl<'t> MapShape<'t> {
    /// The place of a field by its name, declared or not. `None` where the schema forbids it.
    pub(crate) fn place(&self, name: &str) -> Option<Place<'t>> {
        self.of.and_then(|of| of.field(name)).map(|field| Place::Typed(&field.node)).or(self.rest)
    }

    /// Whether the schema names the field.
    pub(crate) fn declares(&self, name: &str) -> bool {
        self.of.is_some_and(|of| of.position(name).is_some())
    }

    /// Whether the schema says nothing about the inside.
    pub(crate) fn is_schemaless(&self) -> bool {
        self.of.is_none_or(|of| of.fields().is_empty()) && matches!(self.rest, Some(Place::Deduced))
    }

    /// The place below an element of a set; the set may not fit the schema any more.
    pub(crate) fn place_at(&self, element: &Element) -> Option<Place<'t>> {
        match element {
            Element::Field(name) => self.place(name),
            _ => self.rest,
        }
    }
}

impl ListShape<'_> {
    pub(crate) fn is_atomic(&self) -> bool {
        *self.kind == ListKind::Atomic
    }

    /// The element that identifies this item in the list.
    pub(crate) fn element(&self, types: &Types, item: &Value) -> Result<Element, String> {
        match self.kind {
            ListKind::Atomic => Err("invalid indexing of non-associative list".into()),
            ListKind::Set => match item {
                Value::Object(_) => {
                    Err("associative list without keys has an element that's a map type".into())
                }
                Value::Array(_) => Err("not supported: associative list with lists as elements".into()),
                Value::Null => {
                    Err("associative list without keys has an element that's an explicit null".into())
                }
                scalar => Ok(Element::Value(scalar.clone())),
            },
            ListKind::Map(keys) => match item {
                Value::Null => Err("associative list with keys may not have a null element".into()),
                Value::Object(members) => self.key(types, keys, members).map(Element::Key),
                _ => Err("associative list with keys may not have non-map elements".into()),
            },
        }
    }

    /// The keys that the item has or that its type has a default for.
    fn key(
        &self,
        types: &Types,
        keys: &[crate::types::Name],
        item: &serde_json::Map<String, Value>,
    ) -> Result<Key, String> {
        let of = match self.items {
            Place::Typed(node) => node.object().map(|id| types.get(id)),
            _ => None,
        };
        let default = |name: &str| of?.field(name)?.default.as_deref().filter(|value| !value.is_null());
        let part = |name: &crate::types::Name| {
            let value = item.get(&**name).or_else(|| default(name))?;
            Some((Box::from(&**name), value.clone()))
        };
        let parts: Vec<_> = keys.iter().filter_map(part).collect();
        if parts.is_empty() && !keys.is_empty() {
            let names: Vec<_> = keys.iter().map(|name| go::quote(name)).collect();
            return Err(format!(
                "associative list with keys has an element that omits all key fields [{}] \
                 (and doesn't have default values for any key fields)",
                names.join(" ")
            ));
        }
        Ok(Key::new(parts))
    }
}
