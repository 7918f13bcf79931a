//! Encodes an object as a protobuf message, byte for byte as gogo's generated code.
//!
//! Values that are not pointers in Go are always written, even zeros; pointers, lists and maps only if set.
//! Everything is written from the last field to the first.

use serde_json::{Map, Value};

use super::wire::Writer;
use crate::base64;
use crate::encode::encode_raw;
use crate::types::{Field, List, Node, Other, Slot, Type, TypeId, Types};
use api::time::{Instant, Precision};

/// The message of an object of a type. Types whose [`Type::message`] is empty have none: a `Table`.
#[must_use]
pub fn encode(types: &Types, id: TypeId, value: &Value) -> Vec<u8> {
    let mut encoder = Encoder { types, out: Writer::default() };
    encoder.object(types.get(id), value.as_object());
    encoder.out.finish()
}

/// Encodes an item of a list, whose field number Kubernetes always makes 2.
#[must_use]
pub fn encode_item(types: &Types, id: TypeId, value: &Value) -> Vec<u8> {
    let mut encoder = Encoder { types, out: Writer::default() };
    let mark = encoder.out.mark();
    encoder.object(types.get(id), value.as_object());
    encoder.out.close(ITEMS, mark);
    encoder.out.finish()
}

/// Kubernetes: the field number of `items` in every list.
const ITEMS: u32 = 2;

struct Encoder<'t> {
    types: &'t Types,
    out: Writer,
}

/// The members of an object; `None` for an empty one.
type Members<'v> = Option<&'v Map<String, Value>>;

impl Encoder<'_> {
    fn object(&mut self, of: &Type, members: Members<'_>) {
        self.slots(of, of.message(), members);
    }

    fn slots(&mut self, of: &Type, slots: &[Slot], members: Members<'_>) {
        for slot in slots.iter().rev() {
            match slot {
                Slot::Field(number, at) => self.field(*number, &of.fields()[usize::from(*at)], members),
                Slot::Inline(number, inner) => {
                    let mark = self.out.mark();
                    self.slots(of, inner, members);
                    self.out.close(*number, mark);
                }
            }
        }
    }

    fn field(&mut self, number: u32, field: &Field, members: Members<'_>) {
        let value = members.and_then(|it| it.get(&*field.name)).filter(|value| !value.is_null());
        match (&field.node, value) {
            (Node::List(list), value) => self.list(number, list, value),
            (Node::Map(map), Some(Value::Object(members))) => self.map(number, &map.values, members),
            (Node::Map(_) | Node::Bytes, None) => {}
            (_, None) if field.pointer => {}
            (node, value) => self.value(number, node, value.unwrap_or(&Value::Null)),
        }
    }

    fn list(&mut self, number: u32, list: &List, value: Option<&Value>) {
        let items = value.and_then(Value::as_array).map(Vec::as_slice);
        if !list.wrapped {
            items.unwrap_or_default().iter().rev().for_each(|item| self.value(number, &list.items, item));
        } else if let Some(items) = items {
            let mark = self.out.mark();
            items.iter().rev().for_each(|item| self.value(1, &list.items, item));
            self.out.close(number, mark);
        }
    }

    fn map(&mut self, number: u32, node: &Node, members: &Map<String, Value>) {
        for (key, value) in members.iter().rev() {
            let mark = self.out.mark();
            match node {
                Node::Bytes if value.is_null() => {}
                // Protobuf maps cannot have list values, so these are messages, written even when empty.
                Node::List(list) => {
                    self.list(2, list, Some(value).filter(|it| !it.is_null()).or(Some(&EMPTY)))
                }
                _ => self.value(2, node, value),
            }
            self.out.bytes(1, key.as_bytes());
            self.out.close(number, mark);
        }
    }

    /// One value; `Null` is the zero value of the node.
    fn value(&mut self, number: u32, node: &Node, value: &Value) {
        match node {
            Node::String => self.out.bytes(number, value.as_str().unwrap_or_default().as_bytes()),
            Node::Bool => self.out.varint(number, u64::from(value.as_bool().unwrap_or_default())),
            Node::Int32 | Node::Int64 => self.out.varint(number, value.as_i64().unwrap_or_default() as u64),
            Node::Double => self.out.double(number, value.as_f64().unwrap_or_default()),
            Node::Bytes => {
                let text = value.as_str().unwrap_or_default();
                self.out.bytes(number, &base64::decode(text.as_bytes()).unwrap_or_default());
            }
            _ => {
                let mark = self.out.mark();
                self.message(node, value);
                self.out.close(number, mark);
            }
        }
    }

    /// The content of a value that is a message.
    fn message(&mut self, node: &Node, value: &Value) {
        match node {
            Node::Object(id) | Node::AtomicObject(id) => self.object(self.types.get(*id), value.as_object()),
            Node::Time => self.time(value, Precision::Seconds),
            Node::MicroTime => self.time(value, Precision::Micros),
            Node::Quantity => self.out.bytes(1, value.as_str().unwrap_or("0").as_bytes()),
            Node::IntOrString => {
                let (text, number) = (value.as_str(), value.as_i64());
                self.out.bytes(3, text.unwrap_or_default().as_bytes());
                self.out.varint(2, number.unwrap_or_default() as u64);
                self.out.varint(1, u64::from(text.is_some()));
            }
            Node::Raw | Node::FieldsV1 | Node::Json if value.is_null() => {}
            Node::Raw | Node::FieldsV1 | Node::Json => self.out.bytes(1, &encode_raw(node, value)),
            Node::Either(id, other) => self.either(*id, *other, value),
            _ => {}
        }
    }

    fn time(&mut self, value: &Value, precision: Precision) {
        let read = value.as_str().and_then(|text| Instant::parse(text, precision).ok());
        let Some(instant) = read.filter(|instant| !instant.is_zero()) else { return };
        let nanos = match precision {
            // Kubernetes: a fraction that JSON drops is dropped here too.
            Precision::Seconds => 0,
            Precision::Micros => instant.nanos / 1000 * 1000,
        };
        self.out.varint(2, u64::from(nanos));
        self.out.varint(1, instant.seconds as u64);
    }

    fn either(&mut self, id: TypeId, other: Other, value: &Value) {
        let schema = Node::Object(id);
        match (other, value) {
            (Other::Bool, Value::Object(_)) => {
                self.value(2, &schema, value);
                self.out.varint(1, 1);
            }
            (Other::Bool, _) => self.out.varint(1, u64::from(value.as_bool().unwrap_or_default())),
            (_, Value::Object(_)) => self.value(1, &schema, value),
            (Other::List, Value::Array(items)) => {
                items.iter().rev().for_each(|it| self.value(2, &schema, it))
            }
            (Other::Strings, Value::Array(items)) => {
                items.iter().rev().for_each(|it| self.value(2, &Node::String, it));
            }
            _ => {}
        }
    }
}

static EMPTY: Value = Value::Array(Vec::new());
