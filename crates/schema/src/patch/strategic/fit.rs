//! Converts the result of a strategic merge patch to its type, with the errors of Go's converter from maps to
//! structs.
//!
//! Kubernetes: the result of such a patch is never encoded as JSON, so the errors are the converter's, not
//! the JSON decoder's.

use serde_json::{Number, Value};

use crate::base64;
use crate::encode::encode_any;
use crate::patch::print;
use crate::types::{Field, Node, TypeId, Types, Unknown};
use api::time::{Instant, Precision};

/// Converts an object as Go converts maps and lists to the type: integers are truncated to the size of their
/// type. Returns the unknown members, sorted; or why the object does not fit the type. Types with a custom
/// unmarshaler (quantities, times) are left to the decoder if they can be read at all.
pub fn convert(types: &Types, of: TypeId, object: &mut Value) -> Result<Vec<String>, String> {
    let mut unknown = Vec::new();
    Converter { types, unknown: &mut unknown }.object(of, object, "")?;
    unknown.sort_unstable();
    Ok(unknown)
}

struct Converter<'a> {
    types: &'a Types,
    unknown: &'a mut Vec<String>,
}

impl Converter<'_> {
    fn object(&mut self, id: TypeId, value: &mut Value, path: &str) -> Result<(), String> {
        let Value::Object(members) = value else {
            return Err(format!("cannot restore struct from: {}", go_kind(value)));
        };
        let of = self.types.get(id);
        let below = |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
        for field in of.fields() {
            if let Some(value) = members.get_mut(&*field.name) {
                self.node(&field.node, Some(field), value, &below(&field.name))?;
            }
        }
        if of.unknown == Unknown::Drop {
            let strays = members.keys().filter(|name| of.field(name).is_none());
            self.unknown.extend(strays.map(|name| format!("unknown field \"{}\"", below(name))));
        }
        Ok(())
    }

    /// `field` is the field that the node belongs to, unless the node is an item or entry.
    fn node(
        &mut self,
        node: &Node,
        field: Option<&Field>,
        value: &mut Value,
        path: &str,
    ) -> Result<(), String> {
        if value.is_null() {
            return Ok(());
        }
        match (node, &mut *value) {
            (Node::Object(id) | Node::AtomicObject(id), _) => self.object(*id, value, path),
            (Node::List(list), Value::Array(items)) => {
                let mut items = items.iter_mut().enumerate();
                items
                    .try_for_each(|(nth, item)| self.node(&list.items, None, item, &format!("{path}[{nth}]")))
            }
            (Node::Bytes, Value::String(text)) => {
                let read = base64::decode(text.as_bytes()).map(drop);
                read.map_err(|error| format!("error decoding from json: {error}"))
            }
            (Node::List(_) | Node::Bytes, _) => Err(format!("cannot restore slice from {}", go_kind(value))),
            // Kubernetes: map keys are not part of the path.
            (Node::Map(map), Value::Object(members)) => {
                members.values_mut().try_for_each(|member| self.node(&map.values, None, member, path))
            }
            (Node::Map(_), _) => Err(format!("cannot restore map from {}", go_kind(value))),
            _ => scalar(node, field, value),
        }
    }
}

fn scalar(node: &Node, field: Option<&Field>, value: &mut Value) -> Result<(), String> {
    let name = match node {
        Node::String => "string",
        Node::Bool => "bool",
        Node::Int32 => "int32",
        Node::Int64 => "int64",
        Node::Double => "float64",
        Node::Time => return time(value, Precision::Seconds),
        Node::MicroTime => return time(value, Precision::Micros),
        Node::IntOrString if !value.is_string() => {
            let is_int = value.as_i64().is_some_and(|number| i32::try_from(number).is_ok());
            return if is_int { Ok(()) } else { Err(unread(value, "int32")) };
        }
        _ => return Ok(()),
    };
    let named = field.and_then(|field| field.go.as_ref()?.type_name.as_deref()).unwrap_or(name);
    let cannot = |value: &Value| Err(format!("cannot convert {} to {named}", print::type_name(value)));
    match (node, &*value) {
        (Node::String, Value::String(_)) | (Node::Bool, Value::Bool(_)) => Ok(()),
        // Go's reflection could convert an integer to the character of that number; the converter prevents
        // it.
        (Node::String, Value::Number(number)) if number.is_i64() => cannot(value),
        (Node::Double, Value::Number(_)) => Ok(()),
        (Node::Int32 | Node::Int64, Value::Number(number)) => {
            let Some(whole) = whole(number) else { return cannot(value) };
            let is_short = matches!(node, Node::Int32);
            *value = if is_short { Value::from(whole as i32) } else { Value::from(whole) };
            Ok(())
        }
        _ => Err(format!("unrecognized type: {name}")),
    }
}

