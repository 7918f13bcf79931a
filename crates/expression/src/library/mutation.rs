//! The objects of mutating policies, `Object{…}` and `JSONPatch{…}`, and their JSON.

use std::sync::Arc;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Map as JsonMap, Value as Json};

use super::json_patch;
use crate::{
    environment::Env,
    error::Error,
    number::format_double,
    time::{format_duration, format_timestamp},
    ty::{Field, Object, Type},
    value::{Instance, Value},
};

/// The name of an object that an expression constructs; of a field's object it is `Object.field`.
const OBJECT: &str = "Object";
const JSON_PATCH: &str = "JSONPatch";

/// Larger integers are written as text, because many JSON parsers read numbers as doubles.
const MAX_SAFE_INTEGER: u64 = (1 << 53) - 1;

/// An environment in which expressions may also construct objects and patches.
pub fn extend(env: Env) -> Env {
    env.with_libraries(vec![json_patch::library()]).with_object(patch_object()).with_open_objects(OBJECT)
}

/// The required type of an `applyConfiguration`.
pub fn object_type() -> Type {
    Type::Object(Object::open(OBJECT))
}

/// The required type of a `jsonPatch`.
pub fn patch_list_type() -> Type {
    Type::list(Type::Object(patch_object()))
}

fn patch_object() -> Arc<Object> {
    let field = |name: &str, ty| Field { name: name.into(), ty };
    let text = |name| field(name, Type::String);
    Object::new(JSON_PATCH, vec![text("op"), text("from"), text("path"), field("value", Type::Dyn)])
}

/// The result of an `applyConfiguration`, as JSON.
pub fn apply_configuration(value: &Value<'_>) -> Result<Json, Error> {
    let Value::Object(object) = value else {
        let given = value.ty();
        let problem = format!("unsupported return type from ApplyConfiguration expression: {}", given.name());
        return Err(Error::new(problem));
    };
    check_names(object)?;
    json(value).map_err(Error::new)
}

/// The result of a `jsonPatch`, as the operations of a JSON patch.
pub fn patch_operations(value: &Value<'_>) -> Result<Vec<Json>, Error> {
    let Value::List(list) = value else {
        return Err(Error::new("type mismatch: JSONPatchType.expression should evaluate to array"));
    };
    list.iter().map(|item| operation(&item)).collect()
}

fn operation(value: &Value<'_>) -> Result<Json, Error> {
    let Value::Object(patch) = value else {
        let problem = "type mismatch: JSONPatchType.expression should evaluate to array of JSONPatch";
        return Err(Error::new(problem));
    };
    let text = |name: &str| field(patch, name).and_then(Value::as_str).unwrap_or_default();
    let mut out = JsonMap::new();
    out.insert("op".to_owned(), text("op").into());
    out.insert("path".to_owned(), text("path").into());
    if !text("from").is_empty() {
        out.insert("from".to_owned(), text("from").into());
    }
    if let Some(value) = field(patch, "value") {
        if let Value::Object(object) = value {
            check_names(object)?;
        }
        let value = json(value).map_err(|problem| {
            let what = "JSONPath valueExpression evaluated to a type that could not marshal to JSON";
            Error::new(format!("{what}: {problem}"))
        })?;
        out.insert("value".to_owned(), value);
    }
    Ok(Json::Object(out))
}

fn field<'v, 'a>(object: &'v Instance<'a>, name: &str) -> Option<&'v Value<'a>> {
    object.fields.iter().find(|(known, _)| &**known == name).map(|(_, value)| value)
}

/// Kubernetes: the name of an object is the path of its fields, and must match.
fn check_names(object: &Arc<Instance<'_>>) -> Result<(), Error> {
    let mut problems = Vec::new();
    misnamed(&Value::Object(object.clone()), &object.name, &mut problems);
    if problems.is_empty() {
        return Ok(());
    }
    Err(Error::new(format!("type mismatch: {}", problems.join("\n"))))
}

fn misnamed(value: &Value<'_>, expected: &str, problems: &mut Vec<String>) {
    match value {
        Value::Object(object) => {
            if &*object.name != expected {
                let name = &object.name;
                problems.push(format!(
                    "unexpected type name \"{name}\", expected \"{expected}\", which matches field name path from \
                     root Object type"
                ));
            }
            for (name, value) in &object.fields {
                misnamed(value, &format!("{expected}.{name}"), problems);
            }
        }
        Value::List(list) => list.iter().for_each(|item| misnamed(&item, expected, problems)),
        Value::Map(map) => {
            map.keys()
                .iter()
                .filter_map(|key| map.find(key))
                .for_each(|item| misnamed(&item, expected, problems));
        }
        _ => {}
    }
}

