//! Encodes an object as JSON, byte for byte as Go's encoder writes a struct of that type.
//!
//! Members are in the order of the type, map keys sorted. Empty values are omitted, unless the field is a
//! pointer or has no `omitempty`; fields without `omitempty` appear even if the object lacks them. There is
//! no newline at the end.
//!
//! ```
//! use schema::encode::encode;
//! use schema::types::{Field, Node, Type, Types};
//!
//! let mut types = Types::default();
//! let status = types.add(Type::new("example.v1.DiskStatus", vec![Field::new("phase", Node::String)]));
//! let status = Field { always: true, ..Field::new("status", Node::Object(status)) };
//! let disk = types.add(Type::new("example.v1.Disk", vec![Field::new("name", Node::String), status]));
//!
//! let json = encode(&types, disk, &serde_json::json!({"name": "<a>"}));
//! assert_eq!(String::from_utf8(json)?, r#"{"name":"\u003ca\u003e","status":{}}"#);
//! # Ok::<(), std::string::FromUtf8Error>(())
//! ```

use serde_json::{Map, Value};

use crate::types::{Field, Node, Type, TypeId, Types, Unknown};

mod field_order;
mod normal;
mod text;

pub use normal::normalize;
pub(crate) use text::Escape;
use text::{push_key, push_scalar, push_string};

/// The JSON of an object of a type.
#[must_use]
pub fn encode(types: &Types, id: TypeId, value: &Value) -> Vec<u8> {
    let mut out = Vec::with_capacity(1024);
    encode_into(types, id, value, &mut out);
    out
}

/// Appends the JSON to `out`.
pub fn encode_into(types: &Types, id: TypeId, value: &Value, out: &mut Vec<u8>) {
    JsonWriter { types, out, escape: Escape::Html }.node(&Node::Object(id), value);
}

/// The JSON of an object without a type: every key sorted, as Go writes a custom resource.
#[must_use]
pub fn encode_any(value: &Value) -> Vec<u8> {
    let mut out = Vec::with_capacity(1024);
    JsonWriter { types: &Types::default(), out: &mut out, escape: Escape::Html }.any(value);
    out
}

/// The JSON inside a protobuf message: as [`encode_any`], but `<`, `>` and `&` are not escaped.
pub(crate) fn encode_raw(node: &Node, value: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    JsonWriter { types: &Types::default(), out: &mut out, escape: Escape::Plain }.node(node, value);
    out
}

struct JsonWriter<'a> {
    types: &'a Types,
    out: &'a mut Vec<u8>,
    escape: Escape,
}

/// Objects of up to this many fields, all built-in ones, are sorted without allocating.
const FEW: usize = 64;

impl JsonWriter<'_> {
    fn node(&mut self, node: &Node, value: &Value) {
        match (node, value) {
            (Node::Object(id) | Node::AtomicObject(id), Value::Object(members)) => {
                self.object(self.types.get(*id), members);
            }
            (Node::Object(id) | Node::AtomicObject(id), Value::Null) => {
                self.object(self.types.get(*id), &Map::new());
            }
            (Node::Either(id, _), Value::Object(_)) => self.node(&Node::Object(*id), value),
            (Node::Either(id, _), Value::Array(items)) => self.list(&Node::Object(*id), items),
            (Node::List(list), Value::Array(items)) => self.list(&list.items, items),
            (Node::Map(map), Value::Object(members)) => self.map(&map.values, members),
            (Node::FieldsV1, Value::Object(members)) => self.fields(members),
            (_, Value::Null) => self.any(&node.zero()),
            _ => self.any(value),
        }
    }

    fn object(&mut self, of: &Type, members: &Map<String, Value>) {
        let (mut few, mut many) = ([None; FEW], Vec::new());
        let in_order: &mut [Option<&Value>] = match of.fields().len() {
            count if count <= FEW => &mut few[..count],
            count => {
                many.resize(count, None);
                &mut many
            }
        };
        let mut kept = Vec::new();
        for (name, value) in members {
            match of.position(name) {
                Some(at) => in_order[at] = Some(value),
                None if of.unknown == Unknown::Keep => kept.push((name, value)),
                None => {}
            }
        }
        self.out.push(b'{');
        let mut first = true;
        for (field, value) in of.fields().iter().zip(in_order) {
            match value.filter(|value| field.keeps(value)) {
                Some(value) => {
                    push_key(self.out, &mut first, &field.name, self.escape);
                    self.node(&field.node, value);
                }
                None if field.always => {
                    push_key(self.out, &mut first, &field.name, self.escape);
                    self.absent(field);
                }
                None => {}
            }
        }
        for (name, value) in kept {
            push_key(self.out, &mut first, name, self.escape);
            self.any(value);
        }
        self.out.push(b'}');
    }

    /// Writes a field without `omitempty` that the object lacks.
    fn absent(&mut self, field: &Field) {
        if field.pointer {
            self.out.extend_from_slice(b"null");
        } else {
            self.node(&field.node, &Value::Null);
        }
    }

    fn list(&mut self, node: &Node, items: &[Value]) {
        self.out.push(b'[');
        for (nth, item) in items.iter().enumerate() {
            if nth > 0 {
                self.out.push(b',');
            }
            self.node(node, item);
        }
        self.out.push(b']');
    }

    fn map(&mut self, node: &Node, members: &Map<String, Value>) {
        self.out.push(b'{');
        let mut first = true;
        for (key, value) in members {
            push_key(self.out, &mut first, key, self.escape);
            self.node(node, value);
        }
        self.out.push(b'}');
    }

    /// A `FieldsV1`, which has its own order.
    fn fields(&mut self, members: &Map<String, Value>) {
        self.out.push(b'{');
        let mut first = true;
        for (name, value) in field_order::sorted(members) {
            push_key(self.out, &mut first, name, self.escape);
            self.node(&Node::FieldsV1, value);
        }
        self.out.push(b'}');
    }

    fn any(&mut self, value: &Value) {
        match value {
            Value::Array(items) => self.list(&Node::Json, items),
            Value::Object(members) => self.map(&Node::Json, members),
            Value::String(text) => push_string(self.out, text, self.escape),
            scalar => push_scalar(self.out, scalar),
        }
    }
}
