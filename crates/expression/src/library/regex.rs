//! `find` and `findAll`: matches of a pattern in a text.

use super::{Argument, CallEstimate, Function, Library, Outcome, Overload, charge};
use crate::{
    cost::{REGEX_LENGTH, Range, STRING_TRAVERSAL},
    error::Error,
    pattern,
    ty::Type,
    value::Value,
};

pub(crate) fn library() -> Library {
    let overload = |id, more: &[Type], result, body| {
        let parameters = [&[Type::String, Type::String], more].concat();
        Overload::member(id, parameters, result, body).costs(cost).estimated(estimate)
    };
    let list = || Type::list(Type::String);
    Library {
        functions: vec![
            Function::new("find", vec![overload("string_find_string", &[], Type::String, find)]),
            Function::new(
                "findAll",
                vec![
                    overload("string_find_all_string", &[], list(), find_all),
                    overload("string_find_all_string_int", &[Type::Int], list(), find_all),
                ],
            ),
        ],
        ..Library::default()
    }
}

fn compile(pattern: &str) -> Result<regex::Regex, Error> {
    pattern::recall(pattern).map_err(|error| Error::new(format!("Illegal regex: {error}")))
}

fn find<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    let [Value::String(text), Value::String(pattern)] = args else { return Err(Error::no_such_overload()) };
    let regex = compile(pattern)?;
    Ok(Value::string(regex.find(text).map_or("", |found| found.as_str())))
}

fn find_all<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    let (text, pattern, limit) = match args {
        [Value::String(text), Value::String(pattern)] => (text, pattern, -1),
        [Value::String(text), Value::String(pattern), Value::Int(limit)] => (text, pattern, *limit),
        _ => return Err(Error::no_such_overload()),
    };
    let regex = compile(pattern)?;
    // A negative limit is none.
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let found = regex.find_iter(text).take(limit).map(|found| Value::string(found.as_str()));
    Ok(Value::list(found.collect::<Vec<_>>()))
}

fn cost(args: &[Value<'_>], _: &Value<'_>) -> u64 {
    let compiling = args.get(1).and_then(Value::as_str).map_or(0, pattern::compile_cost);
    charge::matching(charge::size(args, 0), charge::size(args, 1)).saturating_add(compiling)
}

fn estimate(args: &[Argument<'_>]) -> Option<CallEstimate> {
    let [text, pattern, ..] = args else { return None };
    let walk = text.size.plus(Range::ONE).scaled(STRING_TRAVERSAL);
    let cost = walk.times(pattern.size.scaled(REGEX_LENGTH));
    // At worst every character is a match.
    Some(CallEstimate::sized(cost, Range { min: 0, max: text.size.max }))
}
