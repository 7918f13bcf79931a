//! The set of fields that an object has, by its type.

use serde_json::Value;

use super::shape::{FieldShape, ListShape, MapShape, Place};
use super::{Element, FieldSet};
use crate::types::{Node, TypeId, Types};

impl FieldSet {
    /// Every leaf, every item of a list with keys (or list set), and every entry of a map.
    ///
    /// An empty value counts only if it is null or an object; an empty list adds nothing.
    #[must_use]
    pub fn of_value(types: &Types, of: TypeId, value: &Value) -> FieldSet {
        fields_of(types, Place::Typed(&Node::Object(of)), value).1
    }

    /// Adds the declared fields on the way to each member, as long as the way has only fields and list items.
    /// An applied object has them, though the set of its fields does not.
    pub(crate) fn with_named_fields(mut self, types: &Types, place: Option<Place<'_>>) -> FieldSet {
        let shape = place.map(|place| place.shape(types, None));
        for entry in self.entries.iter_mut().filter(|entry| !entry.below.is_empty()) {
            let inner = match (&entry.element, shape) {
                (Element::Field(name), Some(FieldShape::Map(map))) => {
                    entry.member |= map.declares(name);
                    map.place(name)
                }
                (Element::Key(_), Some(FieldShape::List(list))) => Some(list.items),
                _ => None,
            };
            entry.below = std::mem::take(&mut entry.below).with_named_fields(types, inner);
        }
        self
    }

    /// Where the schema has become atomic since, replaces the fields inside by the atomic field itself.
    pub(crate) fn with_atomic_parts_joined(mut self, types: &Types, place: Place<'_>) -> FieldSet {
        let shape = place.shape(types, None);
        for entry in &mut self.entries {
            let inner = match shape {
                FieldShape::Scalar(_) => None,
                FieldShape::List(list) => Some(list.items),
                FieldShape::Map(map) if map.is_schemaless() => None,
                FieldShape::Map(map) => map.place_at(&entry.element),
            };
            let (Some(inner), false) = (inner, entry.below.is_empty()) else { continue };
            let below = std::mem::take(&mut entry.below);
            match inner.shape(types, None) {
                FieldShape::List(list) if list.is_atomic() => entry.member = true,
                FieldShape::Map(map) if map.atomic && !map.is_schemaless() => entry.member = true,
                _ => entry.below = below.with_atomic_parts_joined(types, inner),
            }
        }
        self
    }
}

/// Whether the value itself is in the set, and the fields below it.
fn fields_of(types: &Types, place: Place<'_>, value: &Value) -> (bool, FieldSet) {
    match (place.shape(types, Some(value)), value) {
        (FieldShape::Scalar(_), _) => (true, FieldSet::default()),
        (FieldShape::List(list), _) if list.is_atomic() => (true, FieldSet::default()),
        (FieldShape::Map(map), _) if map.atomic => (true, FieldSet::default()),
        (FieldShape::List(list), Value::Array(items)) => (false, fields_of_items(types, list, items)),
        (FieldShape::Map(map), Value::Object(members)) => (false, fields_of_members(types, map, members)),
        _ => (false, FieldSet::default()),
    }
}

fn fields_of_items(types: &Types, list: ListShape<'_>, items: &[Value]) -> FieldSet {
    let mut set = FieldSet::default();
    let mut keyed: Vec<_> =
        items.iter().filter_map(|item| Some((list.element(types, item).ok()?, item))).collect();
    keyed.sort_by(|(left, _), (right, _)| left.cmp(right));
    for same in keyed.chunk_by(|(left, _), (right, _)| left == right) {
        // Items with the same key are owned together.
        let below = match same {
            [(_, item)] => fields_of(types, list.items, item).1,
            _ => FieldSet::default(),
        };
        set.graft(same[0].0.clone(), true, below);
    }
    set
}

fn fields_of_members(types: &Types, map: MapShape<'_>, members: &serde_json::Map<String, Value>) -> FieldSet {
    let mut set = FieldSet::default();
    for (name, value) in members {
        let Some(place) = map.place(name) else { continue };
        let (itself, below) = fields_of(types, place, value);
        let empty = value.is_null() || value.as_object().is_some_and(serde_json::Map::is_empty);
        set.graft(Element::field(name), itself || empty || !map.declares(name), below);
    }
    set
}
