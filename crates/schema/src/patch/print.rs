//! Prints JSON values as Go does: `%v`, `%#v`, `%T`, and the type name in decode errors.

use api::go;
use serde_json::{Number, Value};

/// `%v`: `map[a:1 b:[x y]]`.
pub(crate) fn plain(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".into(),
        Value::Bool(value) => value.to_string(),
        Value::Number(number) => number_text(number),
        Value::String(text) => text.clone(),
        Value::Array(items) => list(items),
        Value::Object(members) => map(members),
    }
}

/// `%v` of a list.
pub(crate) fn list(items: &[Value]) -> String {
    format!("[{}]", items.iter().map(plain).collect::<Vec<_>>().join(" "))
}

/// `%v` of a map, by its keys.
pub(crate) fn map(members: &serde_json::Map<String, Value>) -> String {
    let members: Vec<_> = members.iter().map(|(name, value)| format!("{name}:{}", plain(value))).collect();
    format!("map[{}]", members.join(" "))
}

/// `%s`, which adds the type of values that are not strings.
pub(crate) fn verb_s(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => "%!s(<nil>)".into(),
        Value::Array(items) => format!("[{}]", items.iter().map(verb_s).collect::<Vec<_>>().join(" ")),
        Value::Object(members) => {
            let members: Vec<_> =
                members.iter().map(|(name, value)| format!("{name}:{}", verb_s(value))).collect();
            format!("map[{}]", members.join(" "))
        }
        scalar => format!("%!s({}={})", type_name(scalar), plain(scalar)),
    }
}

/// `%#v`: as Go source.
pub(crate) fn syntax(value: &Value) -> String {
    match value {
        Value::Null => "interface {}(nil)".into(),
        Value::String(text) => go::quote(text),
        Value::Array(items) => {
            format!("[]interface {{}}{{{}}}", items.iter().map(syntax).collect::<Vec<_>>().join(", "))
        }
        Value::Object(members) => {
            let members: Vec<_> = members
                .iter()
                .map(|(name, value)| format!("{}:{}", go::quote(name), syntax(value)))
                .collect();
            format!("map[string]interface {{}}{{{}}}", members.join(", "))
        }
        scalar => plain(scalar),
    }
}

/// `%T`: the Go type of such a value.
pub(crate) fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_i64() => "int64",
        Value::Number(_) => "float64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

fn number_text(number: &Number) -> String {
    match number.as_i64() {
        Some(whole) => whole.to_string(),
        None => go::float(number.as_f64().unwrap_or_default()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn values_print_as_in_go() {
        for (value, v, sharp, s, name) in [
            (json!(null), "<nil>", "interface {}(nil)", "%!s(<nil>)", "<nil>"),
            (json!(5), "5", "5", "%!s(int64=5)", "int64"),
            (json!(1.5), "1.5", "1.5", "%!s(float64=1.5)", "float64"),
            (json!(true), "true", "true", "%!s(bool=true)", "bool"),
            (json!("x y"), "x y", "\"x y\"", "x y", "string"),
            (json!([1, "a"]), "[1 a]", "[]interface {}{1, \"a\"}", "[%!s(int64=1) a]", "[]interface {}"),
            (
                json!({"b": {"c": null}, "a": 1}),
                "map[a:1 b:map[c:<nil>]]",
                "map[string]interface {}{\"a\":1, \"b\":map[string]interface {}{\"c\":interface {}(nil)}}",
                "map[a:%!s(int64=1) b:map[c:%!s(<nil>)]]",
                "map[string]interface {}",
            ),
        ] {
            let got = (plain(&value), syntax(&value), verb_s(&value), type_name(&value));
            assert_eq!(got, (v.into(), sharp.into(), s.into(), name));
        }
    }
}
