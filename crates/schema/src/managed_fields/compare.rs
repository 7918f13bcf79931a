//! Compares two objects of one type: the fields that were added, modified and removed.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::typed::{Typed, items};
use crate::field_set::shape::{FieldShape, ListShape, MapShape, Place};
use crate::field_set::{Element, FieldSet, Filter, compare_values};
use crate::types::{Node, Types};

/// The changed fields. No field is in two of the sets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Changes {
    pub(super) added: FieldSet,
    pub(super) modified: FieldSet,
    pub(super) removed: FieldSet,
}

/// How a value itself changed, apart from the fields below it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ValueChange {
    Kept,
    Added,
    Modified,
    Removed,
}

impl Changes {
    pub(super) fn between(before: &Typed<'_>, after: &Typed<'_>) -> Changes {
        let place = Place::Typed(&Node::Object(before.of));
        Comparison { types: before.types }.place(place, Some(&before.value), Some(&after.value)).1
    }

    pub(super) fn through(self, filter: &Filter) -> Changes {
        Changes {
            added: filter.apply(self.added),
            modified: filter.apply(self.modified),
            removed: filter.apply(self.removed),
        }
    }

    fn graft(&mut self, element: impl Fn() -> Element, change: ValueChange, below: Changes) {
        for (set, below, kind) in [
            (&mut self.added, below.added, ValueChange::Added),
            (&mut self.modified, below.modified, ValueChange::Modified),
            (&mut self.removed, below.removed, ValueChange::Removed),
        ] {
            if change == kind || !below.is_empty() {
                set.graft(element(), change == kind, below);
            }
        }
    }

    fn union(self, other: Changes) -> Changes {
        Changes {
            added: self.added.union(other.added),
            modified: self.modified.union(other.modified),
            removed: self.removed.union(other.removed),
        }
    }
}

struct Comparison<'t> {
    types: &'t Types,
}

/// The items of both lists that have the same key.
#[derive(Default)]
struct Same<'v> {
    before: Vec<&'v Value>,
    after: Vec<&'v Value>,
}

impl<'t> Comparison<'t> {
    fn place(
        &self,
        place: Place<'t>,
        before: Option<&Value>,
        after: Option<&Value>,
    ) -> (ValueChange, Changes) {
        let as_it_is = |value| self.shape(place.shape(self.types, Some(value)), before, after);
        match (before, after) {
            (None, None) => (ValueChange::Kept, Changes::default()),
            (Some(before), None) => (ValueChange::Removed, as_it_is(before).1),
            (None, Some(after)) => (ValueChange::Added, as_it_is(after).1),
            (Some(old), Some(new)) if place.face(old) == place.face(new) => as_it_is(new),
            (Some(old), Some(new)) => {
                let ((one, first), (other, second)) = (as_it_is(old), as_it_is(new));
                (if one == ValueChange::Kept { other } else { one }, first.union(second))
            }
        }
    }

    fn shape(
        &self,
        shape: FieldShape<'t>,
        before: Option<&Value>,
        after: Option<&Value>,
    ) -> (ValueChange, Changes) {
        match shape {
            FieldShape::List(list) if !list.is_atomic() => {
                let (before, after) = (items(before), items(after));
                if !before.is_empty() || !after.is_empty() {
                    return (ValueChange::Kept, self.items(list, before, after));
                }
            }
            FieldShape::Map(map) if !map.atomic => {
                let (before, after) = (before.and_then(Value::as_object), after.and_then(Value::as_object));
                if [before, after].into_iter().flatten().any(|members| !members.is_empty()) {
                    return (ValueChange::Kept, self.members(map, before, after));
                }
            }
            _ => {}
        }
        // Atomic values, or two empty ones, of which one may be null.
        let same = before.zip(after).is_none_or(|(before, after)| compare_values(before, after).is_eq());
        (if same { ValueChange::Kept } else { ValueChange::Modified }, Changes::default())
    }

    fn members<'v>(
        &self,
        map: MapShape<'t>,
        before: Option<&'v Map<String, Value>>,
        after: Option<&'v Map<String, Value>>,
    ) -> Changes {
        let get = |members: Option<&'v Map<String, Value>>, name: &str| {
            members.and_then(|members| members.get(name))
        };
        let old = before.into_iter().flatten().map(|(name, value)| (name, Some(value), get(after, name)));
        let new = after.into_iter().flatten().filter(|(name, _)| get(before, name).is_none());
        let mut all: Vec<_> = old.collect();
        let old_count = all.len();
        all.extend(new.map(|(name, value)| (name, None, Some(value))));
        if all.len() > old_count {
            // Sorted by name, so that each is appended at the end of the set.
            all.sort_unstable_by_key(|(name, ..)| *name);
        }
        let mut changes = Changes::default();
        for (name, old, new) in all {
            let Some(place) = map.place(name) else { continue };
            let (change, below) = self.place(place, old, new);
            changes.graft(|| Element::field(name), change, below);
        }
        changes
    }

    fn items(&self, list: ListShape<'t>, before: &[Value], after: &[Value]) -> Changes {
        let mut by_element: BTreeMap<Element, Same<'_>> = BTreeMap::new();
        for item in before {
            if let Ok(element) = list.element(self.types, item) {
                by_element.entry(element).or_default().before.push(item);
            }
        }
        for item in after {
            if let Ok(element) = list.element(self.types, item) {
                by_element.entry(element).or_default().after.push(item);
            }
        }
        let mut changes = Changes::default();
        for (element, same) in by_element {
            self.item(list, &element, &same, &mut changes);
        }
        changes
    }

    /// Items with the same key count as one, without fields.
    fn item(&self, list: ListShape<'t>, element: &Element, same: &Same<'_>, changes: &mut Changes) {
        let mut compare = |before: Option<&&Value>, after: Option<&&Value>| {
            let (change, below) = self.place(list.items, before.copied(), after.copied());
            changes.graft(|| element.clone(), change, below);
        };
        match (same.before.as_slice(), same.after.as_slice()) {
            (before @ ([] | [_]), after @ ([] | [_])) => compare(before.first(), after.first()),
            (before @ [_, _, ..], after @ [_, _, ..]) => {
                let equal = before.len() == after.len()
                    && before.iter().zip(after).all(|(before, after)| compare_values(before, after).is_eq());
                if !equal {
                    changes.graft(|| element.clone(), ValueChange::Modified, Changes::default());
                }
            }
            ([_, _, ..], after) => {
                compare(None, after.first());
                changes.graft(|| element.clone(), ValueChange::Removed, Changes::default());
            }
            (before, [_, _, ..]) => {
                compare(before.first(), None);
                changes.graft(|| element.clone(), ValueChange::Added, Changes::default());
            }
        }
    }
}
