//! From one type to another: `int(x)`, `string(x)`, `type(x)` and their kin.

use super::A;
use crate::{
    cost::{Range, STRING_TRAVERSAL, scale},
    error::Error,
    library::{Argument, Body, CallEstimate, Function, Outcome, Overload},
    number, time,
    ty::Type,
    value::Value,
};

pub(super) fn functions() -> Vec<Function> {
    use Type::{Bool, Bytes, Double, Duration, Int, String, Timestamp, Uint};
    let to = |result: Type, body: Body, from: Vec<(&'static str, Type)>| {
        from.into_iter()
            .map(|(id, ty)| Overload::global(id, vec![ty], result.clone(), body))
            .collect::<Vec<_>>()
    };
    let charged = |overloads: Vec<Overload>, id: &str, estimate| {
        let charge = |overload: Overload| match overload.id == id {
            true => overload.costs_by_overload(walk_cost).estimated(estimate),
            false => overload,
        };
        overloads.into_iter().map(charge).collect::<Vec<_>>()
    };
    let bytes = to(Bytes, to_bytes, vec![("bytes_to_bytes", Bytes), ("string_to_bytes", String)]);
    let strings = vec![
        ("string_to_string", String),
        ("bool_to_string", Bool),
        ("bytes_to_string", Bytes),
        ("double_to_string", Double),
        ("duration_to_string", Duration),
        ("int64_to_string", Int),
        ("timestamp_to_string", Timestamp),
        ("uint64_to_string", Uint),
    ];
    let ints = vec![
        ("int64_to_int64", Int),
        ("double_to_int64", Double),
        ("duration_to_int64", Duration),
        ("string_to_int64", String),
        ("timestamp_to_int64", Timestamp),
        ("uint64_to_int64", Uint),
    ];
    let uints = vec![
        ("uint64_to_uint64", Uint),
        ("double_to_uint64", Double),
        ("int64_to_uint64", Int),
        ("string_to_uint64", String),
    ];
    let doubles = vec![
        ("double_to_double", Double),
        ("int64_to_double", Int),
        ("string_to_double", String),
        ("uint64_to_double", Uint),
    ];
    let durations =
        vec![("duration_to_duration", Duration), ("int64_to_duration", Int), ("string_to_duration", String)];
    let timestamps = vec![
        ("timestamp_to_timestamp", Timestamp),
        ("int64_to_timestamp", Int),
        ("string_to_timestamp", String),
    ];
    vec![
        Function::new("type", vec![Overload::global("type", vec![A], Type::type_of(A), type_of)]),
        Function::new("dyn", vec![Overload::global("to_dyn", vec![A], Type::Dyn, to_dyn)]),
        Function::new("bool", to(Bool, to_bool, vec![("bool_to_bool", Bool), ("string_to_bool", String)])),
        Function::new("bytes", charged(bytes, "string_to_bytes", to_bytes_estimate)),
        Function::new("double", to(Double, to_double, doubles)),
        Function::new("duration", to(Duration, to_duration, durations)),
        Function::new("int", to(Int, to_int, ints)),
        Function::new(
            "string",
            charged(to(String, to_string, strings), "bytes_to_string", to_string_estimate),
        ),
        Function::new("timestamp", to(Timestamp, to_timestamp, timestamps)),
        Function::new("uint", to(Uint, to_uint, uints)),
    ]
}

fn type_of<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    Ok(Value::Type(args[0].ty()))
}

fn to_dyn<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    Ok(args[0].clone())
}

fn refuse<'a>(value: &Value<'_>, to: &str) -> Outcome<'a> {
    Err(Error::new(format!("type conversion error from '{}' to '{to}'", value.ty().name())))
}

fn to_bool<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    match &args[0] {
        Value::Bool(value) => Ok(Value::Bool(*value)),
        Value::String(text) => match &**text {
            "1" | "t" | "T" | "TRUE" | "true" | "True" => Ok(Value::Bool(true)),
            "0" | "f" | "F" | "FALSE" | "false" | "False" => Ok(Value::Bool(false)),
            _ => refuse(&args[0], "bool"),
        },
        other => refuse(other, "bool"),
    }
}

fn to_bytes<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    match &args[0] {
        Value::Bytes(bytes) => Ok(Value::Bytes(bytes.clone())),
        Value::String(text) => Ok(Value::bytes(text.as_bytes())),
        other => refuse(other, "bytes"),
    }
}

