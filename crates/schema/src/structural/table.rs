//! Converts a structural schema to the table of types that managedFields use.

use std::collections::HashMap;
use std::sync::Arc;

use super::metadata::shared_types;
use super::shape::{Additional, ListType, Shape, ShapeId, Structural, ValueType};
use crate::types::{Field, List, ListKind, Map, Node, Type, TypeId, Types};

pub(super) fn types(schema: &Structural, group: &str, version: &str, kind: &str) -> (Types, TypeId) {
    let (shared, _) = shared_types();
    let mut table = Table { schema, types: Types::over(shared), made: HashMap::new() };
    let mut root = table.object(schema.shape(schema.root), true);
    root.name = kind.to_owned().into();
    let id = table.types.add(root.of_kind(group.to_owned(), version.to_owned(), kind.to_owned()));
    (table.types, id)
}

struct Table<'s> {
    schema: &'s Structural,
    types: Types,
    made: HashMap<ShapeId, TypeId>,
}

impl Table<'_> {
    fn node(&mut self, id: ShapeId) -> Node {
        let shape = self.schema.shape(id);
        match shape.kind {
            ValueType::String => Node::String,
            ValueType::Integer => Node::Int64,
            ValueType::Number => Node::Double,
            ValueType::Boolean => Node::Bool,
            ValueType::IntOrString => Node::IntOrString,
            ValueType::Array => match shape.items {
                Some(items) => {
                    let items = self.node(items);
                    Node::List(Box::new(List { items, kind: Self::list_kind(shape), wrapped: false }))
                }
                None => Node::Json,
            },
            ValueType::Object => match shape.additional {
                Additional::Shape(id) if shape.properties.is_empty() => {
                    Node::Map(Box::new(Map { values: self.node(id), atomic: shape.atomic_map }))
                }
                Additional::Allowed if shape.properties.is_empty() => {
                    Node::Map(Box::new(Map { values: Node::Json, atomic: shape.atomic_map }))
                }
                _ => {
                    let id = self.type_of(id);
                    if shape.atomic_map { Node::AtomicObject(id) } else { Node::Object(id) }
                }
            },
            // Kubernetes: where the schema has no type, the value decides.
            ValueType::Any => Node::Json,
        }
    }

    fn list_kind(shape: &Shape) -> ListKind {
        match shape.list {
            ListType::Atomic | ListType::Unsaid => ListKind::Atomic,
            ListType::Set => ListKind::Set,
            ListType::Map => ListKind::Map(shape.list_keys().iter().cloned().map(Into::into).collect()),
        }
    }

    fn type_of(&mut self, id: ShapeId) -> TypeId {
        if let Some(made) = self.made.get(&id) {
            return *made;
        }
        let shape = self.schema.shape(id);
        let of = self.object(shape, shape.embedded);
        let made = self.types.add(of);
        self.made.insert(id, made);
        made
    }

    /// `whole`: an object with metadata, the custom object or one embedded in it.
    fn object(&mut self, shape: &Shape, whole: bool) -> Type {
        let mut fields = Vec::with_capacity(shape.properties.len() + 3);
        if whole {
            let (_, metadata) = shared_types();
            fields.push(Field::new("apiVersion", Node::String));
            fields.push(Field::new("kind", Node::String));
            fields.push(Field::new("metadata", Node::Object(metadata)));
        }
        for (name, id) in &shape.properties {
            let name = self.schema.name(*name);
            if whole && super::prune::META.contains(&name) {
                continue;
            }
            let node = self.node(*id);
            let preset = self.schema.shape(*id).default_value().map(|value| Arc::new(value.clone()));
            // A pointer: a field that is set is never omitted.
            fields.push(Field { default: preset, pointer: true, ..Field::new(name.to_owned(), node) });
        }
        let of = Type::new("", fields);
        if shape.preserve { of.keeping_unknown() } else { of }
    }
}
