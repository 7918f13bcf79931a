//! Calls every function with every sample argument: neither the function nor its cost panics.

use super::{Overload, kubernetes};
use crate::{
    time::parse_timestamp,
    ty::Type,
    value::{Key, Map, Text, Value},
};

const TEXTS: [&str; 14] = [
    "",
    "a",
    "é☃",
    "%",
    "%.9999999999f %s",
    "(",
    "\u{10ffff}\0",
    "http://[::1%25é]:80/%zz?a=%",
    "1.2.3.4/8",
    "::/0",
    "1.2.3-a+b",
    "-1.5Ki",
    "2020-01-01T00:00:00Z",
    "dns1123Label",
];
const NUMBERS: [i64; 7] = [i64::MIN, -1, 0, 1, 2, 7, i64::MAX];
/// Enough for every pair of arguments, and some of three and four.
const MAX_CALLS: usize = 5_000;

/// Sample values of a type: simple ones, and those that a function makes from text.
fn samples(ty: &Type, makers: &[(Type, Value<'static>)]) -> Vec<Value<'static>> {
    match ty {
        Type::Bool => vec![Value::Bool(false), Value::Bool(true)],
        Type::Int => NUMBERS.map(Value::Int).to_vec(),
        Type::Uint => [0, 1, u64::MAX].map(Value::Uint).to_vec(),
        Type::Double => [0.0, -1.5, f64::NAN, f64::INFINITY, 1e300].map(Value::Double).to_vec(),
        Type::String => TEXTS.map(Value::string).to_vec(),
        Type::Bytes => vec![Value::bytes(vec![]), Value::bytes(vec![0xff, 0x61])],
        Type::Duration => NUMBERS.map(Value::Duration).to_vec(),
        Type::Timestamp => ["0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z"]
            .map(|text| Value::Timestamp(parse_timestamp(text).unwrap()))
            .to_vec(),
        Type::Null => vec![Value::Null],
        Type::List(element) => {
            let items = samples(element, makers);
            let short = items.iter().take(2).cloned().collect::<Vec<_>>();
            vec![Value::list(vec![]), Value::list(short), Value::list(items)]
        }
        Type::Map(_) => {
            let entry = (Key::String(Text::Borrowed("a")), Value::Int(1));
            vec![Value::Map(Map::new([entry].into_iter().collect()))]
        }
        Type::Optional(inner) => {
            let some = samples(inner, makers).into_iter().next().map(Value::some);
            some.into_iter().chain([Value::Optional(None)]).collect()
        }
        Type::Type(_) => vec![Value::Type(Type::Int)],
        Type::Dyn | Type::Param(_) => {
            let nested = Value::list(vec![Value::list(vec![Value::Int(1)])]);
            vec![Value::Null, Value::Int(1), Value::Double(1.0), Value::string("é"), nested]
        }
        opaque => makers.iter().filter(|(made, _)| made == opaque).map(|(_, value)| value.clone()).collect(),
    }
}

/// Every combination of sample arguments, up to a limit.
fn calls(overload: &Overload, makers: &[(Type, Value<'static>)]) -> Vec<Vec<Value<'static>>> {
    let mut calls = vec![Vec::new()];
    for parameter in &overload.parameters {
        let samples = samples(parameter, makers);
        let with = |call: &Vec<Value<'static>>| {
            samples
                .iter()
                .map(|sample| [&call[..], std::slice::from_ref(sample)].concat())
                .collect::<Vec<_>>()
        };
        calls = calls.iter().flat_map(with).take(MAX_CALLS).collect();
    }
    calls
}

#[test]
fn no_argument_makes_a_function_panic() {
    let overloads: Vec<_> = kubernetes()
        .into_iter()
        .flat_map(|library| library.functions)
        .flat_map(|function| function.overloads)
        .collect();
    let mut makers = Vec::new();
    for overload in overloads.iter().filter(|overload| matches!(overload.result, Type::Opaque(_))) {
        for call in calls(overload, &makers) {
            makers.extend((overload.body)(&call).ok().map(|value| (overload.result.clone(), value)));
        }
    }
    let mut made = 0;
    for overload in &overloads {
        for call in calls(overload, &makers) {
            if let Ok(value) = (overload.body)(&call) {
                overload.cost.map(|cost| cost(&call, &value));
                made += 1;
            }
        }
    }
    assert!(made > 10_000, "only {made} calls came back");
}
