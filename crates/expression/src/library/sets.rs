//! `sets.contains`, `sets.equivalent` and `sets.intersects`: lists compared without regard to order.

use super::{Argument, CallEstimate, Function, Library, Outcome, Overload, charge};
use crate::{
    cost::Range,
    equality::equal,
    error::Error,
    ty::Type,
    value::{List, Value},
};

pub(crate) fn library() -> Library {
    let function = |name, id, body, cost, estimate| {
        let list = Type::list(Type::Param("T"));
        let overload = Overload::global(id, vec![list.clone(), list], Type::Bool, body);
        Function::new(name, vec![overload.costs_by_overload(cost).estimated(estimate)])
    };
    Library {
        functions: vec![
            function("sets.contains", "list_sets_contains_list", contains, once, once_estimate),
            function(
                "sets.equivalent",
                "list_sets_equivalent_list",
                equivalent,
                both_ways,
                both_ways_estimate,
            ),
            function("sets.intersects", "list_sets_intersects_list", intersects, once, once_estimate),
        ],
        ..Library::default()
    }
}

fn contains<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    let (a, b) = lists(args)?;
    Ok(Value::Bool(holds_all(a, b)))
}

fn equivalent<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    let (a, b) = lists(args)?;
    Ok(Value::Bool(holds_all(a, b) && holds_all(b, a)))
}

fn intersects<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    let (a, b) = lists(args)?;
    Ok(Value::Bool(a.iter().any(|item| holds(b, &item))))
}

fn lists<'v, 'a>(args: &'v [Value<'a>]) -> Result<(&'v List<'a>, &'v List<'a>), Error> {
    charge::afford(once(args, &Value::Null))?;
    match args {
        [Value::List(a), Value::List(b)] => Ok((a, b)),
        _ => Err(Error::no_such_overload()),
    }
}

fn holds_all(list: &List<'_>, items: &List<'_>) -> bool {
    items.iter().all(|item| holds(list, &item))
}

fn holds(list: &List<'_>, item: &Value<'_>) -> bool {
    list.iter().any(|other| equal(&other, item))
}

/// Every element is compared with every other.
fn once(args: &[Value<'_>], _: &Value<'_>) -> u64 {
    charge::size(args, 0).saturating_mul(charge::size(args, 1)).saturating_add(1)
}

fn both_ways(args: &[Value<'_>], _: &Value<'_>) -> u64 {
    charge::size(args, 0).saturating_mul(charge::size(args, 1)).saturating_mul(2).saturating_add(1)
}

fn once_estimate(args: &[Argument<'_>]) -> Option<CallEstimate> {
    estimate(args, 1.0)
}

fn both_ways_estimate(args: &[Argument<'_>]) -> Option<CallEstimate> {
    estimate(args, 2.0)
}

fn estimate(args: &[Argument<'_>], factor: f64) -> Option<CallEstimate> {
    let [a, b] = args else { return None };
    Some(CallEstimate::of(a.size.times(b.size).scaled(factor).plus(Range::ONE)))
}
