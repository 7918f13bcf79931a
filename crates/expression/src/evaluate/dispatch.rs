//! Chooses the overload of a call by the run-time types of its arguments.

use crate::{
    cost::{self, scale},
    error::Error,
    library::{Outcome, Overload},
    plan::Call,
    text::describe,
    ty::Type,
    value::{Key, Map, Value},
};
use std::sync::Arc;

/// The outcome of a call and what it cost.
pub(super) fn call<'a>(call: &Call, values: Vec<Value<'a>>) -> (Outcome<'a>, u64) {
    let values = match grow(call, values) {
        Ok(outcome) => return (outcome, 1),
        Err(values) => values,
    };
    let Some(overload) = choose(call, &values).or_else(|| operator(call, &values)) else {
        return (Err(mismatch(call, &values)), 1);
    };
    let outcome = (overload.body)(&values);
    let cost = charge(call, overload, &values, outcome.as_ref().unwrap_or(&Value::Null));
    (outcome, cost)
}

/// The cost of a call with failed arguments; null stands for those.
pub(super) fn failed_cost(call: &Call, values: &[Value<'_>]) -> u64 {
    match &call.overloads[..] {
        [overload] => charge(call, overload, values, &Value::Null),
        _ => 1,
    }
}

fn charge(call: &Call, overload: &Overload, values: &[Value<'_>], result: &Value<'_>) -> u64 {
    match overload.cost {
        Some(_) if overload.cost_needs_one_overload && call.overloads.len() > 1 => 1,
        Some(cost) => cost(values, result),
        None => 1,
    }
}

/// Lists and maps that are taken out of the arguments grow in place while they are held nowhere else.
fn grow<'a>(call: &Call, mut values: Vec<Value<'a>>) -> Result<Outcome<'a>, Vec<Value<'a>>> {
    match (&*call.function, &values[..]) {
        ("_+_", [Value::List(_), Value::List(_)])
        | ("cel.@mapInsert", [Value::Map(_), _, _])
        | ("cel.@mapInsert", [Value::Map(_), Value::Map(_)]) => {}
        _ => return Err(values),
    }
    let value = values.pop();
    let key = if values.len() == 2 { values.pop() } else { None };
    Ok(match (values.pop(), key, value) {
        (Some(Value::List(list)), None, Some(Value::List(more))) => Ok(Value::List(list.plus(&more))),
        (Some(Value::Map(map)), Some(key), Some(value)) => insert(map, key, value),
        (Some(Value::Map(map)), None, Some(Value::Map(more))) => {
            more.entries().into_iter().try_fold(Value::Map(map), |map, (key, value)| match map {
                Value::Map(map) => insert(map, key, value),
                other => Ok(other),
            })
        }
        _ => Err(Error::no_such_overload()),
    })
}

fn insert<'a>(map: Map<'a>, key: Value<'a>, value: Value<'a>) -> Outcome<'a> {
    if map.find(&key).is_some() {
        let shown = key.as_str().map_or_else(|| describe(&key), str::to_string);
        return Err(Error::new(format!("insert failed: key {shown} already exists")));
    }
    Ok(Value::Map(map.with(Key::of(&key), value)))
}

/// The result of a call, without its cost.
pub(crate) fn dispatch<'a>(this: &Call, values: &[Value<'a>]) -> Outcome<'a> {
    call(this, values.to_vec()).0
}