/// A number as Go converts it to an integer: a float that is too large becomes the smallest one.
fn whole(number: &Number) -> Option<i64> {
    const LIMIT: f64 = 9_223_372_036_854_775_808.0;
    number.as_i64().or_else(|| {
        let float = number.as_f64().filter(|float| float.trunc() == *float)?;
        Some(if (-LIMIT..LIMIT).contains(&float) { float as i64 } else { i64::MIN })
    })
}

fn time(value: &Value, precision: Precision) -> Result<(), String> {
    match value {
        Value::String(text) => Instant::parse(text, precision).map(drop).map_err(|bad| bad.0),
        other => Err(unread(other, "string")),
    }
}

/// The error of Go's decoder for a value with a custom unmarshaler.
fn unread(value: &Value, into: &str) -> String {
    let found = match value {
        Value::Number(number) if into == "int32" => format!("number {}", encoded(number)),
        Value::Number(_) => "number".to_owned(),
        Value::Bool(_) => "bool".to_owned(),
        Value::Array(_) => "array".to_owned(),
        _ => "object".to_owned(),
    };
    format!("json: cannot unmarshal {found} into Go value of type {into}")
}

fn encoded(number: &Number) -> String {
    String::from_utf8(encode_any(&Value::Number(number.clone()))).unwrap_or_default()
}

/// The `reflect.Kind` of the value.
fn go_kind(value: &Value) -> &'static str {
    match value {
        Value::Array(_) => "slice",
        Value::Object(_) => "map",
        other => print::type_name(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::{GoNames, List, Map, Type};
    use serde_json::json;

    #[test]
    fn objects_convert_as_in_go() {
        let mut types = Types::default();
        let policy = Field {
            go: Some(Box::new(GoNames { type_name: Some("v1.PullPolicy".into()), within: None })),
            ..Field::new("policy", Node::String)
        };
        let item = types.add(Type::new("Item", [policy, Field::new("port", Node::Int32)]));
        let list = Node::List(Box::new(List::atomic(Node::Object(item))));
        let labels = Node::Map(Box::new(Map { values: Node::String, atomic: false }));
        let fields = [Field::new("items", list), Field::new("labels", labels), Field::new("on", Node::Bool)];
        let of = types.add(Type::new("Object", fields));
        for (object, expected) in [
            (json!({"items": [{"port": 1}], "labels": {"a": "b"}, "on": null}), Ok(vec![])),
            (
                json!({"z": 1, "items": [{}, {"prt": 1}]}),
                Ok(vec!["unknown field \"items[1].prt\"", "unknown field \"z\""]),
            ),
            (json!({"items": [{"port": "x"}]}), Err("unrecognized type: int32")),
            (json!({"items": [{"port": 1.5}]}), Err("cannot convert float64 to int32")),
            (json!({"items": [{"policy": 1}]}), Err("cannot convert int64 to v1.PullPolicy")),
            (json!({"items": ["x"]}), Err("cannot restore struct from: string")),
            (json!({"items": {}}), Err("cannot restore slice from map")),
            (json!({"labels": [1]}), Err("cannot restore map from slice")),
            (json!({"labels": {"a": 1}}), Err("cannot convert int64 to string")),
            (json!({"on": "yes"}), Err("unrecognized type: bool")),
        ] {
            let found = convert(&types, of, &mut object.clone());
            let expected = expected.map_err(str::to_owned);
            let expected = expected.map(|texts| texts.into_iter().map(str::to_owned).collect());
            assert_eq!(found, expected, "{object}");
        }
    }

    #[test]
    fn numbers_are_truncated_to_the_size_of_their_type() {
        let mut types = Types::default();
        let fields = [
            Field::new("short", Node::Int32),
            Field::new("long", Node::Int64),
            Field::new("at", Node::Time),
            Field::new("port", Node::IntOrString),
        ];
        let of = types.add(Type::new("Object", fields));
        for (mut object, expected) in [
            (json!({"short": 2_147_483_648_i64, "long": -1.0}), Ok(json!({"short": i32::MIN, "long": -1}))),
            (json!({"short": i64::MAX}), Ok(json!({"short": -1}))),
            (json!({"short": 1e30, "long": 1e30}), Ok(json!({"short": 0, "long": i64::MIN}))),
            (json!({"at": {}}), Err("json: cannot unmarshal object into Go value of type string")),
            (
                json!({"port": 2_147_483_648_i64}),
                Err("json: cannot unmarshal number 2147483648 into Go value of type int32"),
            ),
            (json!({"port": 80}), Ok(json!({"port": 80}))),
        ] {
            let found = convert(&types, of, &mut object).map(|_| object.clone());
            assert_eq!(found, expected.map_err(str::to_owned), "{object}");
        }
    }
}
