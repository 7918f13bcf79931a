//! Renders a value by a clause, as cel-go writes it in American English.

use std::fmt::Write as _;

use api::go;

use super::{Clause, Verb, refusal};
use crate::{
    number::format_double,
    time::{format_duration, format_timestamp},
    ty::Type,
    value::Value,
};

const PRECISION: usize = 6;

pub(super) fn clause(clause: Clause, value: &Value<'_>) -> Result<String, String> {
    let Clause { verb, precision } = clause;
    let precision = precision.unwrap_or(PRECISION);
    let text = match (verb, value) {
        (Verb::Text, _) => return text(value),
        (Verb::Decimal, Value::Int(number)) => number.to_string(),
        (Verb::Decimal, Value::Uint(number)) => number.to_string(),
        (Verb::Fixed, _) => fixed(double(verb, value)?, precision),
        (Verb::Scientific, _) => scientific(double(verb, value)?, precision),
        (Verb::Binary, Value::Int(number)) => signed(*number, format!("{:b}", number.unsigned_abs())),
        (Verb::Binary, Value::Uint(number)) => format!("{number:b}"),
        (Verb::Binary, Value::Bool(bit)) => u8::from(*bit).to_string(),
        (Verb::Hex { upper }, _) => {
            let text = hex(value).ok_or_else(|| refusal(verb, value.ty().name()))?;
            if upper { text.to_ascii_uppercase() } else { text }
        }
        (Verb::Octal, Value::Int(number)) => signed(*number, format!("{:o}", number.unsigned_abs())),
        (Verb::Octal, Value::Uint(number)) => format!("{number:o}"),
        _ => return Err(refusal(verb, value.ty().name())),
    };
    Ok(text)
}

/// A value as `%v` of Go would show it.
pub(in crate::library::strings) fn plain(value: &Value<'_>) -> String {
    text(value).unwrap_or_else(|_| value.ty().name().to_owned())
}

fn signed(number: i64, digits: String) -> String {
    if number < 0 { format!("-{digits}") } else { digits }
}

fn hex(value: &Value<'_>) -> Option<String> {
    let bytes = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    Some(match value {
        Value::Int(number) => signed(*number, format!("{:x}", number.unsigned_abs())),
        Value::Uint(number) => format!("{number:x}"),
        Value::String(text) => bytes(text.as_bytes()),
        Value::Bytes(raw) => bytes(raw),
        _ => return None,
    })
}

fn double(verb: Verb, value: &Value<'_>) -> Result<f64, String> {
    match value {
        Value::Double(number) => Ok(*number),
        Value::String(text) => match &**text {
            "NaN" => Ok(f64::NAN),
            "Infinity" => Ok(f64::INFINITY),
            "-Infinity" => Ok(f64::NEG_INFINITY),
            _ => Err(refusal(verb, Type::String.name())),
        },
        _ => Err(refusal(verb, value.ty().name())),
    }
}

fn special(number: f64) -> Option<&'static str> {
    if number.is_nan() {
        return Some("NaN");
    }
    number.is_infinite().then_some(if number > 0.0 { "∞" } else { "-∞" })
}

/// Thousands are set apart by commas.
fn fixed(number: f64, precision: usize) -> String {
    if let Some(special) = special(number) {
        return special.to_owned();
    }
    // cel-go's printer keeps the precision in a byte, and no sign of zero.
    let digits = format!("{:.*}", precision & 0xff, if number == 0.0 { 0.0 } else { number });
    let whole = digits.find('.').unwrap_or(digits.len());
    let mut out = String::with_capacity(digits.len() + whole / 3);
    for (at, c) in digits.char_indices() {
        let before = whole.saturating_sub(at);
        if at > 0 && before > 0 && before % 3 == 0 && !out.ends_with('-') {
            out.push(',');
        }
        out.push(c);
    }
    out
}

/// cel-go: the precision is used as a width, and the exponent has superscript digits.
fn scientific(number: f64, width: usize) -> String {
    let text = match special(number) {
        Some(special) => special.to_owned(),
        None => raised(number),
    };
    let padding = width.saturating_sub(text.chars().count());
    format!("{}{text}", " ".repeat(padding))
}

fn raised(number: f64) -> String {
    let text = format!("{:.PRECISION$e}", if number == 0.0 { 0.0 } else { number });
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let mut out = format!("{mantissa}×10");
    let digits = exponent.strip_prefix('-').inspect(|_| out.push('⁻')).unwrap_or(exponent);
    const RAISED: [char; 10] = ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'];
    let raised = |c: char| c.to_digit(10).map_or(c, |digit| RAISED[digit as usize]);
    out.extend(format!("{digits:0>2}").chars().map(raised));
    out
}

/// `%s` of a top-level value.
fn text(value: &Value<'_>) -> Result<String, String> {
    Ok(match value {
        Value::Null => "null".to_owned(),
        Value::Bool(bool) => bool.to_string(),
        Value::Int(number) => number.to_string(),
        Value::Uint(number) => number.to_string(),
        Value::Double(number) => format_double(*number),
        Value::String(text) => text.to_string(),
        Value::Bytes(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) => text.to_owned(),
            Err(_) => {
                let problem = "invalid UTF-8 in bytes, cannot convert to string";
                return Err(format!("could not convert argument \"{problem}\" to string"));
            }
        },
        Value::Duration(nanoseconds) => format_duration(*nanoseconds),
        Value::Timestamp(moment) => format_timestamp(*moment),
        Value::Type(ty) => ty.name().to_owned(),
        Value::List(list) => {
            let items: Result<Vec<_>, _> = list.iter().map(|item| nested(&item)).collect();
            format!("[{}]", items?.join(", "))
        }
        Value::Map(map) => {
            let mut entries = Vec::with_capacity(map.len());
            for key in map.keys() {
                let value = map.find(&key).unwrap_or(Value::Null);
                entries.push((map_key(&key)?, nested(&value)?));
            }
            entries.sort_by(|(a, _), (b, _)| a.cmp(b));
            let mut out = String::from("{");
            for (index, (key, value)) in entries.iter().enumerate() {
                let comma = if index > 0 { ", " } else { "" };
                write!(out, "{comma}{key}:{value}").expect("writing to a String cannot fail");
            }
            out.push('}');
            out
        }
        _ => return Err(refusal(Verb::Text, value.ty().name())),
    })
}

fn map_key(key: &Value<'_>) -> Result<String, String> {
    match key {
        Value::String(_) | Value::Bool(_) | Value::Int(_) | Value::Uint(_) => nested(key),
        _ => Err(format!("no formatting function for map key of type {}", key.ty().name())),
    }
}

/// `%s` of a value inside a list or a map: as it would be written in an expression.
fn nested(value: &Value<'_>) -> Result<String, String> {
    Ok(match value {
        Value::Double(number) if number.is_finite() => format!("{number:.PRECISION$}"),
        Value::Double(number) => go::quote(&format_double(*number)),
        Value::String(text) => go::quote(text),
        Value::Bytes(_) => format!("b{}", go::quote(&text(value)?)),
        Value::Duration(_) => format!("duration({})", go::quote(&text(value)?)),
        Value::Timestamp(_) => format!("timestamp({})", go::quote(&text(value)?)),
        Value::Optional(_) | Value::Opaque(_) | Value::Object(_) => {
            return Err(format!("no formatting function for {}", value.ty().name()));
        }
        _ => text(value)?,
    })
}
