//! Resolves scalars of YAML 1.1 as go-yaml does.

use serde_json::{Number, Value};

use crate::base64;

/// A scalar without quotes or tag.
pub(super) fn plain(text: &str) -> Result<Value, String> {
    Ok(match text {
        "" | "~" | "null" | "Null" | "NULL" => Value::Null,
        "y" | "Y" | "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => {
            Value::Bool(true)
        }
        "n" | "N" | "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => {
            Value::Bool(false)
        }
        ".nan" | ".NaN" | ".NAN" => return Err("json: unsupported value: NaN".to_owned()),
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => {
            return Err("json: unsupported value: +Inf".to_owned());
        }
        "-.inf" | "-.Inf" | "-.INF" => return Err("json: unsupported value: -Inf".to_owned()),
        _ => number(text).unwrap_or_else(|| Value::from(text)),
    })
}

/// A scalar with a tag.
pub(super) fn tagged(text: &str, tag: &str) -> Result<Value, String> {
    let wrong = || format!("cannot decode `{text}` as a !!{tag}");
    let value = match tag {
        "bool" | "int" | "float" | "null" => plain(text)?,
        "binary" => {
            let bytes =
                base64::decode(text.as_bytes()).map_err(|_| "!!binary value contains invalid base64 data")?;
            return Ok(Value::String(String::from_utf8_lossy(&bytes).into_owned()));
        }
        _ => return Ok(Value::from(text)),
    };
    let fits = match tag {
        "bool" => value.is_boolean(),
        "int" => value.is_i64() || value.is_u64(),
        "float" => value.is_number(),
        _ => value.is_null(),
    };
    if fits { Ok(value) } else { Err(wrong()) }
}

/// A key as text, if JSON allows it.
pub(super) fn key(value: Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text),
        Value::Bool(set) => Some(set.to_string()),
        Value::Number(number) if number.is_f64() => number.as_f64().map(|float| (float as f32).to_string()),
        Value::Number(number) => Some(number.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

/// Kubernetes: go-yaml quotes a time, though it reads it as text.
pub(super) fn is_time(text: &str) -> bool {
    let is_number = |part: &str, long: std::ops::RangeInclusive<usize>| {
        long.contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_digit())
    };
    let (date, time) = match text.find(['T', 't', ' ']) {
        Some(at) => (&text[..at], Some(&text[at + 1..])),
        None => (text, None),
    };
    let [year, month, day] = date.split('-').collect::<Vec<_>>()[..] else { return false };
    let is_date = is_number(year, 4..=4) && is_number(month, 1..=2) && is_number(day, 1..=2);
    is_date && time.is_none_or(|time| time.trim_start().split(':').count() >= 3)
}

/// `1:30`: a base 60 number in YAML 1.1.
pub(super) fn is_base_60(text: &str) -> bool {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let mut parts = whole.split(':');
    let is_first = parts
        .next()
        .is_some_and(|first| !first.is_empty() && first.bytes().all(|b| b.is_ascii_digit() || b == b'_'));
    let is_sixty = |part: &str| {
        (1..=2).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_digit()) && part < "60"
            || part.len() == 1 && part.bytes().all(|byte| byte.is_ascii_digit())
    };
    let rest: Vec<_> = parts.collect();
    is_first
        && !rest.is_empty()
        && rest.into_iter().all(is_sixty)
        && fraction.bytes().all(|byte| byte.is_ascii_digit() || byte == b'_')
}

fn number(text: &str) -> Option<Value> {
    match text.as_bytes().first()? {
        b'.' => float(text),
        b'0'..=b'9' | b'+' | b'-' => {
            let plain = text.replace('_', "");
            integer(&plain).or_else(|| is_float(&plain).then(|| float(&plain)).flatten())
        }
        _ => None,
    }
}

/// Go's `ParseInt` with base 0, then `ParseUint`.
fn integer(text: &str) -> Option<Value> {
    let (negative, digits) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    let prefixed =
        |prefix: &str| digits.get(..2).filter(|it| it.eq_ignore_ascii_case(prefix)).map(|_| &digits[2..]);
    let (digits, base) = if let Some(hex) = prefixed("0x") {
        (hex, 16)
    } else if let Some(binary) = prefixed("0b") {
        (binary, 2)
    } else if let Some(octal) = prefixed("0o") {
        (octal, 8)
    } else if digits.len() > 1 && digits.starts_with('0') {
        (&digits[1..], 8)
    } else {
        (digits, 10)
    };
    if digits.starts_with(['+', '-']) {
        return None;
    }
    let size = u64::from_str_radix(digits, base).ok()?;
    match (negative, i64::try_from(size)) {
        (false, Ok(number)) => Some(Value::from(number)),
        // Kubernetes: a number above 63 bits is unsigned, but not after a plus.
        (false, Err(_)) => (!text.starts_with('+')).then(|| Value::from(size)),
        (true, _) => 0_i64.checked_sub_unsigned(size).map(Value::from),
    }
}

/// `[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?`
fn is_float(text: &str) -> bool {
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let text = text.strip_prefix(['+', '-']).unwrap_or(text);
    let (mantissa, exponent) =
        text.split_once(['e', 'E']).map_or((text, "0"), |(mantissa, it)| (mantissa, it));
    let exponent = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let some = !whole.is_empty() || !fraction.is_empty();
    some && digits(whole) && digits(fraction) && !exponent.is_empty() && digits(exponent)
}

fn float(text: &str) -> Option<Value> {
    let float: f64 = text.parse().ok()?;
    Number::from_f64(float).map(Value::Number)
}