fn to_double<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    match &args[0] {
        Value::Double(value) => Ok(Value::Double(*value)),
        Value::Int(value) => Ok(Value::Double(*value as f64)),
        Value::Uint(value) => Ok(Value::Double(*value as f64)),
        Value::String(text) => match text.parse::<f64>() {
            Ok(value) if value.is_finite() || text.to_ascii_lowercase().contains(['n', 'i']) => {
                Ok(Value::Double(value))
            }
            _ => refuse(&args[0], "double"),
        },
        other => refuse(other, "double"),
    }
}

fn to_duration<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    match &args[0] {
        Value::Duration(nanos) => Ok(Value::Duration(*nanos)),
        Value::String(text) => time::parse_duration(text).map(Value::Duration),
        other => refuse(other, "google.protobuf.Duration"),
    }
}

fn to_int<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    let overflow = || Error::new("integer overflow");
    match &args[0] {
        Value::Int(value) | Value::Duration(value) => Ok(Value::Int(*value)),
        Value::Uint(value) => i64::try_from(*value).map(Value::Int).map_err(|_| overflow()),
        Value::Double(value) if value.is_finite() && value.abs() < 9_223_372_036_854_775_807.0 => {
            Ok(Value::Int(*value as i64))
        }
        Value::Double(_) => Err(overflow()),
        Value::Timestamp(at) => Ok(Value::Int(at.seconds())),
        Value::String(text) => match parse_int(text) {
            Some(value) => Ok(Value::Int(value)),
            None => refuse(&args[0], "int"),
        },
        other => refuse(other, "int"),
    }
}

fn parse_int(text: &str) -> Option<i64> {
    text.parse().ok()
}

fn to_uint<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    let overflow = || Error::new("unsigned integer overflow");
    match &args[0] {
        Value::Uint(value) => Ok(Value::Uint(*value)),
        Value::Int(value) => u64::try_from(*value).map(Value::Uint).map_err(|_| overflow()),
        Value::Double(value) if *value >= 0.0 && *value < 18_446_744_073_709_551_615.0 => {
            Ok(Value::Uint(*value as u64))
        }
        Value::Double(_) => Err(overflow()),
        Value::String(text) => match text.parse().ok().filter(|_| !text.starts_with('+')) {
            Some(value) => Ok(Value::Uint(value)),
            None => refuse(&args[0], "uint"),
        },
        other => refuse(other, "uint"),
    }
}

fn to_string<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    Ok(match &args[0] {
        Value::String(text) => Value::String(text.clone()),
        Value::Bool(value) => Value::string(value.to_string()),
        Value::Int(value) => Value::string(value.to_string()),
        Value::Uint(value) => Value::string(value.to_string()),
        Value::Double(value) => Value::string(number::format_double(*value)),
        Value::Duration(nanos) => Value::string(time::format_duration(*nanos)),
        Value::Timestamp(at) => Value::string(time::format_timestamp(*at)),
        Value::Bytes(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) => Value::string(text),
            Err(_) => return Err(Error::new("invalid UTF-8 in bytes, cannot convert to string")),
        },
        other => return refuse(other, "string"),
    })
}

fn to_timestamp<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    match &args[0] {
        Value::Timestamp(at) => Ok(Value::Timestamp(*at)),
        Value::Int(seconds) => time::from_seconds(*seconds).map(Value::Timestamp),
        Value::String(text) => time::parse_timestamp(text).map(Value::Timestamp),
        other => refuse(other, "google.protobuf.Timestamp"),
    }
}

fn walk_cost(args: &[Value<'_>], _: &Value<'_>) -> u64 {
    scale(args[0].size(), STRING_TRAVERSAL)
}

/// A character is up to four bytes.
fn to_bytes_estimate(args: &[Argument<'_>]) -> Option<CallEstimate> {
    let size = args[0].size;
    let grown = Range { min: size.min, max: size.max.wrapping_mul(4) };
    Some(CallEstimate::sized(size.scaled(STRING_TRAVERSAL), grown))
}

fn to_string_estimate(args: &[Argument<'_>]) -> Option<CallEstimate> {
    let size = args[0].size;
    Some(CallEstimate::sized(size.scaled(STRING_TRAVERSAL), Range { min: size.min / 4, max: size.max }))
}
