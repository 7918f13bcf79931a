//! `sum`, `min`, `max`, `isSorted`, `indexOf`: the list functions of Kubernetes.

pub(crate) mod extended;

use std::cmp::Ordering;

use super::{Body, Function, Library, Outcome, Overload, charge};
use crate::{
    equality::{compare, equal},
    error::Error,
    ty::Type,
    value::{List, Value},
};

pub(crate) fn library() -> Library {
    let walking = |id, parameters, result, body| {
        Overload::member(id, parameters, result, body)
            .costs(charge::traverse)
            .estimated(charge::traverse_estimate)
    };
    let each = |ids: [&'static str; 8], result: Option<Type>, body: Body| {
        let overload = |(id, element): (&'static str, Type)| {
            let result = result.clone().unwrap_or_else(|| element.clone());
            walking(id, vec![Type::list(element)], result, body)
        };
        ids.into_iter().zip(ORDERED).map(overload).collect::<Vec<_>>()
    };
    let sum = |id, element: Type, body| walking(id, vec![Type::list(element.clone())], element, body);
    let search = |id, body| {
        let element = Type::Param("A");
        vec![walking(id, vec![Type::list(element.clone()), element], Type::Int, body)]
    };
    Library {
        functions: vec![
            Function::new("isSorted", each(IS_SORTED, Some(Type::Bool), is_sorted)),
            Function::new(
                "sum",
                vec![
                    sum("list_int_sum_int", Type::Int, sum_ints),
                    sum("list_uint_sum_uint", Type::Uint, sum_uints),
                    sum("list_double_sum_double", Type::Double, sum_doubles),
                    sum("list_duration_sum_duration", Type::Duration, sum_durations),
                ],
            ),
            Function::new("max", each(MAX, None, max)),
            Function::new("min", each(MIN, None, min)),
            Function::new("indexOf", search("list_a_index_of_int", index_of)),
            Function::new("lastIndexOf", search("list_a_last_index_of_int", last_index_of)),
        ],
        ..Library::default()
    }
}

/// The types that have an order; the names of overloads follow it.
const ORDERED: [Type; 8] = [
    Type::Int,
    Type::Uint,
    Type::Double,
    Type::Bool,
    Type::Duration,
    Type::Timestamp,
    Type::String,
    Type::Bytes,
];

const IS_SORTED: [&str; 8] = [
    "list_int_is_sorted_bool",
    "list_uint_is_sorted_bool",
    "list_double_is_sorted_bool",
    "list_bool_is_sorted_bool",
    "list_duration_is_sorted_bool",
    "list_timestamp_is_sorted_bool",
    "list_string_is_sorted_bool",
    "list_bytes_is_sorted_bool",
];

const MAX: [&str; 8] = [
    "list_int_max_int",
    "list_uint_max_uint",
    "list_double_max_double",
    "list_bool_max_bool",
    "list_duration_max_duration",
    "list_timestamp_max_timestamp",
    "list_string_max_string",
    "list_bytes_max_bytes",
];

const MIN: [&str; 8] = [
    "list_int_min_int",
    "list_uint_min_uint",
    "list_double_min_double",
    "list_bool_min_bool",
    "list_duration_min_duration",
    "list_timestamp_min_timestamp",
    "list_string_min_string",
    "list_bytes_min_bytes",
];

fn list<'v, 'a>(args: &'v [Value<'a>]) -> Result<&'v List<'a>, Error> {
    args.first().and_then(Value::as_list).ok_or_else(Error::no_such_overload)
}

/// Kubernetes: elements that cannot be compared count as in order.
fn is_sorted<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    let mut items = list(args)?.iter();
    let Some(mut previous) = items.next() else { return Ok(Value::Bool(true)) };
    for item in items {
        if compare(&previous, &item) == Ok(Ordering::Greater) {
            return Ok(Value::Bool(false));
        }
        previous = item;
    }
    Ok(Value::Bool(true))
}

fn max<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    extreme(args, "max", Ordering::Less)
}

fn min<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    extreme(args, "min", Ordering::Greater)
}

/// The first smallest or largest item.
fn extreme<'a>(args: &[Value<'a>], name: &str, beaten: Ordering) -> Outcome<'a> {
    let better = |best: Value<'a>, item: Value<'a>| match compare(&best, &item) {
        Ok(ordering) if ordering == beaten => item,
        _ => best,
    };
    let best = list(args)?.iter().reduce(better);
    best.ok_or_else(|| Error::new(format!("{name} called on empty list")))
}

fn sum_ints<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    let add = |sum: i64, item| match item {
        Value::Int(number) => sum.checked_add(number).ok_or_else(|| Error::new(INT_OVERFLOW)),
        _ => Err(Error::no_such_overload()),
    };
    Ok(Value::Int(list(args)?.iter().try_fold(0, add)?))
}

fn sum_uints<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    let add = |sum: u64, item| match item {
        Value::Uint(number) => sum.checked_add(number).ok_or_else(|| Error::new("unsigned integer overflow")),
        _ => Err(Error::no_such_overload()),
    };
    Ok(Value::Uint(list(args)?.iter().try_fold(0, add)?))
}

fn sum_doubles<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    let add = |sum: f64, item| match item {
        Value::Double(number) => Ok(sum + number),
        _ => Err(Error::no_such_overload()),
    };
    Ok(Value::Double(list(args)?.iter().try_fold(0.0, add)?))
}

fn sum_durations<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    let add = |sum: i64, item| match item {
        Value::Duration(length) => sum.checked_add(length).ok_or_else(|| Error::new(INT_OVERFLOW)),
        _ => Err(Error::no_such_overload()),
    };
    Ok(Value::Duration(list(args)?.iter().try_fold(0, add)?))
}

const INT_OVERFLOW: &str = "integer overflow";

fn index_of<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    let wanted = args.get(1).ok_or_else(Error::no_such_overload)?;
    let found = list(args)?.iter().position(|item| equal(&item, wanted));
    Ok(Value::Int(found.map_or(-1, |index| index as i64)))
}

fn last_index_of<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    let wanted = args.get(1).ok_or_else(Error::no_such_overload)?;
    let found = list(args)?.iter().enumerate().filter(|(_, item)| equal(item, wanted)).last();
    Ok(Value::Int(found.map_or(-1, |(index, _)| index as i64)))
}
