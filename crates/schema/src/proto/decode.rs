//! Decodes a protobuf message into an object.

use serde_json::{Map, Value};

use super::ProtoError;
use super::wire::{Payload, Reader};
use crate::base64;
use crate::decode::{MAX_VALUES, decode_raw};
use crate::depth::MAX_DEPTH;
use crate::number::double;
use crate::types::{List, Node, Other, Slot, Type, TypeId, Types};
use api::time::{Instant, Precision};

/// Decodes a message of a type. Unknown fields are skipped.
pub fn decode(types: &Types, id: TypeId, message: &[u8]) -> Result<Value> {
    let mut members = Map::new();
    Decoder { types, depth: 0, values: 0 }.object(types.get(id), message, &mut members)?;
    Ok(Value::Object(members))
}

struct Decoder<'t> {
    types: &'t Types,
    depth: usize,
    /// Items and entries so far.
    values: usize,
}

type Result<T> = std::result::Result<T, ProtoError>;

impl Decoder<'_> {
    fn object(&mut self, of: &Type, message: &[u8], members: &mut Map<String, Value>) -> Result<()> {
        if self.depth == MAX_DEPTH {
            return Err(ProtoError::TooDeep(MAX_DEPTH));
        }
        self.depth += 1;
        self.slots(of, of.message(), message, members)?;
        self.depth -= 1;
        Ok(())
    }

    fn slots(
        &mut self,
        of: &Type,
        slots: &[Slot],
        message: &[u8],
        members: &mut Map<String, Value>,
    ) -> Result<()> {
        let mut reader = Reader::new(message);
        while let Some((number, payload)) = reader.field(&of.name)? {
            let Ok(at) = slots.binary_search_by_key(&number, Slot::number) else { continue };
            match &slots[at] {
                Slot::Field(_, at) => {
                    let field = &of.fields()[usize::from(*at)];
                    // A field that is repeated adds to its value.
                    let mut slot = match field.node {
                        Node::Object(_) | Node::AtomicObject(_) | Node::List(_) | Node::Map(_) => {
                            members.remove(&*field.name).unwrap_or_default()
                        }
                        _ => Value::Null,
                    };
                    self.field(&field.node, &payload, &mut slot)
                        .map_err(|error| name_field(error, &field.name))?;
                    if field.keeps(&slot) {
                        members.insert(field.name.clone().into_owned(), slot);
                    } else {
                        members.remove(&*field.name);
                    }
                }
                Slot::Inline(_, inner) => {
                    let Payload::Bytes(message) = payload else {
                        return Err(ProtoError::WrongWireType(
                            payload.wire_type(),
                            of.short_name().to_owned(),
                        ));
                    };
                    self.slots(of, inner, message, members)?;
                }
            }
        }
        Ok(())
    }

    fn field(&mut self, node: &Node, payload: &Payload<'_>, slot: &mut Value) -> Result<()> {
        match (node, payload) {
            (Node::List(list), _) => self.items(list, payload, slot),
            (Node::Map(map), Payload::Bytes(entry)) => self.entry(&map.values, entry, slot),
            _ => self.value(node, payload, slot),
        }
    }

    fn items(&mut self, list: &List, payload: &Payload<'_>, slot: &mut Value) -> Result<()> {
        if !slot.is_array() {
            *slot = Value::Array(Vec::new());
        }
        let Value::Array(items) = slot else { return Ok(()) };
        let scalar = matches!(list.items, Node::Int32 | Node::Int64 | Node::Bool);
        match payload {
            Payload::Bytes(message) if list.wrapped => {
                let mut reader = Reader::new(message);
                while let Some((number, payload)) = reader.field("items")? {
                    if number == 1 {
                        items.push(self.item(&list.items, &payload)?);
                    }
                }
            }
            Payload::Bytes(packed) if scalar => {
                let mut reader = Reader::new(packed);
                while !reader.is_empty() {
                    let payload = Payload::Varint(reader.varint()?);
                    items.push(self.item(&list.items, &payload)?);
                }
            }
            _ => items.push(self.item(&list.items, payload)?),
        }
        Ok(())
    }

    /// A value of a list or map; an absent one is the zero value.
    fn item(&mut self, node: &Node, payload: &Payload<'_>) -> Result<Value> {
        self.values += 1;
        if self.values > MAX_VALUES {
            return Err(ProtoError::TooManyValues(MAX_VALUES));
        }
        let mut item = Value::Null;
        self.field(node, payload, &mut item)?;
        Ok(if item.is_null() { node.zero() } else { item })
    }

    fn entry(&mut self, node: &Node, entry: &[u8], slot: &mut Value) -> Result<()> {
        // An entry without a value holds an empty one.
        let value = if matches!(node, Node::List(_)) { Value::Array(Vec::new()) } else { node.zero() };
        let (mut key, mut value) = (String::new(), value);
        let mut reader = Reader::new(entry);
        while let Some((number, payload)) = reader.field("entry")? {
            match (number, payload) {
                (1, Payload::Bytes(bytes)) => key = text(bytes),
                (2, payload) => value = self.item(node, &payload)?,
                _ => {}
            }
        }
        if !slot.is_object() {
            *slot = Value::Object(Map::new());
        }
        if let Value::Object(members) = slot {
            members.insert(key, value);
        }
        Ok(())
    }

    fn value(&mut self, node: &Node, payload: &Payload<'_>, slot: &mut Value) -> Result<()> {
        match (node, payload) {
            (Node::String, Payload::Bytes(bytes)) => *slot = Value::String(text(bytes)),
            (Node::Bytes, Payload::Bytes(bytes)) => *slot = Value::String(base64::encode(bytes)),
            (Node::Bool, Payload::Varint(value)) => *slot = Value::Bool(*value != 0),
            (Node::Int32, Payload::Varint(value)) => *slot = Value::from(*value as i32),
            (Node::Int64, Payload::Varint(value)) => *slot = Value::from(*value as i64),
            (Node::Double, Payload::Fixed64(bits)) => *slot = double(f64::from_bits(*bits)),
            (Node::String | Node::Bytes | Node::Bool | Node::Int32 | Node::Int64 | Node::Double, _) => {
                return Err(ProtoError::WrongWireType(payload.wire_type(), String::new()));
            }
            (_, Payload::Bytes(message)) => self.message(node, message, slot)?,
            _ => return Err(ProtoError::WrongWireType(payload.wire_type(), String::new())),
        }
        Ok(())
    }

    fn message(&mut self, node: &Node, message: &[u8], slot: &mut Value) -> Result<()> {
        match node {
            Node::Object(id) | Node::AtomicObject(id) => {
                if !slot.is_object() {
                    *slot = Value::Object(Map::new());
                }
                if let Value::Object(members) = slot {
                    self.object(self.types.get(*id), message, members)?;
                }
            }
            Node::Time => *slot = time(message, Precision::Seconds)?,
            Node::MicroTime => *slot = time(message, Precision::Micros)?,
            Node::Quantity => *slot = quantity(message)?,
            Node::IntOrString => *slot = int_or_string(message)?,
            Node::Raw | Node::FieldsV1 | Node::Json => *slot = raw(message)?,
            Node::Either(id, other) => *slot = self.either(*id, *other, message)?,
            _ => {}
        }
        Ok(())
    }

    fn either(&mut self, id: TypeId, other: Other, message: &[u8]) -> Result<Value> {
        let mut found = if other == Other::Bool { Value::Bool(false) } else { Value::Null };
        let mut reader = Reader::new(message);
        while let Some((number, payload)) = reader.field("JSONSchemaProps")? {
            match (other, number) {
                (Other::Bool, 1) => self.value(&Node::Bool, &payload, &mut found)?,
                (Other::Bool, 2) | (_, 1) => found = self.item(&Node::Object(id), &payload)?,
                (Other::List, 2) => self.items(&List::atomic(Node::Object(id)), &payload, &mut found)?,
                (Other::Strings, 2) => self.items(&List::atomic(Node::String), &payload, &mut found)?,
                _ => {}
            }
        }
        Ok(found)
    }
}

