//! Merges two lists: by the key of their items, or as sets of scalars.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::lookup::Member;
use super::order::{Items, interleave};
use super::{PATCH, merge, problem, without_directives};
use crate::patch::{PatchError, print};

/// A list of the object and the list of the patch.
pub(super) struct Lists {
    pub(super) current: Vec<Value>,
    pub(super) patch: Vec<Value>,
}

/// The type of all items of a list.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ItemKind {
    Object,
    Scalar,
}

impl Lists {
    /// Merges where the type says so, otherwise replaces the list with the patch.
    pub(super) fn merge_by(self, field: &Member<'_>) -> Result<Vec<Value>, PatchError> {
        if !field.merges {
            return Ok(self.patch);
        }
        match self.kind()? {
            None => Ok(self.current),
            Some(ItemKind::Object) => self.merge_objects(field),
            Some(ItemKind::Scalar) => self.merge_scalars(field),
        }
    }

    /// Removes the values of the patch, whether or not the type says that lists are merged.
    pub(super) fn delete_by(self, field: &Member<'_>) -> Result<Vec<Value>, PatchError> {
        match self.kind()? {
            None => Ok(self.current),
            Some(ItemKind::Object) => self.merge_objects(field),
            Some(ItemKind::Scalar) => {
                let unwanted = index(&self.patch, None);
                Ok(self.current.into_iter().filter(|item| !unwanted.contains_key(&identity(item))).collect())
            }
        }
    }

    fn kind(&self) -> Result<Option<ItemKind>, PatchError> {
        kind_of(&self.current, &self.patch)
    }

    fn merge_scalars(self, field: &Member<'_>) -> Result<Vec<Value>, PatchError> {
        if field.key.is_some() {
            // There are items, and they are not objects.
            let first = self.current.first().or(self.patch.first()).unwrap_or(&Value::Null);
            problem::as_map(first)?;
        }
        let order = Items { patch: &index(&self.patch, None), current: &index(&self.current, None) };
        let mut seen = BTreeSet::new();
        let both = self.current.into_iter().chain(self.patch);
        let merged = both.filter(|item| seen.insert(identity(item))).collect();
        Ok(interleave(merged, None, &order))
    }

    fn merge_objects(self, field: &Member<'_>) -> Result<Vec<Value>, PatchError> {
        let Some(key) = field.key else {
            let kind = field.ty.go_kind();
            return Err(PatchError::Unexpected(format!("cannot merge lists without merge key for {kind}")));
        };
        let (current, patch) = self.without_special_items(key)?;
        let order = Items { patch: &index(&patch, Some(key)), current: &index(&current, Some(key)) };
        let mut merged = current;
        let mut places = order.current.clone();
        for item in patch {
            let Value::Object(item) = item else { continue };
            let identity = identity(item.get(key).ok_or_else(|| problem::no_merge_key(&item, key))?);
            match places.get(&identity).and_then(|at| merged.get_mut(*at)) {
                Some(Value::Object(into)) => *into = merge(field.ty, std::mem::take(into), item)?,
                _ => {
                    places.insert(identity, merged.len());
                    // Kubernetes: a new item is taken with its nulls and directives.
                    merged.push(Value::Object(item));
                }
            }
        }
        merged.iter().try_for_each(|item| keyed(item, key).map(drop))?;
        Ok(interleave(merged, Some(key), &order))
    }

    /// Carries out the items of the patch that consist of a `$patch` directive.
    fn without_special_items(self, key: &str) -> Result<(Vec<Value>, Vec<Value>), PatchError> {
        let (special, plain): (Vec<_>, Vec<_>) =
            self.patch.into_iter().partition(|item| item.get(PATCH).is_some());
        let mut current = self.current;
        let mut replaced = false;
        let mut deleted = BTreeSet::new();
        for item in special.iter().filter_map(Value::as_object) {
            let directive = item.get(PATCH).unwrap_or(&Value::Null);
            match directive.as_str() {
                Some("delete") => {
                    let value = item.get(key).ok_or_else(|| problem::no_merge_key(item, key))?;
                    deleted.insert(identity(value));
                }
                Some("replace") => replaced = true,
                Some("merge") => {
                    let text = "merging lists cannot yet be specified in the patch";
                    return Err(PatchError::Unexpected(text.into()));
                }
                _ => return Err(problem::unknown_directive(directive, item)),
            }
        }
        if replaced {
            return Ok((plain, Vec::new()));
        }
        current.retain(|item| !item.get(key).is_some_and(|value| deleted.contains(&identity(value))));
        Ok((current, plain))
    }
}

/// The type of all items. `None` where there are none.
fn kind_of(current: &[Value], patch: &[Value]) -> Result<Option<ItemKind>, PatchError> {
    let mut items = current.iter().chain(patch);
    let Some(first) = items.next() else { return Ok(None) };
    if first.is_array() {
        return Err(problem::list_of_lists());
    }
    if items.any(|item| print::type_name(item) != print::type_name(first)) {
        return Err(problem::mixed_items(current, patch));
    }
    Ok(Some(if first.is_object() { ItemKind::Object } else { ItemKind::Scalar }))
}

