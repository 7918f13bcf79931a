//! Kubernetes' cost of calls that traverse their arguments.

use super::{Argument, CallEstimate};
use crate::{
    cost::{REGEX_LENGTH, Range, STRING_TRAVERSAL, scale},
    error::Error,
    ty::Type,
    value::Value,
};

/// The most that one call may cost, whatever the budget of the run.
const CALL_LIMIT: u64 = 1_000_000;
/// A longer text could not be read within that limit, so none is created.
pub(super) const TEXT_LIMIT: usize = CALL_LIMIT as usize * 10;

/// Fails for work above the limit, for calls that would take long before they are charged.
pub(super) fn afford(cost: u64) -> Result<(), Error> {
    if cost > CALL_LIMIT { Err(Error::cost_limit_exceeded()) } else { Ok(()) }
}

/// One traversal of the first argument.
pub(super) fn walk(args: &[Value<'_>], _: &Value<'_>) -> u64 {
    scale(size(args, 0), STRING_TRAVERSAL)
}

pub(super) fn walk_estimate(args: &[Argument<'_>]) -> Option<CallEstimate> {
    Some(CallEstimate::of(args.first()?.size.scaled(STRING_TRAVERSAL)))
}

/// As [`walk_estimate`], where the result is about as long.
pub(super) fn copy_estimate(args: &[Argument<'_>]) -> Option<CallEstimate> {
    let size = args.first()?.size;
    Some(CallEstimate::sized(size.scaled(STRING_TRAVERSAL), size))
}

/// A traversal of the first argument to read it, and another to compare or write.
pub(super) fn walk_twice(args: &[Value<'_>], _: &Value<'_>) -> u64 {
    scale(size(args, 0), 2.0 * STRING_TRAVERSAL)
}

pub(super) fn walk_twice_estimate(args: &[Argument<'_>]) -> Option<CallEstimate> {
    Some(CallEstimate::of(args.first()?.size.scaled(2.0 * STRING_TRAVERSAL)))
}

/// A traversal of the first argument down to its leaves.
pub(super) fn traverse(args: &[Value<'_>], _: &Value<'_>) -> u64 {
    args.first().map_or(0, traversal)
}

/// One step for each element, and a traversal of elements that are text.
pub(super) fn traverse_estimate(args: &[Argument<'_>]) -> Option<CallEstimate> {
    let target = args.first()?;
    let Some(element) = target.ty.first_parameter() else {
        return Some(CallEstimate::of(target.size.scaled(STRING_TRAVERSAL)));
    };
    let each = match element {
        Type::String | Type::Bytes => Range::ONE.plus(target.element_size.scaled(STRING_TRAVERSAL)),
        _ => Range::ONE,
    };
    Some(CallEstimate::of(target.size.times(each)))
}

/// The cost of running a pattern of some length on a text.
pub(super) fn matching(text: u64, pattern: u64) -> u64 {
    // One more than the text, so that an expensive pattern costs something even for an empty text.
    let text = scale(text.saturating_add(1), STRING_TRAVERSAL);
    text.saturating_mul(scale(pattern, REGEX_LENGTH))
}

/// The size of an argument that may be missing.
pub(super) fn size(args: &[Value<'_>], index: usize) -> u64 {
    args.get(index).map_or(0, Value::size)
}

fn traversal(value: &Value<'_>) -> u64 {
    match value {
        Value::String(text) => (text.len() as f64 * STRING_TRAVERSAL) as u64,
        Value::Bytes(bytes) => (bytes.len() as f64 * STRING_TRAVERSAL) as u64,
        Value::List(list) => list.iter().map(|item| traversal(&item)).sum(),
        Value::Map(map) => {
            let entry = |key: &Value<'_>| traversal(key) + map.find(key).map_or(0, |value| traversal(&value));
            map.keys().iter().map(entry).sum()
        }
        _ => 1,
    }
}
