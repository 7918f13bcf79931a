//! Normalizes an object: the result is what decoding its JSON would give.

use serde_json::{Map, Value};

use crate::types::{Node, Type, TypeId, Types, Unknown};

/// Removes what Go's encoder would omit, and adds the fields without `omitempty` (`"status": {}`,
/// `"containers": null`). Patches and managedFields work on objects in this form.
pub fn normalize(types: &Types, id: TypeId, value: &mut Value) {
    node(types, &Node::Object(id), value);
}

fn node(types: &Types, at: &Node, value: &mut Value) {
    if value.is_null() {
        *value = at.zero();
    }
    match (at, value) {
        (Node::Object(id) | Node::AtomicObject(id), Value::Object(members)) => {
            object(types, types.get(*id), members)
        }
        (Node::Either(id, _), Value::Object(members)) => object(types, types.get(*id), members),
        (Node::Either(id, _), Value::Array(items)) => {
            items
                .iter_mut()
                .filter(|item| !item.is_string())
                .for_each(|item| node(types, &Node::Object(*id), item));
        }
        (Node::List(list), Value::Array(items)) => {
            items.iter_mut().for_each(|item| node(types, &list.items, item));
        }
        (Node::Map(map), Value::Object(members)) => {
            members.values_mut().for_each(|value| node(types, &map.values, value));
        }
        _ => {}
    }
}

fn object(types: &Types, of: &Type, members: &mut Map<String, Value>) {
    members.retain(|name, value| match of.field(name) {
        Some(field) => {
            let kept = field.keeps(value);
            if kept {
                node(types, &field.node, value);
            }
            kept
        }
        None => of.unknown == Unknown::Keep,
    });
    for field in of.fields().iter().filter(|field| field.always) {
        if !members.contains_key(&*field.name) {
            let mut value = Value::Null;
            if !field.pointer {
                node(types, &field.node, &mut value);
            }
            members.insert(field.name.clone().into_owned(), value);
        }
    }
}
