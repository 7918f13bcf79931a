//! An object and its type in, the set of what it says out.

use serde_json::Value;

use super::shape::{ListShape, MapShape, Place, Shape};
use super::{Element, FieldSet};
use crate::types::{Node, TypeId, Types};

impl FieldSet {
    /// Every leaf, every item of a list that apply tells apart, and every entry of a map.
    ///
    /// What is empty says something only where it is null or an object: an empty list of items says nothing.
    #[must_use]
    pub fn of_value(types: &Types, of: TypeId, value: &Value) -> FieldSet {
        said(types, Place::Typed(&Node::Object(of)), value).1
    }

    /// Adds the declared fields that lead to a member, as far as only fields and list items lead there. An
    /// object that was applied holds them, though a set of what it says does not.
    pub(crate) fn with_named_fields(mut self, types: &Types, place: Option<Place<'_>>) -> FieldSet {
        let shape = place.map(|place| place.shape(types, None));
        for entry in self.entries.iter_mut().filter(|entry| !entry.below.is_empty()) {
            let inner = match (&entry.element, shape) {
                (Element::Field(name), Some(Shape::Map(map))) => {
                    entry.member |= map.declares(name);
                    map.place(name)
                }
                (Element::Key(_), Some(Shape::List(list))) => Some(list.items),
                _ => None,
            };
            entry.below = std::mem::take(&mut entry.below).with_named_fields(types, inner);
        }
        self
    }

    /// Takes a part of an object that has become one value since for that one value.
    pub(crate) fn with_atomic_parts_joined(mut self, types: &Types, place: Place<'_>) -> FieldSet {
        let shape = place.shape(types, None);
        for entry in &mut self.entries {
            let inner = match shape {
                Shape::Scalar(_) => None,
                Shape::List(list) => Some(list.items),
                Shape::Map(map) if map.is_untold() => None,
                Shape::Map(map) => map.place_at(&entry.element),
            };
            let (Some(inner), false) = (inner, entry.below.is_empty()) else { continue };
            let below = std::mem::take(&mut entry.below);
            match inner.shape(types, None) {
                Shape::List(list) if list.is_atomic() => entry.member = true,
                Shape::Map(map) if map.atomic && !map.is_untold() => entry.member = true,
                _ => entry.below = below.with_atomic_parts_joined(types, inner),
            }
        }
        self
    }
}

/// Whether the value itself is in the set, and what is below it.
fn said(types: &Types, place: Place<'_>, value: &Value) -> (bool, FieldSet) {
    match (place.shape(types, Some(value)), value) {
        (Shape::Scalar(_), _) => (true, FieldSet::default()),
        (Shape::List(list), _) if list.is_atomic() => (true, FieldSet::default()),
        (Shape::Map(map), _) if map.atomic => (true, FieldSet::default()),
        (Shape::List(list), Value::Array(items)) => (false, said_by_items(types, list, items)),
        (Shape::Map(map), Value::Object(members)) => (false, said_by_members(types, map, members)),
        _ => (false, FieldSet::default()),
    }
}

fn said_by_items(types: &Types, list: ListShape<'_>, items: &[Value]) -> FieldSet {
    let mut set = FieldSet::default();
    let mut told: Vec<_> =
        items.iter().filter_map(|item| Some((list.element(types, item).ok()?, item))).collect();
    told.sort_by(|(left, _), (right, _)| left.cmp(right));
    for same in told.chunk_by(|(left, _), (right, _)| left == right) {
        // Items that nothing tells apart are owned together.
        let below = match same {
            [(_, item)] => said(types, list.items, item).1,
            _ => FieldSet::default(),
        };
        set.graft(same[0].0.clone(), true, below);
    }
    set
}

fn said_by_members(types: &Types, map: MapShape<'_>, members: &serde_json::Map<String, Value>) -> FieldSet {
    let mut set = FieldSet::default();
    for (name, value) in members {
        let Some(place) = map.place(name) else { continue };
        let (itself, below) = said(types, place, value);
        let empty = value.is_null() || value.as_object().is_some_and(serde_json::Map::is_empty);
        set.graft(Element::field(name), itself || empty || !map.declares(name), below);
    }
    set
}
