//! Indexes, membership, size.

use super::{A, B};
use crate::{
    cost::Range,
    error::Error,
    library::{Argument, CallEstimate, Function, Outcome, Overload},
    ty::Type,
    value::Value,
};

pub(super) fn functions() -> Vec<Function> {
    let list = || Type::list(A);
    let map = || Type::map(A, B);
    let sized = |ids: [&'static str; 2], ty: Type| {
        let global = Overload::global(ids[0], vec![ty.clone()], Type::Int, size);
        [global, Overload::member(ids[1], vec![ty], Type::Int, size)]
    };
    let sizes = [
        sized(["size_bytes", "bytes_size"], Type::Bytes),
        sized(["size_list", "list_size"], list()),
        sized(["size_map", "map_size"], map()),
        sized(["size_string", "string_size"], Type::String),
    ];
    vec![
        Function::new(
            "_[_]",
            vec![
                Overload::global("index_list", vec![list(), Type::Int], A, evaluated_elsewhere),
                Overload::global("index_map", vec![map(), A], B, evaluated_elsewhere),
            ],
        ),
        Function::new(
            "@in",
            vec![
                Overload::global("in_list", vec![A, list()], Type::Bool, is_in)
                    .costs_by_overload(|args, _| args[1].size())
                    .estimated(in_list_estimate),
                Overload::global("in_map", vec![A, map()], Type::Bool, is_in),
            ],
        ),
        Function::new("size", sizes.into_iter().flatten().collect()),
    ]
}

fn evaluated_elsewhere<'a>(_: &[Value<'a>]) -> Outcome<'a> {
    Err(Error::no_such_overload())
}

fn is_in<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    match args {
        [value, Value::List(list)] => Ok(Value::Bool(list.contains(value))),
        [key, Value::Map(map)] => Ok(Value::Bool(map.find(key).is_some())),
        _ => Err(Error::no_such_overload()),
    }
}

fn in_list_estimate(args: &[Argument<'_>]) -> Option<CallEstimate> {
    let size = args[1].size;
    Some(CallEstimate::of(Range { min: size.min, max: size.max }.scaled(1.0)))
}

fn size<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    match &args[0] {
        sized @ (Value::String(_) | Value::Bytes(_) | Value::List(_) | Value::Map(_)) => {
            Ok(Value::Int(sized.size() as i64))
        }
        _ => Err(Error::no_such_overload()),
    }
}
