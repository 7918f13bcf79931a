//! `+`, `-`, `*`, `/`, `%`, each refusing to overflow.

use super::A;
use crate::{
    cost::{Range, STRING_TRAVERSAL, scale},
    error::Error,
    library::{Argument, CallEstimate, Function, Outcome, Overload},
    time,
    ty::Type,
    value::Value,
};

pub(super) fn functions() -> Vec<Function> {
    use Type::{Bytes, Double, Duration, Int, String, Timestamp, Uint};
    let same = |id, ty: Type, body| Overload::global(id, vec![ty.clone(), ty.clone()], ty, body);
    let list = Type::list(A);
    vec![
        Function::new(
            "_+_",
            vec![
                same("add_bytes", Bytes, add).costs_by_overload(joined_cost).estimated(joined_estimate),
                same("add_double", Double, add),
                same("add_duration_duration", Duration, add),
                Overload::global("add_duration_timestamp", vec![Duration, Timestamp], Timestamp, add),
                Overload::global("add_timestamp_duration", vec![Timestamp, Duration], Timestamp, add),
                same("add_int64", Int, add),
                same("add_list", list, add).estimated(list_estimate),
                same("add_string", String, add).costs_by_overload(joined_cost).estimated(joined_estimate),
                same("add_uint64", Uint, add),
            ],
        ),
        Function::new(
            "_-_",
            vec![
                same("subtract_double", Double, subtract),
                same("subtract_duration_duration", Duration, subtract),
                same("subtract_int64", Int, subtract),
                Overload::global(
                    "subtract_timestamp_duration",
                    vec![Timestamp, Duration],
                    Timestamp,
                    subtract,
                ),
                Overload::global(
                    "subtract_timestamp_timestamp",
                    vec![Timestamp, Timestamp],
                    Duration,
                    subtract,
                ),
                same("subtract_uint64", Uint, subtract),
            ],
        ),
        Function::new(
            "_*_",
            vec![
                same("multiply_double", Double, multiply),
                same("multiply_int64", Int, multiply),
                same("multiply_uint64", Uint, multiply),
            ],
        ),
        Function::new(
            "_/_",
            vec![
                same("divide_double", Double, divide),
                same("divide_int64", Int, divide),
                same("divide_uint64", Uint, divide),
            ],
        ),
        Function::new("_%_", vec![same("modulo_int64", Int, modulo), same("modulo_uint64", Uint, modulo)]),
        Function::new(
            "-_",
            vec![
                Overload::global("negate_double", vec![Double], Double, negate),
                Overload::global("negate_int64", vec![Int], Int, negate),
            ],
        ),
    ]
}

fn int<'a>(value: Option<i64>) -> Outcome<'a> {
    value.map(Value::Int).ok_or_else(|| Error::new("integer overflow"))
}

fn uint<'a>(value: Option<u64>) -> Outcome<'a> {
    value.map(Value::Uint).ok_or_else(|| Error::new("unsigned integer overflow"))
}

fn duration<'a>(value: Option<i64>) -> Outcome<'a> {
    value.map(Value::Duration).ok_or_else(time::duration_overflow)
}

fn add<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    match args {
        [Value::Int(a), Value::Int(b)] => int(a.checked_add(*b)),
        [Value::Uint(a), Value::Uint(b)] => uint(a.checked_add(*b)),
        [Value::Double(a), Value::Double(b)] => Ok(Value::Double(a + b)),
        [Value::String(a), Value::String(b)] => Ok(Value::string([&**a, &**b].concat())),
        [Value::Bytes(a), Value::Bytes(b)] => Ok(Value::bytes([&**a, &**b].concat())),
        [Value::List(a), Value::List(b)] => Ok(Value::List(a.clone().plus(b))),
        [Value::Duration(a), Value::Duration(b)] => duration(a.checked_add(*b)),
        [Value::Duration(span), Value::Timestamp(at)] | [Value::Timestamp(at), Value::Duration(span)] => {
            time::add(*at, *span).map(Value::Timestamp)
        }
        _ => Err(Error::no_such_overload()),
    }
}

fn subtract<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    match args {
        [Value::Int(a), Value::Int(b)] => int(a.checked_sub(*b)),
        [Value::Uint(a), Value::Uint(b)] => uint(a.checked_sub(*b)),
        [Value::Double(a), Value::Double(b)] => Ok(Value::Double(a - b)),
        [Value::Duration(a), Value::Duration(b)] => duration(a.checked_sub(*b)),
        [Value::Timestamp(at), Value::Duration(span)] => time::subtract(*at, *span).map(Value::Timestamp),
        [Value::Timestamp(a), Value::Timestamp(b)] => time::between(*a, *b).map(Value::Duration),
        _ => Err(Error::no_such_overload()),
    }
}

fn multiply<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    match args {
        [Value::Int(a), Value::Int(b)] => int(a.checked_mul(*b)),
        [Value::Uint(a), Value::Uint(b)] => uint(a.checked_mul(*b)),
        [Value::Double(a), Value::Double(b)] => Ok(Value::Double(a * b)),
        _ => Err(Error::no_such_overload()),
    }
}

fn divide<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    match args {
        [Value::Int(_), Value::Int(0)] | [Value::Uint(_), Value::Uint(0)] => {
            Err(Error::new("division by zero"))
        }
        [Value::Int(a), Value::Int(b)] => int(a.checked_div(*b)),
        [Value::Uint(a), Value::Uint(b)] => uint(a.checked_div(*b)),
        [Value::Double(a), Value::Double(b)] => Ok(Value::Double(a / b)),
        _ => Err(Error::no_such_overload()),
    }
}

fn modulo<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    match args {
        [Value::Int(_), Value::Int(0)] | [Value::Uint(_), Value::Uint(0)] => {
            Err(Error::new("modulus by zero"))
        }
        [Value::Int(a), Value::Int(b)] => int(a.checked_rem(*b)),
        [Value::Uint(a), Value::Uint(b)] => uint(a.checked_rem(*b)),
        _ => Err(Error::no_such_overload()),
    }
}

fn negate<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    match args {
        [Value::Int(value)] => int(value.checked_neg()),
        [Value::Double(value)] => Ok(Value::Double(-value)),
        _ => Err(Error::no_such_overload()),
    }
}

fn joined_cost(args: &[Value<'_>], _: &Value<'_>) -> u64 {
    scale(args[0].size().saturating_add(args[1].size()), STRING_TRAVERSAL)
}

fn joined_estimate(args: &[Argument<'_>]) -> Option<CallEstimate> {
    let size = args[0].size.plus(args[1].size);
    Some(CallEstimate::sized(size.scaled(STRING_TRAVERSAL), size))
}

fn list_estimate(args: &[Argument<'_>]) -> Option<CallEstimate> {
    Some(CallEstimate::sized(Range::ONE, args[0].size.plus(args[1].size)))
}
