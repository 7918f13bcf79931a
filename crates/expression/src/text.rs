//! Values as text, as an expression would spell them.

use crate::{number, time, value::Value};

/// The value in the language's own notation: `[1, "a"]`.
pub fn describe(value: &Value<'_>) -> String {
    match value {
        Value::Null => "null".into(),
        Value::Bool(value) => value.to_string(),
        Value::Int(value) => value.to_string(),
        Value::Uint(value) => format!("{value}u"),
        Value::Double(value) => describe_double(*value),
        Value::String(text) => format!("{:?}", &**text),
        Value::Bytes(bytes) => {
            let escaped: String = bytes.iter().map(|byte| format!("\\{byte:03o}")).collect();
            format!("b\"{escaped}\"")
        }
        Value::Duration(nanos) => format!("duration(\"{}\")", time::format_duration(*nanos)),
        Value::Timestamp(at) => format!("timestamp(\"{at:?}\")"),
        Value::List(list) => {
            let items: Vec<String> = list.iter().map(|item| describe(&item)).collect();
            format!("[{}]", items.join(", "))
        }
        Value::Map(map) => {
            let entry =
                |(key, value): &(Value<'_>, Value<'_>)| format!("{}: {}", describe(key), describe(value));
            let entries: Vec<String> = map.entries().iter().map(entry).collect();
            format!("{{{}}}", entries.join(", "))
        }
        Value::Optional(None) => "optional.none()".into(),
        Value::Optional(Some(inner)) => format!("optional.of({})", describe(inner)),
        Value::Type(ty) => ty.name().to_string(),
        Value::Opaque(value) => format!("{value:?}"),
        Value::Object(object) => {
            let entry =
                |(name, value): &(std::sync::Arc<str>, Value<'_>)| format!("{name}: {}", describe(value));
            let fields: Vec<String> = object.fields.iter().map(entry).collect();
            format!("{}{{{}}}", object.name, fields.join(", "))
        }
    }
}

fn describe_double(value: f64) -> String {
    if value.is_nan() {
        return "double(\"NaN\")".into();
    }
    if value.is_infinite() {
        return format!("double(\"{}Infinity\")", if value < 0.0 { "-" } else { "" });
    }
    let text = number::format_plain(value);
    if text.contains('.') { text } else { format!("{text}.0") }
}