fn name_field(error: ProtoError, name: &str) -> ProtoError {
    match error {
        ProtoError::WrongWireType(wire_type, field) if field.is_empty() => {
            ProtoError::WrongWireType(wire_type, name.to_owned())
        }
        other => other,
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Kubernetes: an empty message is no time, and `Time` drops the fraction, though the message has one.
fn time(message: &[u8], precision: Precision) -> Result<Value> {
    if message.is_empty() {
        return Ok(Value::Null);
    }
    let mut instant = Instant { seconds: 0, nanos: 0 };
    let mut reader = Reader::new(message);
    while let Some((number, payload)) = reader.field("Timestamp")? {
        match (number, payload) {
            (1, Payload::Varint(seconds)) => instant.seconds = seconds as i64,
            (2, Payload::Varint(nanos)) if precision == Precision::Micros => {
                instant.nanos = u32::try_from(nanos).unwrap_or_default().min(999_999_999);
            }
            _ => {}
        }
    }
    if instant.is_zero() {
        return Ok(Value::Null);
    }
    Ok(Value::String(instant.format(precision)))
}

fn quantity(message: &[u8]) -> Result<Value> {
    let mut found = String::from("0");
    let mut reader = Reader::new(message);
    while let Some((number, payload)) = reader.field("Quantity")? {
        if let (1, Payload::Bytes(bytes)) = (number, payload) {
            let read = text(bytes).parse::<api::quantity::Quantity>();
            found = read.map_err(|error| ProtoError::BadValue(error.to_string()))?.to_string();
        }
    }
    Ok(Value::String(found))
}

fn int_or_string(message: &[u8]) -> Result<Value> {
    let (mut is_text, mut number, mut string) = (false, 0, String::new());
    let mut reader = Reader::new(message);
    while let Some((field, payload)) = reader.field("IntOrString")? {
        match (field, payload) {
            (1, Payload::Varint(sort)) => is_text = sort != 0,
            (2, Payload::Varint(value)) => number = value as i32,
            (3, Payload::Bytes(bytes)) => string = text(bytes),
            _ => {}
        }
    }
    Ok(if is_text { Value::String(string) } else { Value::from(number) })
}

fn raw(message: &[u8]) -> Result<Value> {
    let mut found = Value::Null;
    let mut reader = Reader::new(message);
    while let Some((number, payload)) = reader.field("raw")? {
        match (number, payload) {
            (1, Payload::Bytes(json)) if !json.is_empty() => {
                found = decode_raw(json).map_err(|error| ProtoError::BadValue(error.to_string()))?;
            }
            _ => {}
        }
    }
    Ok(found)
}