/// The JSON of a value, as protocol buffers write it.
fn json(value: &Value<'_>) -> Result<Json, String> {
    Ok(match value {
        Value::Null => Json::Null,
        Value::Bool(value) => (*value).into(),
        Value::Int(number) if number.unsigned_abs() <= MAX_SAFE_INTEGER => (*number).into(),
        Value::Int(number) => number.to_string().into(),
        Value::Uint(number) if *number <= MAX_SAFE_INTEGER => (*number).into(),
        Value::Uint(number) => number.to_string().into(),
        Value::Double(number) if number.fract() == 0.0 && number.abs() <= MAX_SAFE_INTEGER as f64 => {
            (*number as i64).into()
        }
        Value::Double(number) if number.is_finite() => (*number).into(),
        Value::Double(number) => {
            let number = format_double(*number);
            return Err(format!("google.protobuf.Value.number_value: invalid {number} value"));
        }
        Value::String(text) => (**text).into(),
        Value::Bytes(bytes) => STANDARD.encode(bytes).into(),
        Value::Duration(length) => format_duration(*length).into(),
        Value::Timestamp(moment) => format_timestamp(*moment).into(),
        Value::List(list) => list.iter().map(|item| json(&item)).collect::<Result<Vec<_>, _>>()?.into(),
        Value::Map(map) => {
            let mut out = JsonMap::new();
            for key in map.keys() {
                let name = match &key {
                    Value::String(name) => name.to_string(),
                    Value::Bool(name) => name.to_string(),
                    Value::Int(name) => name.to_string(),
                    Value::Uint(name) => name.to_string(),
                    _ => return Err(format!("map key of type {} is no text", key.ty().name())),
                };
                out.insert(name, json(&map.find(&key).unwrap_or(Value::Null))?);
            }
            Json::Object(out)
        }
        Value::Object(object) => {
            let mut out = JsonMap::new();
            for (name, value) in &object.fields {
                out.insert(name.to_string(), json(value)?);
            }
            Json::Object(out)
        }
        Value::Optional(Some(inner)) => json(inner)?,
        Value::Optional(None) | Value::Type(_) | Value::Opaque(_) => {
            let given = value.ty();
            return Err(format!("type conversion error from '{}' to '*structpb.Value'", given.name()));
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn run(source: &str) -> Value<'static> {
        let checked = extend(Env::kubernetes()).compile(source).unwrap_or_else(|issues| panic!("{issues}"));
        let nothing: [(&str, Value<'static>); 0] = [];
        checked.program().unwrap().run(&nothing, 1_000_000).outcome.unwrap()
    }

    #[test]
    fn patches_become_operations() {
        for (source, expected) in [
            ("[JSONPatch{op: 'remove', path: '/a'}]", json!([{"op": "remove", "path": "/a"}])),
            (
                "[JSONPatch{op: 'copy', from: '/a', path: '/b'}]",
                json!([{"op": "copy", "from": "/a", "path": "/b"}]),
            ),
            (
                "[JSONPatch{op: 'add', path: '/metadata/labels/' + jsonpatch.escapeKey('a/b'), value: {'x': 1}}]",
                json!([{"op": "add", "path": "/metadata/labels/a~1b", "value": {"x": 1}}]),
            ),
            (
                "[JSONPatch{op: 'add', path: '/', value: Object.spec{ports: [Object.spec.ports{port: 80}]}}]",
                json!([{"op": "add", "path": "/", "value": {"ports": [{"port": 80}]}}]),
            ),
            ("[JSONPatch{value: 1.0}]", json!([{"op": "", "path": "", "value": 1}])),
            ("[JSONPatch{value: 1.5}]", json!([{"op": "", "path": "", "value": 1.5}])),
            (
                "[JSONPatch{value: 9007199254740992}]",
                json!([{"op": "", "path": "", "value": "9007199254740992"}]),
            ),
            ("[JSONPatch{value: b'hi!!'}]", json!([{"op": "", "path": "", "value": "aGkhIQ=="}])),
            ("[JSONPatch{value: duration('1s')}]", json!([{"op": "", "path": "", "value": "1s"}])),
            ("[JSONPatch{value: null}]", json!([{"op": "", "path": "", "value": null}])),
        ] {
            assert_eq!(Json::Array(patch_operations(&run(source)).unwrap()), expected, "{source}");
        }
    }

    #[test]
    fn objects_are_checked_by_their_names() {
        let made =
            apply_configuration(&run("Object{spec: Object.spec{replicas: 3, ?paused: optional.none()}}"));
        assert_eq!(made.unwrap(), json!({"spec": {"replicas": 3}}));
        let made = apply_configuration(&run("Object{spec: Object.wrong{replicas: 3}}"));
        assert_eq!(
            made.unwrap_err().message(),
            "type mismatch: unexpected type name \"Object.wrong\", expected \"Object.spec\", which matches field \
             name path from root Object type"
        );
    }

    #[test]
    fn a_patch_rejects_unknown_fields() {
        let issues =
            extend(Env::kubernetes()).compile("[JSONPatch{op: 1, what: 2}]").unwrap_err().to_string();
        assert!(
            issues.contains("expected type of field 'op' is 'string' but provided type is 'int'"),
            "{issues}"
        );
        assert!(issues.contains("undefined field 'what'"), "{issues}");
    }
}
