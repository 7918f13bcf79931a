//! Converts JSON to values, by schema where there is one.

use super::{List, Map, Text, Value};
use crate::{
    shape::{Form, Shape},
    time,
};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::Value as Json;

/// A value that borrows the JSON. Data that does not fit its schema is seen without one.
pub fn view<'a>(json: &'a Json, shape: Option<&'a dyn Shape>) -> Value<'a> {
    let Some(shape) = shape else { return untyped(json) };
    match (shape.form(), json) {
        (Form::Number, Json::Number(number)) => Value::Double(number.as_f64().unwrap_or(f64::NAN)),
        (Form::Duration, Json::String(text)) => {
            time::parse_duration(text).map_or_else(|_| untyped(json), Value::Duration)
        }
        (Form::Date, Json::String(text)) => {
            time::parse_date(text).map_or_else(|| untyped(json), Value::Timestamp)
        }
        (Form::DateTime, Json::String(text)) => {
            time::parse_timestamp(text).map_or_else(|_| untyped(json), Value::Timestamp)
        }
        (Form::Bytes, Json::String(text)) => decode_base64(text).map_or_else(|| untyped(json), Value::bytes),
        (Form::List, Json::Array(items)) => Value::List(List::json(items, Some(shape))),
        (Form::Object | Form::Map | Form::Empty, Json::Object(entries)) => {
            Value::Map(Map::json(entries, Some(shape), shape.is_embedded_resource()))
        }
        _ => untyped(json),
    }
}

/// The root of a resource: `apiVersion`, `kind` and `metadata` are visible whatever the schema says.
pub fn view_resource<'a>(json: &'a Json, shape: &'a dyn Shape) -> Value<'a> {
    match json {
        Json::Object(entries) => Value::Map(Map::json(entries, Some(shape), true)),
        other => view(other, Some(shape)),
    }
}

fn untyped(json: &Json) -> Value<'_> {
    match json {
        Json::Null => Value::Null,
        Json::Bool(value) => Value::Bool(*value),
        Json::Number(number) => match number.as_i64() {
            Some(value) => Value::Int(value),
            None => Value::Double(number.as_f64().unwrap_or(f64::NAN)),
        },
        Json::String(text) => Value::String(Text::Borrowed(text)),
        Json::Array(items) => Value::List(List::json(items, None)),
        Json::Object(entries) => Value::Map(Map::json(entries, None, false)),
    }
}

/// Standard base64 with padding; line breaks are skipped.
fn decode_base64(text: &str) -> Option<Vec<u8>> {
    let digits: Vec<u8> = text.bytes().filter(|byte| !matches!(byte, b'\r' | b'\n')).collect();
    STANDARD.decode(digits).ok()
}
