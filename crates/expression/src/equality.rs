//! Equality and order of values.

use crate::{
    error::Error,
    value::{List, Map, Value},
};
use std::cmp::Ordering;

/// `a == b`. Values of different types are unequal; numbers compare by value.
pub fn equal(a: &Value<'_>, b: &Value<'_>) -> bool {
    equal_counting(a, b, &mut 0)
}

/// As [`equal`], counting the values compared.
pub(crate) fn equal_counting(a: &Value<'_>, b: &Value<'_>, seen: &mut u64) -> bool {
    *seen += 1;
    match (a, b) {
        (Value::Null, Value::Null) => true,
        (Value::Bool(a), Value::Bool(b)) => a == b,
        (Value::String(a), Value::String(b)) => **a == **b,
        (Value::Bytes(a), Value::Bytes(b)) => a == b,
        (Value::Duration(a), Value::Duration(b)) => a == b,
        (Value::Timestamp(a), Value::Timestamp(b)) => a == b,
        (Value::List(a), Value::List(b)) => equal_lists(a, b, seen),
        (Value::Map(a), Value::Map(b)) => equal_maps(a, b, seen),
        (Value::Optional(None), Value::Optional(None)) => true,
        (Value::Optional(Some(a)), Value::Optional(Some(b))) => equal_counting(a, b, seen),
        (Value::Type(a), Value::Type(b)) => a.name() == b.name(),
        (Value::Opaque(a), Value::Opaque(b)) => a.equals(&**b),
        (Value::Object(a), Value::Object(b)) => {
            a.name == b.name
                && a.fields.len() == b.fields.len()
                && a.fields.iter().all(|(name, value)| {
                    b.fields.iter().any(|(other, theirs)| name == other && equal(value, theirs))
                })
        }
        _ => numbers(a, b) == Some(Some(Ordering::Equal)),
    }
}

fn equal_lists(a: &List<'_>, b: &List<'_>, seen: &mut u64) -> bool {
    if a.len() != b.len() {
        return false;
    }
    if let Some(same) = a.equal_as_declared(b) {
        *seen += 2 * a.len() as u64;
        return same;
    }
    a.iter().zip(b.iter()).all(|(a, b)| equal_counting(&a, &b, seen))
}

fn equal_maps(a: &Map<'_>, b: &Map<'_>, seen: &mut u64) -> bool {
    if a.len() != b.len() {
        return false;
    }
    if let Some(same) = a.equal_unknown_fields(b)
        && !same
    {
        return false;
    }
    a.keys().iter().all(|key| match (a.find(key), b.find(key)) {
        (Some(a), Some(b)) => equal_counting(&a, &b, seen),
        (None, None) => true,
        _ => false,
    })
}

/// Which of two values comes first, where the types have an order.
pub fn compare(a: &Value<'_>, b: &Value<'_>) -> Result<Ordering, Error> {
    match (a, b) {
        (Value::Bool(a), Value::Bool(b)) => Ok(a.cmp(b)),
        (Value::String(a), Value::String(b)) => Ok((**a).cmp(&**b)),
        (Value::Bytes(a), Value::Bytes(b)) => Ok(a.cmp(b)),
        (Value::Duration(a), Value::Duration(b)) => Ok(a.cmp(b)),
        (Value::Timestamp(a), Value::Timestamp(b)) => Ok(a.cmp(b)),
        _ => match numbers(a, b) {
            Some(Some(order)) => Ok(order),
            Some(None) => Err(Error::new("NaN values cannot be ordered")),
            None => Err(Error::no_such_overload()),
        },
    }
}

/// The order of two numbers of any types; the inner `None` is for NaN, the outer for no number.
fn numbers(a: &Value<'_>, b: &Value<'_>) -> Option<Option<Ordering>> {
    let whole = |value: &Value<'_>| match value {
        Value::Int(value) => Some(i128::from(*value)),
        Value::Uint(value) => Some(i128::from(*value)),
        _ => None,
    };
    // Kubernetes: cel-go compares a double with an integer as doubles, though that loses digits.
    Some(match (a, b) {
        (Value::Double(a), Value::Double(b)) => a.partial_cmp(b),
        (Value::Double(a), b) => a.partial_cmp(&(whole(b)? as f64)),
        (a, Value::Double(b)) => (whole(a)? as f64).partial_cmp(b),
        (a, b) => Some(whole(a)?.cmp(&whole(b)?)),
    })
}
