//! Compares two values with an operator, as Go's text templates do.

use std::cmp::Ordering;

use serde_json::Value;

use super::PathError;

pub(super) fn holds(left: &Value, operator: &str, right: &Value) -> Result<bool, PathError> {
    match operator {
        "==" => equal(left, right),
        "!=" => equal(left, right).map(|equal| !equal),
        "<" => less(left, right),
        ">" => less(left, right).and_then(|less| Ok(!less && !equal(left, right)?)),
        "<=" => less(left, right).and_then(|less| Ok(less || equal(left, right)?)),
        ">=" => less(left, right).map(|less| !less),
        other => Err(PathError(format!("unrecognized filter operator {other}"))),
    }
}

fn equal(left: &Value, right: &Value) -> Result<bool, PathError> {
    match (left, right) {
        (Value::Bool(left), Value::Bool(right)) => Ok(left == right),
        (Value::String(left), Value::String(right)) => Ok(left == right),
        (Value::Number(left), Value::Number(right)) if left.is_f64() == right.is_f64() => {
            Ok(left.as_f64() == right.as_f64() && left.as_i64() == right.as_i64())
        }
        _ => Err(mismatch(left, right)),
    }
}

fn less(left: &Value, right: &Value) -> Result<bool, PathError> {
    let order = match (left, right) {
        (Value::String(left), Value::String(right)) => Some(left.cmp(right)),
        (Value::Number(left), Value::Number(right)) if left.is_f64() == right.is_f64() => {
            match (left.as_i64(), right.as_i64()) {
                (Some(left), Some(right)) => Some(left.cmp(&right)),
                _ => left.as_f64().partial_cmp(&right.as_f64()),
            }
        }
        _ => return Err(mismatch(left, right)),
    };
    Ok(order == Some(Ordering::Less))
}

fn mismatch(left: &Value, right: &Value) -> PathError {
    let comparable = |value: &Value| value.is_boolean() || value.is_string() || value.is_number();
    let message = if comparable(left) && comparable(right) {
        "incompatible types for comparison"
    } else {
        "invalid type for comparison"
    };
    PathError(message.to_owned())
}
