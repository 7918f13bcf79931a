//! Whole numbers that do not fit their field in, what Go's conversion to the narrower type leaves of them out.
//!
//! Kubernetes: what comes of a strategic merge patch or an apply is converted from maps to structs, not decoded from
//! JSON. That conversion keeps the low bits of a number; decoding would refuse it.

use serde_json::{Number, Value};

use crate::types::{Node, TypeId, Types};

/// Which fields are cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Widths {
    /// Built-in kinds have fields of 32 bits, custom ones only of 64, which keep what they are given.
    Int32,
    Int32AndInt64,
}

/// Cuts every number of an object of the type.
pub fn integers(types: &Types, of: TypeId, widths: Widths, object: &mut Value) {
    node(types, &Node::Object(of), widths, object);
}

fn node(types: &Types, at: &Node, widths: Widths, value: &mut Value) {
    match (at, value) {
        (Node::Object(id) | Node::AtomicObject(id), Value::Object(members)) => {
            let of = types.get(*id);
            for (name, value) in members {
                if let Some(field) = of.field(name) {
                    node(types, &field.node, widths, value);
                }
            }
        }
        (Node::List(list), Value::Array(items)) => {
            items.iter_mut().for_each(|item| node(types, &list.items, widths, item));
        }
        (Node::Map(map), Value::Object(members)) => {
            members.values_mut().for_each(|value| node(types, &map.values, widths, value));
        }
        (Node::Int32, Value::Number(number)) => {
            if let Some(whole) = whole(number) {
                // The low 32 bits are what Go keeps.
                *number = Number::from(whole as i32);
            }
        }
        (Node::Int64, Value::Number(number)) if widths == Widths::Int32AndInt64 => {
            if let Some(whole) = whole(number) {
                *number = Number::from(whole);
            }
        }
        _ => {}
    }
}

/// The number as an `int64`. Go reads what is too large for one as a float, which converts to the least `int64` on the
/// machines that Kubernetes runs on. Nothing for what has a fraction.
fn whole(number: &Number) -> Option<i64> {
    if let Some(whole) = number.as_i64() {
        return Some(whole);
    }
    let float = number.as_f64().filter(|float| float.trunc() == *float)?;
    let fits = (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&float);
    Some(if fits { float as i64 } else { i64::MIN })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::{Field, List, Type};
    use serde_json::json;

    #[test]
    fn numbers_keep_the_low_bits_that_go_keeps() {
        let mut types = Types::default();
        let list = Node::List(Box::new(List::atomic(Node::Int32)));
        let fields = [Field::new("a", Node::Int32), Field::new("b", Node::Int64), Field::new("c", list)];
        let of = types.add(Type::new("Object", fields));
        for (sent, expected) in [
            (json!({"a": 9_223_372_036_854_775_807_i64}), json!({"a": -1})),
            (json!({"a": 2_147_483_648_i64}), json!({"a": -2_147_483_648_i64})),
            (json!({"a": -2_147_483_649_i64}), json!({"a": 2_147_483_647})),
            (json!({"a": 4_294_967_296_i64}), json!({"a": 0})),
            (json!({"a": 9_223_372_036_854_775_808_u64}), json!({"a": 0})),
            (json!({"a": 1e10, "c": [1e10, 1.5]}), json!({"a": 1_410_065_408, "c": [1_410_065_408, 1.5]})),
            (json!({"a": 1.5, "d": 1e10}), json!({"a": 1.5, "d": 1e10})),
            (json!({"b": 9_223_372_036_854_775_808_u64}), json!({"b": i64::MIN})),
            (json!({"b": 3.0}), json!({"b": 3})),
        ] {
            let mut cut = sent.clone();
            integers(&types, of, Widths::Int32AndInt64, &mut cut);
            assert_eq!(cut, expected, "{sent}");
        }
        let mut custom = json!({"a": 4_294_967_296_i64, "b": 9_223_372_036_854_775_808_u64});
        integers(&types, of, Widths::Int32, &mut custom);
        assert_eq!(custom, json!({"a": 0, "b": 9_223_372_036_854_775_808_u64}));
    }
}
