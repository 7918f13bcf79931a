//! `&&`, `||`, `!`, `?:`, `==`, `!=`: the evaluator knows most of them; here are their signatures.

use super::A;
use crate::{
    cost::{Range, STRING_TRAVERSAL},
    equality::equal,
    error::Error,
    library::{Argument, CallEstimate, Function, Outcome, Overload},
    ty::Type,
    value::Value,
};

/// Kubernetes: no format has a longer name.
const MAX_FORMAT_NAME: u64 = 64;

pub(super) fn functions() -> Vec<Function> {
    let two = || vec![Type::Bool, Type::Bool];
    vec![
        Function::new(
            "_?_:_",
            vec![Overload::global("conditional", vec![Type::Bool, A, A], A, evaluated_elsewhere)],
        ),
        Function::new("_&&_", vec![Overload::global("logical_and", two(), Type::Bool, evaluated_elsewhere)]),
        Function::new("_||_", vec![Overload::global("logical_or", two(), Type::Bool, evaluated_elsewhere)]),
        Function::new("!_", vec![Overload::global("logical_not", vec![Type::Bool], Type::Bool, not)]),
        Function::new(
            "@not_strictly_false",
            vec![Overload::global("not_strictly_false", vec![Type::Bool], Type::Bool, evaluated_elsewhere)],
        ),
        Function::new(
            "_==_",
            vec![Overload::global("equals", vec![A, A], Type::Bool, equals).estimated(compare_estimate)],
        ),
        Function::new(
            "_!=_",
            vec![
                Overload::global("not_equals", vec![A, A], Type::Bool, not_equals)
                    .estimated(shorter_estimate),
            ],
        ),
    ]
}

fn evaluated_elsewhere<'a>(_: &[Value<'a>]) -> Outcome<'a> {
    Err(Error::no_such_overload())
}

fn not<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    match args {
        [Value::Bool(value)] => Ok(Value::Bool(!value)),
        _ => Err(Error::no_such_overload()),
    }
}

fn equals<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    Ok(Value::Bool(equal(&args[0], &args[1])))
}

fn not_equals<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    Ok(Value::Bool(!equal(&args[0], &args[1])))
}

/// Kubernetes: `==` of most of its own types counts one.
fn compare_estimate(args: &[Argument<'_>]) -> Option<CallEstimate> {
    let Type::Opaque(name) = args[0].ty else { return shorter_estimate(args) };
    let walked = |max| Range { min: 1, max }.scaled(STRING_TRAVERSAL);
    Some(CallEstimate::of(match *name {
        "kubernetes.NamedFormat" => walked(MAX_FORMAT_NAME),
        "kubernetes.URL" => {
            let size = args[1].size;
            walked(if size == Range::UNKNOWN { 1 } else { size.max })
        }
        _ => Range::ONE,
    }))
}

/// A walk over the shorter of two.
pub(super) fn shorter_estimate(args: &[Argument<'_>]) -> Option<CallEstimate> {
    let max = args[0].size.max.min(args[1].size.max);
    let range = Range { min: u64::from(max > 0), max };
    Some(CallEstimate::of(range.scaled(STRING_TRAVERSAL)))
}
