//! Removes empty lists and maps from an object, as a round trip through protobuf does.

use serde_json::Value;

use crate::types::{Node, TypeId, Types};

/// Takes out what a message of the type cannot say. Kubernetes: objects of built-in kinds lie in etcd as messages,
/// so that `"rules": []` is answered as `"rules": null`, even to the client that wrote it.
pub fn forget_empty(types: &Types, id: TypeId, object: &mut Value) {
    walk(types, &Node::Object(id), object);
}

fn walk(types: &Types, node: &Node, value: &mut Value) {
    match (node, value) {
        (Node::Object(id) | Node::AtomicObject(id), Value::Object(members)) => {
            let of = types.get(*id);
            members.retain(|name, value| {
                let Some(field) = of.field(name) else { return true };
                walk(types, &field.node, value);
                field.pointer || !is_empty(&field.node, value)
            });
        }
        (Node::List(list), Value::Array(items)) => {
            items.iter_mut().for_each(|item| walk(types, &list.items, item));
        }
        (Node::Map(map), Value::Object(members)) => {
            members.values_mut().for_each(|member| {
                walk(types, &map.values, member);
                if is_empty(&map.values, member) {
                    *member = Value::Null;
                }
            });
        }
        _ => {}
    }
}

fn is_empty(node: &Node, value: &Value) -> bool {
    match (node, value) {
        (Node::List(_), Value::Array(items)) => items.is_empty(),
        (Node::Map(_), Value::Object(members)) => members.is_empty(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::{Field, List, Map, Type};
    use serde_json::json;

    #[test]
    fn only_empty_lists_and_maps_are_removed() {
        let mut types = Types::default();
        let strings = || Node::List(Box::new(List::atomic(Node::String)));
        let rule = types.add(Type::new("Rule", [Field::new("verbs", strings())]));
        let fields = [
            Field::new("rules", Node::List(Box::new(List::atomic(Node::Object(rule))))),
            Field::new("labels", Node::Map(Box::new(Map { values: Node::String, atomic: false }))),
            Field::new("extra", Node::Map(Box::new(Map { values: strings(), atomic: false }))),
            Field { pointer: true, ..Field::new("rule", Node::Object(rule)) },
            Field::new("raw", Node::Raw),
            Field::new("name", Node::String),
        ];
        let of = types.add(Type::new("Role", fields));
        for (object, expected) in [
            (json!({"rules": [], "labels": {}, "name": ""}), json!({"name": ""})),
            (
                json!({"rules": [{"verbs": []}, {"verbs": ["get"]}]}),
                json!({"rules": [{}, {"verbs": ["get"]}]}),
            ),
            (json!({"rule": {}, "raw": {"a": []}}), json!({"rule": {}, "raw": {"a": []}})),
            (json!({"extra": {"a": [], "b": ["c"]}}), json!({"extra": {"a": null, "b": ["c"]}})),
        ] {
            let mut left = object.clone();
            forget_empty(&types, of, &mut left);
            assert_eq!(left, expected, "{object}");
        }
    }
}
