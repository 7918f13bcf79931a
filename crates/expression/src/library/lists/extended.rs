//! `sort`, `sortBy`, `slice`, `flatten`, `distinct`, `reverse`, `lists.range`: cel-go's extension for lists.

use crate::{
    ast::{Expander, Expr, Fold, Macro, MacroError, Node},
    cost::{LIST_CREATE, Range, STRING_TRAVERSAL},
    equality::{compare, equal},
    error::Error,
    library::{Argument, CallEstimate, Estimate, Function, Library, Outcome, Overload, charge},
    macros,
    ty::Type,
    value::{List, Value},
};
use std::cmp::Ordering;

use super::ORDERED;

const SORT: [&str; 8] = [
    "list_int_sort",
    "list_uint_sort",
    "list_double_sort",
    "list_bool_sort",
    "list_google.protobuf.Duration_sort",
    "list_google.protobuf.Timestamp_sort",
    "list_string_sort",
    "list_bytes_sort",
];

const SORT_BY: [&str; 8] = [
    "list_int_sortByAssociatedKeys",
    "list_uint_sortByAssociatedKeys",
    "list_double_sortByAssociatedKeys",
    "list_bool_sortByAssociatedKeys",
    "list_google.protobuf.Duration_sortByAssociatedKeys",
    "list_google.protobuf.Timestamp_sortByAssociatedKeys",
    "list_string_sortByAssociatedKeys",
    "list_bytes_sortByAssociatedKeys",
];

pub(crate) fn library() -> Library {
    let list = || Type::list(Type::Param("T"));
    let member =
        |id, more: &[Type], result, body| Overload::member(id, [&[list()], more].concat(), result, body);
    let sorts = SORT.into_iter().zip(ORDERED).map(|(id, element)| {
        let estimate: Estimate = if is_text(&element) { sort_text_estimate } else { sort_estimate };
        let elements = Type::list(element);
        let overload = Overload::member(id, vec![elements.clone()], elements, sort);
        overload.costs_by_overload(compare_first).estimated(estimate)
    });
    let sorts_by = SORT_BY.into_iter().zip(ORDERED).map(|(id, key)| {
        let estimate: Estimate = if is_text(&key) { sort_by_text_estimate } else { sort_by_estimate };
        let overload = Overload::member(id, vec![list(), Type::list(key)], list(), sort_by_keys);
        overload.costs_by_overload(compare_second).estimated(estimate)
    });
    let flatten_once = Overload::member("list_flatten", vec![Type::list(list())], list(), flatten);
    let dyn_list = || Type::list(Type::Dyn);
    let flatten_deep = Overload::member("list_flatten_int", vec![dyn_list(), Type::Int], dyn_list(), flatten);
    let range = Overload::global("lists_range", vec![Type::Int], Type::list(Type::Int), range);
    Library {
        functions: vec![
            Function::new(
                "slice",
                vec![
                    member("list_slice", &[Type::Int, Type::Int], list(), slice)
                        .costs_by_overload(result_size)
                        .estimated(slice_estimate),
                ],
            ),
            Function::new(
                "flatten",
                vec![
                    flatten_once.costs_by_overload(flatten_cost).estimated(flatten_estimate),
                    flatten_deep.costs_by_overload(flatten_cost).estimated(flatten_estimate),
                ],
            ),
            Function::new("sort", sorts.collect()),
            Function::new(SORT_BY_KEYS, sorts_by.collect()),
            Function::new(
                "lists.range",
                vec![range.costs_by_overload(result_size).estimated(range_estimate)],
            ),
            Function::new(
                "reverse",
                vec![
                    member("list_reverse", &[], list(), reverse)
                        .costs_by_overload(result_size)
                        .estimated(reverse_estimate),
                ],
            ),
            Function::new(
                "distinct",
                vec![
                    member("list_distinct", &[], list(), distinct)
                        .costs_by_overload(compare_first)
                        .estimated(distinct_estimate),
                ],
            ),
        ],
        macros: vec![Macro { name: "sortBy", member: true, arguments: Some(2), expand: sort_by }],
        ..Library::default()
    }
}

const SORT_BY_KEYS: &str = "@sortByAssociatedKeys";