/// A list with a `$setElementOrder`. `None` where neither the object nor the patch has the list.
pub(super) fn ordered(
    field: &Member<'_>,
    current: Option<Vec<Value>>,
    patch: Option<Vec<Value>>,
    order: &[Value],
) -> Result<Option<Vec<Value>>, PatchError> {
    check_order(patch.as_deref().unwrap_or_default(), order, field.key)?;
    let before = order_left_behind(field, current.as_deref().unwrap_or_default(), patch.as_deref());
    let kind = kind_of(current.as_deref().unwrap_or_default(), patch.as_deref().unwrap_or_default());
    let merged = match (current, patch) {
        (None, None) => return Ok(None),
        (Some(current), None) => current,
        (None, Some(patch)) => patch.into_iter().filter_map(without_directives).collect(),
        (Some(current), Some(patch)) => Lists { current, patch }.merge_by(field)?,
    };
    if let Some(key) = field.key {
        merged.iter().try_for_each(|item| keyed(item, key).map(drop))?;
    }
    let Some(kind) = kind? else {
        return Err(PatchError::Unexpected("no elements in any of the given slices".into()));
    };
    if kind == ItemKind::Object {
        let key = field.key.unwrap_or_default();
        merged.iter().chain(order).try_for_each(|item| keyed(item, key).map(drop))?;
    }
    Ok(Some(interleave(merged, field.key, &Items { patch: &index(order, field.key), current: &before })))
}

/// The positions of the object's items after the merge.
///
/// Kubernetes: kube-apiserver reads the order from a list that its merge has written to. New items of the
/// patch are behind the others there, but only as many as it has deleted.
fn order_left_behind(
    field: &Member<'_>,
    current: &[Value],
    patch: Option<&[Value]>,
) -> BTreeMap<String, usize> {
    let before = index(current, field.key);
    let (Some(key), Some(patch), true) = (field.key, patch, field.merges) else { return before };
    let special = |item: &&Value, wanted: &str| item.get(PATCH).is_some_and(|directive| directive == wanted);
    let named = |item: &Value| item.get(key).map(identity);
    let deleted: BTreeSet<_> =
        patch.iter().filter(|item| special(item, "delete")).filter_map(named).collect();
    let is_kept = |item: &&Value| !named(item).is_some_and(|name| deleted.contains(&name));
    let kept: Vec<_> = current.iter().filter(is_kept).collect();
    let mut places = BTreeMap::new();
    for (at, item) in kept.iter().enumerate() {
        named(item).map(|name| *places.entry(name).or_insert(at));
    }
    if !patch.iter().any(|item| special(&item, "replace")) {
        let added = patch.iter().filter(|item| item.get(PATCH).is_none()).filter_map(named);
        let mut added: Vec<_> = added.filter(|name| !places.contains_key(name)).collect();
        let mut seen = BTreeSet::new();
        added.retain(|name| seen.insert(name.clone()));
        places.extend(added.into_iter().zip(kept.len()..current.len()));
    }
    places
}

/// Checks that the items of the patch are in the order of its directive, which lists all of them.
fn check_order(patch: &[Value], order: &[Value], key: Option<&str>) -> Result<(), PatchError> {
    if order.is_empty() || patch.is_empty() {
        return Ok(());
    }
    if key.is_some() {
        patch.iter().try_for_each(|item| problem::as_map(item).map(drop))?;
    }
    let is_deletion = |item: &&Value| item.get(PATCH).is_some_and(|directive| directive == "delete");
    let mut items = patch.iter().filter(|item| key.is_none() || !is_deletion(item)).peekable();
    let mut order_left = order.iter().peekable();
    while let (Some(item), Some(listed)) = (items.peek(), order_left.peek()) {
        if item.get(PATCH).is_some() {
            items.next();
            continue;
        }
        let same = match key {
            Some(key) => keyed(item, key)? == keyed(listed, key)?,
            None => item == listed,
        };
        if same {
            items.next();
        }
        order_left.next();
    }
    if items.peek().is_some() { Err(problem::order_mismatch(patch, order)) } else { Ok(()) }
}

fn keyed<'v>(item: &'v Value, key: &str) -> Result<&'v Value, PatchError> {
    let item = problem::as_map(item)?;
    item.get(key).ok_or_else(|| problem::no_merge_key(item, key))
}

/// The first position of each item, by its key, or by its value where there is no key.
fn index(items: &[Value], key: Option<&str>) -> BTreeMap<String, usize> {
    let mut places = BTreeMap::new();
    for (at, item) in items.iter().enumerate() {
        let told_by = match key {
            Some(key) => item.as_object().and_then(|item| item.get(key)),
            None => Some(item),
        };
        if let Some(value) = told_by {
            places.entry(identity(value)).or_insert(at);
        }
    }
    places
}

/// A text that is equal for equal values only.
pub(super) fn identity(value: &Value) -> String {
    value.to_string()
}
