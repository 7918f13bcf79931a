//! A type of the table in, the type by which expressions know it out.

use expression::{
    Type,
    escape::escape,
    ty::{Field, Object},
};
use schema::types::{Node, TypeId, Types, Unknown};

/// Deeper schemas of custom resources are known no further.
const MAX_DEPTH: usize = 64;

/// A built-in type. Types may hold themselves, so fields are listed when they are asked for.
pub fn built_in(types: &'static Types, of: TypeId) -> Type {
    let name = types.get(of).name.to_string();
    Type::Object(Object::lazy(name, move || fields(types, of, &|of| built_in(types, of))))
}

/// The type of a custom resource, which never holds itself.
pub fn custom(types: &Types, of: TypeId) -> Type {
    eager(types, of, 0)
}

fn eager(types: &Types, of: TypeId, depth: usize) -> Type {
    let it = types.get(of);
    if depth > MAX_DEPTH || it.unknown == Unknown::Keep {
        return Type::Dyn;
    }
    // Two objects of one name would be taken for the same.
    let name = format!("{}@{}", it.name, of.0);
    Type::Object(Object::new(name, fields(types, of, &|of| eager(types, of, depth + 1))))
}

fn fields(types: &Types, of: TypeId, object: &dyn Fn(TypeId) -> Type) -> Vec<Field> {
    let it = types.get(of);
    let known = it.fields().iter().filter_map(|field| {
        Some(Field { name: escape(&field.name)?.into(), ty: typed(&field.node, object)? })
    });
    let mut fields: Vec<Field> = known.collect();
    if it.kind.is_some() {
        for name in ["apiVersion", "kind"] {
            if !fields.iter().any(|field| &*field.name == name) {
                fields.push(Field { name: name.into(), ty: Type::String });
            }
        }
    }
    fields
}

/// Kubernetes: expressions do not see what has no type.
fn typed(node: &Node, object: &dyn Fn(TypeId) -> Type) -> Option<Type> {
    Some(match node {
        Node::String | Node::Quantity => Type::String,
        Node::Bool => Type::Bool,
        Node::Int32 | Node::Int64 => Type::Int,
        Node::Double => Type::Double,
        Node::Bytes => Type::Bytes,
        Node::Time | Node::MicroTime => Type::Timestamp,
        Node::IntOrString => Type::Dyn,
        Node::Raw => Type::Object(Object::new("RawExtension", Vec::new())),
        Node::FieldsV1 => Type::Object(Object::new("FieldsV1", Vec::new())),
        Node::Json | Node::Either(..) => return None,
        Node::Object(of) | Node::AtomicObject(of) => object(*of),
        Node::List(list) => Type::list(typed(&list.items, object)?),
        Node::Map(map) => Type::map(Type::String, typed(&map.values, object)?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::{Names, Offer};

    #[test]
    fn fields_of_built_in_kinds_are_known() {
        let types = crate::types();
        let (of, _) = types.kind("apps", "v1", "Deployment").unwrap();
        let names = Names::new(Offer::default()).with_types(&built_in(types, of), None);
        for (source, doubt) in [
            ("object.spec.replicas > 1 && object.metadata.labels['a'] == 'b'", ""),
            ("object.spec.template.spec.containers.all(c, c.image != '')", ""),
            ("object.metadata.namespace == 'a'", ""),
            ("object.spec.replica > 1", "undefined field 'replica'"),
            ("object.spec.replicas > '1'", "found no matching overload"),
        ] {
            let told = names.doubts(source).unwrap_or_default();
            assert!(told.contains(doubt) && told.is_empty() == doubt.is_empty(), "{source}: {told}");
        }
    }
}
