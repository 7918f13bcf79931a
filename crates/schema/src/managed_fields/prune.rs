//! Removes a set of fields from an object, and restores those that must stay.

use serde_json::{Map, Value};

use super::typed::Typed;
use crate::field_set::shape::{FieldShape, ListShape, MapShape, Place};
use crate::field_set::{Element, FieldSet};
use crate::types::{Node, Types};

impl<'t> Typed<'t> {
    /// Removes the fields and items of the set. Containers left empty become null.
    pub(super) fn without(&self, unwanted: &FieldSet) -> Typed<'t> {
        let node = Node::Object(self.of);
        let removal = Removal { types: self.types };
        self.with(removal.place(Place::Typed(&node), self.value.clone().into_owned(), unwanted))
    }

    /// `pruned` plus all fields of this object that another manager, or the applier's new configuration,
    /// owns.
    pub(super) fn with_owned(&self, pruned: &Typed<'_>, owned: FieldSet) -> Typed<'t> {
        let kept = self.with_named_fields(pruned.fields()).union(self.with_named_fields(owned));
        self.without(&self.with_named_fields(self.fields()).difference(&kept))
    }

    /// `pruned` plus all fields of this object that the applier had not applied: they were removed with their
    /// container.
    pub(super) fn with_unapplied(&self, pruned: &Typed<'_>, last: FieldSet) -> Typed<'t> {
        let gone = self.with_named_fields(self.fields()).difference(&self.with_named_fields(pruned.fields()));
        self.without(&gone.intersection(&self.with_named_fields(last)))
    }
}

struct Removal<'t> {
    types: &'t Types,
}

impl<'t> Removal<'t> {
    fn place(&self, place: Place<'t>, value: Value, unwanted: &FieldSet) -> Value {
        match (place.shape(self.types, Some(&value)), value) {
            (FieldShape::Scalar(_), value) => value,
            (FieldShape::List(list), Value::Array(items)) if !list.is_atomic() => {
                self.items(list, items, unwanted)
            }
            (FieldShape::Map(map), Value::Object(members)) if !map.atomic => {
                self.members(map, members, unwanted)
            }
            _ => Value::Null,
        }
    }

    fn items(&self, list: ListShape<'t>, items: Vec<Value>, unwanted: &FieldSet) -> Value {
        let kept = items.into_iter().filter_map(|item| {
            let Ok(element) = list.element(self.types, &item) else { return Some(item) };
            if unwanted.has_member(&element) {
                return None;
            }
            Some(match unwanted.below(&element) {
                Some(below) => self.place(list.items, item, below),
                None => item,
            })
        });
        let kept: Vec<_> = kept.collect();
        if kept.is_empty() { Value::Null } else { Value::Array(kept) }
    }

    fn members(&self, map: MapShape<'t>, members: Map<String, Value>, unwanted: &FieldSet) -> Value {
        let kept = members.into_iter().filter_map(|(name, value)| {
            let element = Element::field(&name);
            if unwanted.has_member(&element) {
                return None;
            }
            let value = match (unwanted.below(&element), map.place(&name)) {
                (Some(below), Some(place)) => self.place(place, value, below),
                _ => value,
            };
            Some((name, value))
        });
        let kept: Map<_, _> = kept.collect();
        if kept.is_empty() { Value::Null } else { Value::Object(kept) }
    }
}
