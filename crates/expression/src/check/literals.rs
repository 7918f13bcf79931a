//! Rejects literals that would only fail at run time: durations, times, patterns, mixed lists.

use crate::{
    ast::{Entry, Expr, Node},
    issues::Found,
    library::strings,
    pattern, time,
    ty::Type,
    value::Value,
};

/// The function whose arguments are a list of anything.
const TAKES_MIXED_LISTS: &str = "format";

pub(super) fn check(expr: &Expr, types: &[Type], found: &mut Found<'_>) {
    walk(expr, types, false, found);
}

fn walk(expr: &Expr, types: &[Type], mixed: bool, found: &mut Found<'_>) {
    match &expr.node {
        Node::Literal(_) | Node::Ident(_) => {}
        Node::Select { operand, .. } => walk(operand, types, mixed, found),
        Node::Call { function, target, args } => {
            if let Some(argument) = args.first()
                && let Node::Literal(literal) = &argument.node
                && !is_fine(function, literal)
            {
                found.at(argument.offset, format!("invalid {function} argument"));
            }
            if let Some((node, problem)) = format_problem(expr, types) {
                found.at(node.offset, problem);
            }
            let mixed = mixed || &**function == TAKES_MIXED_LISTS;
            for part in target.as_deref().into_iter().chain(args) {
                walk(part, types, mixed, found);
            }
        }
        Node::List { items, optional } => {
            for item in items {
                walk(item, types, mixed, found);
            }
            let elements = items
                .iter()
                .enumerate()
                .map(|(index, item)| (item.offset, element(types, item, optional.contains(&(index as u32)))));
            if !mixed {
                refuse_mixed(elements, 1, found);
            }
        }
        Node::Map(entries) => {
            entries.iter().for_each(|entry| walk_entry(entry, types, mixed, found));
            if !mixed {
                let keys = entries.iter().map(|entry| (entry.key.offset, &types[entry.key.id as usize]));
                refuse_mixed(keys, usize::MAX, found);
                let value =
                    |entry: &Entry| (entry.value.offset, element(types, &entry.value, entry.optional));
                refuse_mixed(entries.iter().map(value), usize::MAX, found);
            }
        }
        Node::Struct { fields, .. } => {
            fields.iter().for_each(|field| walk(&field.value, types, mixed, found))
        }
        Node::Fold(fold) => {
            for part in [&fold.range, &fold.start, &fold.condition, &fold.step, &fold.result] {
                walk(part, types, mixed, found);
            }
        }
    }
}

fn walk_entry(entry: &Entry, types: &[Type], mixed: bool, found: &mut Found<'_>) {
    walk(&entry.key, types, mixed, found);
    walk(&entry.value, types, mixed, found);
}

/// The error in `'literal'.format([…])`, if any.
fn format_problem<'e>(call: &'e Expr, types: &[Type]) -> Option<(&'e Expr, String)> {
    let Node::Call { function, target: Some(target), args } = &call.node else { return None };
    let (Node::Literal(Value::String(format)), [list]) = (&target.node, &args[..]) else { return None };
    let Node::List { items, .. } = &list.node else { return None };
    if &**function != TAKES_MIXED_LISTS {
        return None;
    }
    strings::format::problem(format, call, items, &|expr| types[expr.id as usize].clone())
}

fn is_fine(function: &str, literal: &Value<'_>) -> bool {
    let Value::String(text) = literal else { return true };
    match function {
        "duration" => time::parse_duration(text).is_ok(),
        "timestamp" => time::parse_timestamp(text).is_ok(),
        "matches" => pattern::measure(text).is_ok(),
        _ => true,
    }
}

fn element<'t>(types: &'t [Type], item: &Expr, optional: bool) -> &'t Type {
    match &types[item.id as usize] {
        Type::Optional(inner) if optional => inner,
        other => other,
    }
}

/// Reports up to `most` elements whose type is not that of the first.
fn refuse_mixed<'t>(mut elements: impl Iterator<Item = (u32, &'t Type)>, most: usize, found: &mut Found<'_>) {
    let Some((_, first)) = elements.next() else { return };
    for (offset, ty) in elements.filter(|(_, ty)| *ty != first).take(most) {
        found.at(offset, format!("expected type '{first}' but found '{ty}'"));
    }
}
