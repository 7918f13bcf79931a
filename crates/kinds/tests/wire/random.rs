//! Objects made up from the table of types: whatever a type allows must survive every road.

use kinds::types;
use proptest::prelude::*;
use schema::decode::{FieldValidation, decode};
use schema::encode::{encode, normalize};
use schema::proto;
use schema::types::{Field, Node, Other, TypeId};
use serde_json::{Map, Value, json};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn an_object_survives_json_and_protobuf(seed in any::<u64>()) {
        let mut made_up = MadeUp { chance: seed };
        let (id, of) = made_up.type_of_a_kind();
        let object = made_up.object(id, 0);

        let json = encode(types(), id, &object);
        let read = decode(types(), id, &json, FieldValidation::Strict).unwrap().value;
        prop_assert_eq!(&read, &object, "{} through JSON", of);

        let mut normal = object.clone();
        normalize(types(), id, &mut normal);
        prop_assert_eq!(&normal, &serde_json::from_slice::<Value>(&json).unwrap(), "{} in its normal form", of);
        let read = decode(types(), id, &encode(types(), id, &normal), FieldValidation::Strict).unwrap().value;
        prop_assert_eq!(&read, &object, "{} through its normal form", of);

        let message = proto::encode(types(), id, &object);
        let read = proto::decode(types(), id, &message).unwrap();
        prop_assert_eq!(&proto::encode(types(), id, &read), &message, "{} as a message", of);
        if !types().get(id).message().is_empty() {
            prop_assert_eq!(&as_message(id, read), &as_message(id, object), "{} through protobuf", of);
        }
    }
}

/// What protobuf can say of an object: not its kind, nor that of objects inside it, nor that a list is empty.
pub(crate) fn as_message(id: TypeId, mut object: Value) -> Value {
    fn strip(node: &Node, value: &mut Value) {
        match (node, value) {
            (Node::Object(id) | Node::AtomicObject(id), Value::Object(members)) => {
                members.retain(|name, value| {
                    let field = types().get(*id).field(name).unwrap();
                    strip(&field.node, value);
                    field.proto.is_some()
                        && field.keeps(value)
                        && !value.as_array().is_some_and(Vec::is_empty)
                });
            }
            (Node::List(list), Value::Array(items)) => {
                items.iter_mut().for_each(|item| strip(&list.items, item))
            }
            (Node::Map(map), Value::Object(members)) => {
                members.values_mut().for_each(|it| strip(&map.values, it))
            }
            _ => {}
        }
    }
    strip(&Node::Object(id), &mut object);
    object
}

/// Draws objects from one number.
struct MadeUp {
    chance: u64,
}

impl MadeUp {
    fn below(&mut self, limit: usize) -> usize {
        self.chance =
            self.chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.chance >> 33) as usize % limit
    }

    fn pick<T: Clone>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())].clone()
    }

    fn type_of_a_kind(&mut self) -> (TypeId, String) {
        let kinds: Vec<_> = types().iter().filter(|(_, of)| of.kind.is_some()).collect();
        let (id, of) = self.pick(&kinds);
        (id, of.name.to_string())
    }

    /// An object as the decoder would hand it out: nothing in it is empty without need.
    fn object(&mut self, id: TypeId, depth: usize) -> Value {
        let mut members = Map::new();
        for field in types().get(id).fields() {
            if self.below(depth + 2) > 0 || depth > 8 {
                continue;
            }
            let value = self.field(field, depth);
            if field.keeps(&value) {
                members.insert(field.name.to_string(), value);
            }
        }
        Value::Object(members)
    }

    fn field(&mut self, field: &Field, depth: usize) -> Value {
        match &field.node {
            Node::List(list) => (0..self.below(4)).map(|_| self.node(&list.items, depth)).collect(),
            Node::Map(map) => self.map(&map.values, depth),
            node => self.node(node, depth),
        }
    }

    fn map(&mut self, values: &Node, depth: usize) -> Value {
        let keys = ["a", "b<c>", "é", "k8s.io/x"];
        (0..=self.below(2)).map(|_| (self.pick(&keys).to_owned(), self.node(values, depth))).collect()
    }

    fn node(&mut self, node: &Node, depth: usize) -> Value {
        match node {
            Node::String => Value::from(self.pick(&["", "a", "<&>", "日本\n", "\u{2028}\"\\", "\0"])),
            Node::Bool => Value::from(self.below(2) == 0),
            Node::Int32 => Value::from(self.pick(&[0, 1, -1, i32::MAX, i32::MIN])),
            Node::Int64 => Value::from(self.pick(&[0, 1, -1, i64::MAX, i64::MIN])),
            Node::Double => self.pick(&[json!(0), json!(-3), json!(1.5), json!(2.5e-9), json!(1e300)]),
            Node::Bytes => Value::from(self.pick(&["YQ==", "AAEC/w==", "YWJj"])),
            Node::Time => Value::from(self.pick(&["2024-02-29T12:34:56Z", "1969-12-31T23:59:59Z"])),
            Node::MicroTime => {
                Value::from(self.pick(&["2024-02-29T12:34:56.000001Z", "1969-12-31T23:59:59.999999Z"]))
            }
            Node::Quantity => Value::from(self.pick(&["0", "1", "500m", "1Gi", "12e6", "-3k"])),
            Node::IntOrString => self.pick(&[json!(0), json!(-80), json!(""), json!("50%")]),
            Node::Raw | Node::Json => {
                self.pick(&[json!({"b": [1, null, 1.5], "a": "<"}), json!("x"), json!(false), json!(7)])
            }
            Node::FieldsV1 => {
                json!({"f:a": {".": {}, "f:b": {}}, "f:c": {"k:{\"p\":443}": {}, "k:{\"p\":80}": {}}})
            }
            Node::Object(id) | Node::AtomicObject(id) => self.object(*id, depth + 1),
            Node::List(list) => (0..=self.below(2)).map(|_| self.node(&list.items, depth)).collect(),
            Node::Map(map) => self.map(&map.values, depth),
            Node::Either(id, other) => match (other, self.below(2)) {
                (_, 0) => self.object(*id, depth + 1),
                (Other::Bool, _) => Value::from(self.below(2) == 0),
                (Other::List, _) => (0..=self.below(2)).map(|_| self.object(*id, depth + 1)).collect(),
                (Other::Strings, _) => json!(["a", "b"]),
            },
        }
    }
}
