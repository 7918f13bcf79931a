//! `contains`, `startsWith`, `endsWith`, `matches`.

use crate::{
    cost::{REGEX_LENGTH, Range, STRING_TRAVERSAL, scale},
    error::Error,
    evaluate,
    library::{Argument, CallEstimate, Function, Outcome, Overload},
    pattern,
    ty::Type,
    value::Value,
};

pub(super) fn functions() -> Vec<Function> {
    let two = || vec![Type::String, Type::String];
    vec![
        Function::new(
            "contains",
            vec![
                Overload::member("contains_string", two(), Type::Bool, contains)
                    .costs_by_overload(contains_cost)
                    .estimated(contains_estimate),
            ],
        ),
        Function::new(
            "startsWith",
            vec![
                Overload::member("starts_with_string", two(), Type::Bool, starts_with)
                    .costs_by_overload(affix_cost)
                    .estimated(affix_estimate),
            ],
        ),
        Function::new(
            "endsWith",
            vec![
                Overload::member("ends_with_string", two(), Type::Bool, ends_with)
                    .costs_by_overload(affix_cost)
                    .estimated(affix_estimate),
            ],
        ),
        Function::new(
            "matches",
            vec![
                // Kubernetes: the global form is charged as any other call.
                Overload::global("matches", two(), Type::Bool, matches),
                Overload::member("matches_string", two(), Type::Bool, matches)
                    .costs_by_overload(matches_cost)
                    .estimated(matches_estimate),
            ],
        ),
    ]
}

fn test<'a>(args: &[Value<'a>], holds: fn(&str, &str) -> bool) -> Outcome<'a> {
    match args {
        [Value::String(text), Value::String(part)] => Ok(Value::Bool(holds(text, part))),
        _ => Err(Error::no_such_overload()),
    }
}

fn contains<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    test(args, |text, part| text.contains(part))
}

fn starts_with<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    test(args, |text, part| text.starts_with(part))
}

fn ends_with<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    test(args, |text, part| text.ends_with(part))
}

fn matches<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    match args {
        [Value::String(text), Value::String(expression)] => {
            Ok(Value::Bool(pattern::recall(expression)?.is_match(text)))
        }
        _ => Err(Error::no_such_overload()),
    }
}

fn affix_cost(args: &[Value<'_>], _: &Value<'_>) -> u64 {
    scale(args[0].size(), STRING_TRAVERSAL)
}

/// Kubernetes: the estimate counts the affix, the charge at run time the text.
fn affix_estimate(args: &[Argument<'_>]) -> Option<CallEstimate> {
    Some(CallEstimate::of(args[1].size.scaled(STRING_TRAVERSAL)))
}

fn contains_cost(args: &[Value<'_>], _: &Value<'_>) -> u64 {
    scale(args[0].size(), STRING_TRAVERSAL).saturating_mul(scale(args[1].size(), STRING_TRAVERSAL))
}

fn contains_estimate(args: &[Argument<'_>]) -> Option<CallEstimate> {
    let walk = |argument: &Argument<'_>| argument.size.scaled(STRING_TRAVERSAL);
    Some(CallEstimate::of(walk(&args[0]).times(walk(&args[1]))))
}

fn matches_cost(args: &[Value<'_>], _: &Value<'_>) -> u64 {
    evaluate::pattern_cost(args[0].size(), args[1].size()).saturating_add(compile_cost(&args[1]))
}

/// A pattern that is known only at run time is compiled then.
fn compile_cost(expression: &Value<'_>) -> u64 {
    expression.as_str().map_or(0, pattern::compile_cost)
}

fn matches_estimate(args: &[Argument<'_>]) -> Option<CallEstimate> {
    let text = args[0].size.plus(Range::ONE).scaled(STRING_TRAVERSAL);
    Some(CallEstimate::of(text.times(args[1].size.scaled(REGEX_LENGTH))))
}