/// An operator accepts all types that it can, also those that the checker did not expect.
fn operator<'c>(call: &'c Call, values: &[Value<'_>]) -> Option<&'c Arc<Overload>> {
    let is_operator = call.function.starts_with(['_', '-']) || matches!(&*call.function, "@in" | "size");
    let overload = call.overloads.first().filter(|_| is_operator)?;
    (overload.parameters.len() == values.len() && (overload.body)(values).is_ok()).then_some(overload)
}

fn choose<'c>(call: &'c Call, values: &[Value<'_>]) -> Option<&'c Arc<Overload>> {
    call.overloads.iter().find(|overload| {
        overload.parameters.len() == values.len()
            && overload.parameters.iter().zip(values).all(|(parameter, value)| fits(parameter, value))
    })
}

/// Whether a value fits a parameter, by its type and that of its first element.
fn fits(parameter: &Type, value: &Value<'_>) -> bool {
    match (parameter, value) {
        (Type::Dyn | Type::Param(_) | Type::Error, _) => true,
        (Type::Null, Value::Null)
        | (Type::Bool, Value::Bool(_))
        | (Type::Int, Value::Int(_))
        | (Type::Uint, Value::Uint(_))
        | (Type::Double, Value::Double(_))
        | (Type::String, Value::String(_))
        | (Type::Bytes, Value::Bytes(_))
        | (Type::Duration, Value::Duration(_))
        | (Type::Timestamp, Value::Timestamp(_))
        | (Type::Optional(_), Value::Optional(_))
        | (Type::Type(_), Value::Type(_)) => true,
        // Kubernetes: functions of nested lists check for themselves; otherwise only the first element is
        // checked.
        (Type::List(element), Value::List(_)) if matches!(**element, Type::List(_)) => true,
        (Type::List(element), Value::List(list)) => list.at(0).is_none_or(|first| fits(element, &first)),
        (Type::Map(pair), Value::Map(map)) => {
            map.first().is_none_or(|(key, value)| fits(&pair.0, &key) && fits(&pair.1, &value))
        }
        (Type::Opaque(_), Value::Opaque(value)) => value.ty() == *parameter,
        (Type::Object(object), Value::Object(value)) => object.name() == &*value.name,
        _ => false,
    }
}

/// Kubernetes: the detail of the message depends on how cel-go binds the function.
fn mismatch(call: &Call, values: &[Value<'_>]) -> Error {
    let name = &*call.function;
    let first = values.first();
    let has_operator = first.is_some_and(|first| match name {
        "_+_" => matches!(
            first,
            Value::Bytes(_)
                | Value::Double(_)
                | Value::Duration(_)
                | Value::Int(_)
                | Value::List(_)
                | Value::String(_)
                | Value::Timestamp(_)
                | Value::Uint(_)
        ),
        "_-_" => matches!(
            first,
            Value::Double(_) | Value::Duration(_) | Value::Int(_) | Value::Timestamp(_) | Value::Uint(_)
        ),
        "_*_" | "_/_" => matches!(first, Value::Double(_) | Value::Int(_) | Value::Uint(_)),
        "_%_" => matches!(first, Value::Int(_) | Value::Uint(_)),
        "-_" => matches!(first, Value::Double(_) | Value::Int(_)),
        "_<_" | "_<=_" | "_>_" | "_>=_" => crate::equality::compare(first, first).is_ok(),
        _ => false,
    });
    // Types with receiver functions of their own.
    let is_receiver = matches!(first, Some(Value::String(_) | Value::Timestamp(_) | Value::Duration(_)))
        && name.starts_with(['_', '-']);
    match name {
        "!_" | "@in" | "startsWith" | "endsWith" | "contains" | "matches" => Error::no_such_overload(),
        _ if has_operator || is_receiver => Error::no_such_overload(),
        "size" => Error::new("no such overload: size"),
        _ if name.starts_with(['_', '-']) => Error::new(format!("no such overload: {name}")),
        _ => {
            let types: Vec<String> = values.iter().map(|value| value.ty().name().to_string()).collect();
            Error::new(format!("no such overload: {name}({})", types.join(", ")))
        }
    }
}

/// What it costs to match a text of a size with a pattern of a size.
pub(crate) fn pattern_cost(text: u64, pattern: u64) -> u64 {
    scale(text.saturating_add(1), cost::STRING_TRAVERSAL).saturating_mul(scale(pattern, cost::REGEX_LENGTH))
}