/// `list.sortBy(x, key)` names the list, builds the list of keys, and sorts the list by the keys.
fn sort_by(make: &mut Expander, target: Option<&Expr>, args: &[Expr]) -> Result<Option<Expr>, MacroError> {
    const INPUT: &str = "@__sortBy_input__";
    let Some(target) = target else { return Ok(None) };
    if matches!(target.node, Node::Literal(_) | Node::Map(_) | Node::Struct { .. }) {
        let problem =
            "sortBy can only be applied to a list, identifier, comprehension, call or select expression";
        return Err(MacroError::at(target, problem));
    }
    let input = make.ident(INPUT);
    let Some(keys) = macros::map(make, Some(&input), args)? else { return Ok(None) };
    let input = make.ident(INPUT);
    let result = make.member_call(SORT_BY_KEYS, input, vec![keys]);
    let fold = Fold {
        range: make.node(Node::List { items: Vec::new(), optional: Vec::new() }),
        variable: "#unused".into(),
        second: None,
        accumulator: INPUT.into(),
        start: target.clone(),
        condition: make.literal(Value::Bool(false)),
        step: make.ident(INPUT),
        result,
    };
    Ok(Some(make.node(Node::Fold(Box::new(fold)))))
}

fn list<'v, 'a>(args: &'v [Value<'a>]) -> Result<&'v List<'a>, Error> {
    args.first().and_then(Value::as_list).ok_or_else(Error::no_such_overload)
}

fn slice<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    let [Value::List(list), Value::Int(start), Value::Int(end)] = args else {
        return Err(Error::no_such_overload());
    };
    let refuse = |problem: &str| Err(Error::new(format!("cannot slice({start}, {end}), {problem}")));
    let (Ok(from), Ok(to)) = (usize::try_from(*start), usize::try_from(*end)) else {
        return refuse("negative indexes not supported");
    };
    if from > to {
        return refuse("start index must be less than or equal to end index");
    }
    if list.len() < to {
        return refuse(&format!("list is length {}", list.len()));
    }
    Ok(Value::list((from..to).filter_map(|index| list.at(index)).collect::<Vec<_>>()))
}

fn flatten<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    let depth = match args.get(1) {
        None => 1,
        Some(Value::Int(depth)) if *depth < 0 => return Err(Error::new("level must be non-negative")),
        Some(Value::Int(depth)) => *depth,
        Some(_) => return Err(Error::no_such_overload()),
    };
    let mut out = Vec::new();
    flatten_into(list(args)?, depth, &mut out);
    Ok(Value::list(out))
}

fn flatten_into<'a>(list: &List<'a>, depth: i64, out: &mut Vec<Value<'a>>) {
    for item in list.iter() {
        match &item {
            Value::List(inner) if depth > 0 => flatten_into(inner, depth - 1, out),
            _ => out.push(item),
        }
    }
}

fn sort<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    let list = list(args)?;
    sorted(list, list)
}

fn sort_by_keys<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    let [Value::List(list), Value::List(keys)] = args else { return Err(Error::no_such_overload()) };
    if list.len() != keys.len() {
        return Err(Error::new(format!(
            "{SORT_BY_KEYS}() expected a list of the same size as the associated keys list, but got {} and {} \
             elements respectively",
            list.len(),
            keys.len()
        )));
    }
    sorted(list, keys)
}

fn sorted<'a>(list: &List<'a>, keys: &List<'a>) -> Outcome<'a> {
    let mut pairs: Vec<_> = keys.iter().zip(list.iter()).collect();
    if let Some((first, _)) = pairs.first() {
        if compare(first, first) == Err(Error::no_such_overload()) {
            return Err(Error::new("list elements must be comparable"));
        }
        if pairs.iter().any(|(key, _)| key.ty().name() != first.ty().name()) {
            return Err(Error::new("list elements must have the same type"));
        }
    }
    pairs.sort_by(|(a, _), (b, _)| compare(a, b).unwrap_or(Ordering::Equal));
    Ok(Value::list(pairs.into_iter().map(|(_, item)| item).collect::<Vec<_>>()))
}

fn range<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    let [Value::Int(end)] = args else { return Err(Error::no_such_overload()) };
    charge::afford(u64::try_from(*end).unwrap_or(0))?;
    Ok(Value::list((0..*end).map(Value::Int).collect::<Vec<_>>()))
}

fn reverse<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    let list = list(args)?;
    Ok(Value::list((0..list.len()).rev().filter_map(|index| list.at(index)).collect::<Vec<_>>()))
}

