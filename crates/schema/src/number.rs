//! Numbers without a type, as Go holds them.

use serde_json::{Number, Value};

/// A `float64`. Go writes a whole number without a point, so it reads back as an integer: here it is one from
/// the start. NaN and infinities, which JSON cannot show, are `Null`.
pub(crate) fn double(value: f64) -> Value {
    // Up to here every integer has its own float, and its digits are all that Go writes.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if value.fract() == 0.0 && value.abs() <= EXACT {
        return Value::from(value as i64);
    }
    Number::from_f64(value).map_or(Value::Null, Value::Number)
}

/// Turns every integer above Go's `int64` into the float that Go would read.
pub fn level(value: &mut Value) {
    match value {
        Value::Number(number) if number.as_i64().is_none() && number.is_u64() => {
            let float = number.as_f64().and_then(Number::from_f64);
            float.into_iter().for_each(|float| *number = float);
        }
        Value::Array(items) => items.iter_mut().for_each(level),
        Value::Object(members) => members.values_mut().for_each(level),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
