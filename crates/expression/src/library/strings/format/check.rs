//! Checks a literal format against the types of its arguments, before the run.

use super::{CUT_SHORT, Clause, Piece, Verb, during_formatting, next_piece, out_of_range, refusal};
use crate::{
    ast::{Expr, Node},
    ty::Type,
};

/// The first error in `'format'.format([items])`, and the node to point at.
pub(crate) fn problem<'e>(
    format: &str,
    call: &'e Expr,
    items: &'e [Expr],
    type_of: &dyn Fn(&Expr) -> Type,
) -> Option<(&'e Expr, String)> {
    let mut rest = format;
    let mut index = 0;
    while let Some((piece, after)) = next_piece(rest) {
        rest = match piece {
            Piece::Literal(_) => after,
            Piece::Clause("") => return Some((call, CUT_SHORT.to_owned())),
            Piece::Clause(text) => {
                let Some(item) = items.get(index) else { return Some((call, out_of_range(index))) };
                let (clause, after) = match Clause::read(text) {
                    Ok(read) => read,
                    Err(problem) => return Some((call, problem)),
                };
                if let Some(bad) = misfit(clause.verb, item, type_of) {
                    let given = type_of(bad);
                    return Some((bad, during_formatting(refusal(clause.verb, given.name()))));
                }
                index += 1;
                after
            }
        };
    }
    let (expected, got) = (index, items.len());
    let too_many =
        || format!("too many arguments supplied to string.format (expected {expected}, got {got})");
    (got > expected).then(|| (call, too_many()))
}

/// The node whose type the clause does not accept.
fn misfit<'e>(verb: Verb, item: &'e Expr, type_of: &dyn Fn(&Expr) -> Type) -> Option<&'e Expr> {
    use Type::{Bool, Bytes, Double, Dyn, Int, String, Uint};
    let ty = type_of(item);
    let fits = match verb {
        Verb::Text => return textless(item, type_of),
        Verb::Decimal | Verb::Octal => matches!(ty, Dyn | Int | Uint),
        // Text may be NaN, Infinity or -Infinity.
        Verb::Fixed | Verb::Scientific => matches!(ty, Dyn | Double | String),
        Verb::Binary => matches!(ty, Dyn | Int | Uint | Bool),
        Verb::Hex { .. } => matches!(ty, Dyn | Int | Uint | String | Bytes),
    };
    (!fits).then_some(item)
}

/// The first node, also inside list and map literals, that cannot be printed as text.
fn textless<'e>(item: &'e Expr, type_of: &dyn Fn(&Expr) -> Type) -> Option<&'e Expr> {
    if matches!(type_of(item), Type::Opaque(_) | Type::Object(_) | Type::Optional(_) | Type::Param(_)) {
        return Some(item);
    }
    match &item.node {
        Node::List { items, .. } => items.iter().find_map(|item| textless(item, type_of)),
        Node::Map(entries) => {
            let mut nodes = entries.iter().flat_map(|entry| [&entry.key, &entry.value]);
            nodes.find_map(|node| textless(node, type_of))
        }
        _ => None,
    }
}