fn distinct<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    charge::afford(compare_cost(list(args)?))?;
    let mut seen: Vec<Value<'a>> = Vec::new();
    for item in list(args)?.iter() {
        if !seen.iter().any(|other| equal(&item, other)) {
            seen.push(item);
        }
    }
    Ok(Value::list(seen))
}

/// The cost of a call that builds a list: the call, the list, and each step.
fn making(steps: u64) -> u64 {
    steps.saturating_add(1 + LIST_CREATE)
}

fn result_size(_: &[Value<'_>], result: &Value<'_>) -> u64 {
    making(result.size())
}

fn flatten_cost(args: &[Value<'_>], _: &Value<'_>) -> u64 {
    let depth = match args.get(1) {
        Some(Value::Int(depth)) => *depth as f64,
        _ => 1.0,
    };
    making((charge::size(args, 0) as f64 * depth) as u64)
}

fn compare_first(args: &[Value<'_>], _: &Value<'_>) -> u64 {
    args.first().and_then(Value::as_list).map_or(0, compare_cost)
}

fn compare_second(args: &[Value<'_>], _: &Value<'_>) -> u64 {
    args.get(1).and_then(Value::as_list).map_or(0, compare_cost)
}

/// Every element with every other.
fn compare_cost(list: &List<'_>) -> u64 {
    let size = list.len() as u64;
    let factor = match list.at(0) {
        Some(Value::String(_) | Value::Bytes(_)) => 2.0 + STRING_TRAVERSAL,
        _ => 2.0,
    };
    making((size.saturating_mul(size) as f64 * factor) as u64)
}

fn making_estimate(factor: f64, size: Range) -> Option<CallEstimate> {
    let cost = size.scaled(factor).plus(Range::exactly(1 + LIST_CREATE));
    Some(CallEstimate::sized(cost, size))
}

/// A literal number, if it is one; negative numbers count as zero.
fn literal(argument: Option<&Argument<'_>>, otherwise: u64) -> u64 {
    match argument.and_then(|argument| argument.literal) {
        Some(Value::Int(number)) => u64::try_from(*number).unwrap_or(0),
        _ => otherwise,
    }
}

fn slice_estimate(args: &[Argument<'_>]) -> Option<CallEstimate> {
    let size = args.first()?.size;
    let (start, end) = (literal(args.get(1), 0), literal(args.get(2), size.max));
    // Kubernetes: a slice that ends before it starts wraps around to the largest cost.
    making_estimate(1.0, Range::exactly(end.wrapping_sub(start)))
}

fn range_estimate(args: &[Argument<'_>]) -> Option<CallEstimate> {
    making_estimate(1.0, Range::exactly(literal(args.first(), u64::MAX)))
}

fn reverse_estimate(args: &[Argument<'_>]) -> Option<CallEstimate> {
    making_estimate(1.0, args.first()?.size)
}

fn flatten_estimate(args: &[Argument<'_>]) -> Option<CallEstimate> {
    let depth = if args.len() > 1 { literal(args.get(1), u64::MAX) } else { 1 };
    making_estimate(depth as f64, args.first()?.size)
}

fn distinct_estimate(args: &[Argument<'_>]) -> Option<CallEstimate> {
    let size = args.first()?.size;
    making_estimate(2.0, size.times(size))
}

fn is_text(ty: &Type) -> bool {
    matches!(ty, Type::String | Type::Bytes)
}

fn sort_estimate(args: &[Argument<'_>]) -> Option<CallEstimate> {
    compare_estimate(args.first()?, 2.0)
}

fn sort_text_estimate(args: &[Argument<'_>]) -> Option<CallEstimate> {
    compare_estimate(args.first()?, 2.0 + STRING_TRAVERSAL)
}

fn sort_by_estimate(args: &[Argument<'_>]) -> Option<CallEstimate> {
    compare_estimate(args.get(1)?, 2.0)
}

fn sort_by_text_estimate(args: &[Argument<'_>]) -> Option<CallEstimate> {
    compare_estimate(args.get(1)?, 2.0 + STRING_TRAVERSAL)
}

/// Every key with every other.
fn compare_estimate(keys: &Argument<'_>, factor: f64) -> Option<CallEstimate> {
    making_estimate(factor, keys.size.times(keys.size))
}
