//! A definition that people install, again and again under other names.

use serde_json::Value;

/// One definition on each line.
static REAL: &[u8] = include_bytes!("../../../kinds/src/definition/tests/real.jsonl.zz");

/// The definition of that name.
pub(crate) fn definition(name: &str) -> Value {
    let text = miniz_oxide::inflate::decompress_to_vec_zlib(REAL).unwrap();
    let all = text.split(|byte| *byte == b'\n').map(|line| serde_json::from_slice::<Value>(line).unwrap());
    all.into_iter().find(|it| it["metadata"]["name"] == name).unwrap()
}

/// The same under other names, as text.
pub(crate) fn renamed(definition: &Value, number: usize) -> String {
    let mut copy = definition.clone();
    let names = &mut copy["spec"]["names"];
    let text = |name: &str| names[name].as_str().unwrap().to_owned();
    let (plural, kind) = (format!("{}{number}", text("plural")), format!("{}X{number}", text("kind")));
    names["singular"] = kind.to_lowercase().into();
    names["listKind"] = format!("{kind}List").into();
    names["kind"] = kind.into();
    names["plural"] = plural.clone().into();
    names["shortNames"] = Value::Null;
    copy["metadata"]["name"] = format!("{plural}.{}", copy["spec"]["group"].as_str().unwrap()).into();
    copy["status"] = Value::Null;
    copy.to_string()
}
