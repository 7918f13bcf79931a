//! Strategic merge patches: like a merge patch, but the types say which lists are merged and by which key,
//! and the patch may contain directives.
//!
//! | directive | what it does |
//! |---|---|
//! | `$patch: replace` | the object, or the list that an item with it stands in, is taken from the patch |
//! | `$patch: delete` | empties the object, or drops the items with the same key |
//! | `$retainKeys: [..]` | drops the members of the object that are not listed |
//! | `$deleteFromPrimitiveList/x: [..]` | drops values from the list `x` |
//! | `$setElementOrder/x: [..]` | puts the list `x` in this order |
//!
//! Items of merged lists: those of the patch keep their order, and so do the others; both are interleaved by
//! the order in the object, and items new to it come first.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::{PatchError, is_too_deep};
use crate::types::{Node, TypeId, Types};

mod fit;
mod list;
mod lookup;
mod order;
mod problem;

pub use fit::convert;
use list::Lists;
use lookup::PatchedType;

const PATCH: &str = "$patch";
const RETAIN_KEYS: &str = "$retainKeys";
const DELETE_FROM_LIST: &str = "$deleteFromPrimitiveList";
const SET_ORDER: &str = "$setElementOrder";

/// Applies the patch to an object of the type.
pub fn apply(types: &Types, of: TypeId, document: Value, patch: Value) -> Result<Value, PatchError> {
    if is_too_deep(&patch) || is_too_deep(&document) {
        return Err(PatchError::too_deep());
    }
    let patch = match patch {
        Value::Object(patch) => patch,
        Value::Null => Map::new(),
        other => {
            let kind = api::go::json_kind(&other);
            return Err(PatchError::Malformed(format!(
                "json: cannot unmarshal {kind} into Go value of type map[string]interface {{}}"
            )));
        }
    };
    let Value::Object(document) = document else {
        return Err(PatchError::Malformed("invalid JSON document".into()));
    };
    let node = Node::Object(of);
    merge(PatchedType::new(types, &node), document, patch).map(Value::Object)
}

/// Merges two objects.
fn merge(
    ty: PatchedType<'_>,
    mut document: Map<String, Value>,
    mut patch: Map<String, Value>,
) -> Result<Map<String, Value>, PatchError> {
    if let Some(directive) = patch.get(PATCH) {
        return match directive.as_str() {
            Some("replace") => {
                patch.remove(PATCH);
                Ok(patch)
            }
            Some("delete") => Ok(Map::new()),
            _ => Err(problem::unknown_directive(directive, &patch)),
        };
    }
    retain_keys(&mut document, &mut patch)?;
    merge_ordered_lists(ty, &mut document, &mut patch)?;
    for (name, change) in patch {
        match name.strip_prefix(DELETE_FROM_LIST) {
            Some(rest) => {
                let name = rest.strip_prefix('/').ok_or_else(problem::primitive_list_format)?;
                delete_from_list(ty, &mut document, name, change)?;
            }
            None => merge_member(ty, &mut document, name, change)?,
        }
    }
    Ok(document)
}

fn merge_member(
    ty: PatchedType<'_>,
    document: &mut Map<String, Value>,
    name: String,
    mut change: Value,
) -> Result<(), PatchError> {
    if change.is_null() {
        document.remove(&name);
        return Ok(());
    }
    match (document.get_mut(&name), change) {
        (Some(Value::Object(current)), Value::Object(change)) => {
            let field = ty.field(&name)?;
            *current =
                if field.replaces { change } else { merge(field.ty, std::mem::take(current), change)? };
        }
        (Some(Value::Array(current)), Value::Array(change)) => {
            let field = ty.list_field(&name)?;
            let lists = Lists { current: std::mem::take(current), patch: change };
            *current = lists.merge_by(&field)?;
        }
        (_, unmerged) => {
            change = unmerged;
            discard_nulls(&mut change);
            match without_directives(change) {
                Some(value) => document.insert(name, value),
                None => document.remove(&name),
            };
        }
    }
    Ok(())
}

