//! Floating-point numbers as JSON shows them.

use serde_json::{Number, Value};

/// A `float64`. Go writes a whole number without a point, so it reads back as an integer: here it is one from
/// the start. What JSON cannot show is `Null`.
pub(crate) fn double(value: f64) -> Value {
    // Up to here every whole number has a float of its own, and its digits are all that Go writes.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if value.fract() == 0.0 && value.abs() <= EXACT {
        return Value::from(value as i64);
    }
    Number::from_f64(value).map_or(Value::Null, Value::Number)
}
