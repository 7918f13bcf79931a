//! `<`, `<=`, `>`, `>=`, also between numbers of different types.

use super::logic::shorter_estimate;
use crate::{
    cost::{STRING_TRAVERSAL, scale},
    equality::compare,
    error::Error,
    library::{Body, Function, Outcome, Overload},
    ty::Type,
    value::Value,
};
use std::cmp::Ordering;

pub(super) fn functions() -> Vec<Function> {
    vec![
        function("_<_", &LESS, less),
        function("_<=_", &LESS_EQUALS, less_equals),
        function("_>_", &GREATER, greater),
        function("_>=_", &GREATER_EQUALS, greater_equals),
    ]
}

/// The names of the overloads, in the order of `PAIRS`.
type Ids = [&'static str; 14];

const PAIRS: [(Type, Type); 14] = [
    (Type::Bool, Type::Bool),
    (Type::Int, Type::Int),
    (Type::Int, Type::Double),
    (Type::Int, Type::Uint),
    (Type::Uint, Type::Uint),
    (Type::Uint, Type::Double),
    (Type::Uint, Type::Int),
    (Type::Double, Type::Double),
    (Type::Double, Type::Int),
    (Type::Double, Type::Uint),
    (Type::String, Type::String),
    (Type::Bytes, Type::Bytes),
    (Type::Timestamp, Type::Timestamp),
    (Type::Duration, Type::Duration),
];

macro_rules! ids {
    ($name:literal) => {
        [
            concat!($name, "_bool"),
            concat!($name, "_int64"),
            concat!($name, "_int64_double"),
            concat!($name, "_int64_uint64"),
            concat!($name, "_uint64"),
            concat!($name, "_uint64_double"),
            concat!($name, "_uint64_int64"),
            concat!($name, "_double"),
            concat!($name, "_double_int64"),
            concat!($name, "_double_uint64"),
            concat!($name, "_string"),
            concat!($name, "_bytes"),
            concat!($name, "_timestamp"),
            concat!($name, "_duration"),
        ]
    };
}

const LESS: Ids = ids!("less");
const LESS_EQUALS: Ids = ids!("less_equals");
const GREATER: Ids = ids!("greater");
const GREATER_EQUALS: Ids = ids!("greater_equals");

fn function(name: &'static str, ids: &Ids, body: Body) -> Function {
    let overload = |(id, (left, right)): (&&'static str, &(Type, Type))| {
        let overload = Overload::global(id, vec![left.clone(), right.clone()], Type::Bool, body);
        match left {
            Type::String | Type::Bytes => {
                overload.costs_by_overload(shorter_cost).estimated(shorter_estimate)
            }
            _ => overload,
        }
    };
    Function::new(name, ids.iter().zip(&PAIRS).map(overload).collect())
}

fn order<'a>(args: &[Value<'a>], holds: fn(Ordering) -> bool) -> Outcome<'a> {
    match args {
        [left, right] => compare(left, right).map(|order| Value::Bool(holds(order))),
        _ => Err(Error::no_such_overload()),
    }
}

fn less<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    order(args, Ordering::is_lt)
}

fn less_equals<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    order(args, Ordering::is_le)
}

fn greater<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    order(args, Ordering::is_gt)
}

fn greater_equals<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    order(args, Ordering::is_ge)
}

fn shorter_cost(args: &[Value<'_>], _: &Value<'_>) -> u64 {
    scale(args[0].size().min(args[1].size()), STRING_TRAVERSAL)
}
