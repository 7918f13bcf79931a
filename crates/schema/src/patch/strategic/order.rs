//! The order of items in a merged list.

use std::collections::BTreeMap;

use serde_json::Value;

use super::list::identity;

/// The positions of items in the patch and in the object, by their identity.
pub(super) struct Items<'a> {
    pub(super) patch: &'a BTreeMap<String, usize>,
    pub(super) current: &'a BTreeMap<String, usize>,
}

/// An item, and its position in the list that orders it, if it is there.
struct Placed {
    item: Value,
    identity: Option<String>,
    at: Option<usize>,
}

/// Sorts the items of the patch by its order, the others by the object's, and interleaves both: an item that
/// only the object has goes before the first item of the patch that it preceded in the object.
pub(super) fn interleave(merged: Vec<Value>, key: Option<&str>, order: &Items<'_>) -> Vec<Value> {
    let placed = merged.into_iter().map(|item| {
        let told_by = key.map_or(Some(&item), |key| item.get(key));
        let identity = told_by.map(identity);
        Placed { item, identity, at: None }
    });
    let in_patch =
        |placed: &Placed| placed.identity.as_ref().is_some_and(|identity| order.patch.contains_key(identity));
    let (patch, others): (Vec<_>, Vec<_>) = placed.partition(in_patch);
    let patch = sorted(patch, order.patch);
    let others = sorted(others, order.current);
    let rank = |placed: &Placed| order.current.get(placed.identity.as_ref()?).copied();

    let mut result = Vec::with_capacity(patch.len() + others.len());
    let mut others = others.into_iter().peekable();
    for item in patch {
        let limit = rank(&item);
        while let Some(other) =
            others.next_if(|other| limit.zip(rank(other)).is_some_and(|(limit, at)| at < limit))
        {
            result.push(other.item);
        }
        result.push(item.item);
    }
    result.extend(others.map(|other| other.item));
    result
}

/// A stable sort by the order.
fn sorted(mut items: Vec<Placed>, order: &BTreeMap<String, usize>) -> Vec<Placed> {
    for placed in &mut items {
        placed.at = placed.identity.as_ref().and_then(|identity| order.get(identity)).copied();
    }
    if items.len() <= INSERTION_SORTED && items.iter().any(|placed| placed.at.is_none()) {
        return insertion_sorted(items);
    }
    items.sort_by_key(|placed| placed.at);
    items
}

/// Go sorts up to this many items by insertion. It matters only where items are in no order: an empty
/// `$setElementOrder`.
const INSERTION_SORTED: usize = 20;

/// Kubernetes: an item that the order lacks compares as before every other, and every other as before it.
fn insertion_sorted(items: Vec<Placed>) -> Vec<Placed> {
    let mut sorted: Vec<Placed> = Vec::with_capacity(items.len());
    for placed in items {
        let stays_before = |other: &Placed| other.at.zip(placed.at).is_some_and(|(other, at)| other <= at);
        let at = sorted.iter().rposition(stays_before).map_or(0, |before| before + 1);
        sorted.insert(at, placed);
    }
    sorted
}