/// `$deleteFromPrimitiveList`. A value that is missing, or not a list, is left alone.
fn delete_from_list(
    ty: PatchedType<'_>,
    document: &mut Map<String, Value>,
    name: &str,
    unwanted: Value,
) -> Result<(), PatchError> {
    match (document.get_mut(name), unwanted) {
        (_, Value::Null) => {
            document.remove(name);
        }
        (Some(Value::Array(current)), Value::Array(patch)) => {
            let field = ty.list_field(name)?;
            *current = Lists { current: std::mem::take(current), patch }.delete_by(&field)?;
        }
        // Kubernetes: between values of one type, the directive replaces the value.
        (Some(current), patch) if std::mem::discriminant(current) == std::mem::discriminant(&patch) => {
            let Value::Object(patch) = patch else {
                *current = patch;
                return Ok(());
            };
            let field = ty.field(name)?;
            let merged =
                merge(field.ty, current.as_object_mut().map(std::mem::take).unwrap_or_default(), patch)?;
            *current = Value::Object(merged);
        }
        _ => {}
    }
    Ok(())
}

/// `$retainKeys`: drops members that are not listed. Members that the patch sets must be listed.
fn retain_keys(document: &mut Map<String, Value>, patch: &mut Map<String, Value>) -> Result<(), PatchError> {
    let Some(listed) = patch.remove(RETAIN_KEYS) else { return Ok(()) };
    let Value::Array(listed) = listed else { return Err(problem::retain_keys_format()) };
    let listed: HashSet<&str> = listed.iter().filter_map(Value::as_str).collect();
    let is_listed = |name: &str| listed.contains(name);
    let is_parallel = |name: &str| name.starts_with(DELETE_FROM_LIST) || name.starts_with(SET_ORDER);
    if patch.iter().any(|(name, value)| !value.is_null() && !is_parallel(name) && !is_listed(name)) {
        return Err(problem::retain_keys_format());
    }
    document.retain(|name, _| is_listed(name));
    Ok(())
}

/// `$setElementOrder`: merges the lists that have one, and removes them from the patch.
fn merge_ordered_lists(
    ty: PatchedType<'_>,
    document: &mut Map<String, Value>,
    patch: &mut Map<String, Value>,
) -> Result<(), PatchError> {
    let directives: Vec<String> = patch.keys().filter(|name| name.starts_with(SET_ORDER)).cloned().collect();
    for directive in directives {
        let Some(order) = patch.remove(&directive) else { continue };
        let order = problem::as_list(order)?;
        let name = directive.strip_prefix(SET_ORDER).and_then(|rest| rest.strip_prefix('/'));
        let name = name.ok_or_else(problem::order_format)?;
        let current = document.get(name).cloned().map(problem::as_list).transpose()?;
        let change = patch.get(name).cloned().map(problem::as_list).transpose()?;
        let field = ty.list_field(name)?;
        if let Some(ordered) = list::ordered(&field, current, change, &order)? {
            document.insert(name.to_owned(), Value::Array(ordered));
            patch.remove(name);
        }
    }
    Ok(())
}

/// Drops null members at any depth: there is nothing for them to delete.
fn discard_nulls(value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.retain(|_, member| !member.is_null());
            members.values_mut().for_each(discard_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(discard_nulls),
        _ => {}
    }
}

/// Drops every object that has a `$patch`: there is nothing that it could apply to.
fn without_directives(value: Value) -> Option<Value> {
    match value {
        Value::Object(members) if members.contains_key(PATCH) => None,
        Value::Object(members) => {
            let members =
                members.into_iter().filter_map(|(name, value)| Some((name, without_directives(value)?)));
            Some(Value::Object(members.collect()))
        }
        Value::Array(items) => Some(Value::Array(items.into_iter().filter_map(without_directives).collect())),
        scalar => Some(scalar),
    }
}

#[cfg(test)]
mod tests;
