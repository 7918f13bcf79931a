//! The fields that the creator of a new object owns, in one walk.
//!
//! What has no owner yet is in no conflict, so no sets have to be compared: the fields are written down as
//! they are met. That goes for plain objects. Whatever is odd (a value that does not fit its type, items with the same
//! key, nesting without end) is left to [`update`](super::update()), which sees the same and more.

use serde_json::{Map, Value};

use super::Target;
use super::take::UNMANAGED_FIELDS;
use super::typed::fits;
use crate::depth::MAX_OWNED_DEPTH;
use crate::field_set::shape::{FieldShape, ListShape, MapShape, Place};
use crate::field_set::{Element, FieldSet, Filter, compare_values};
use crate::types::{Node, Types};

/// The FieldsV1 of the manager that creates `new`, where `empty` is the object that says nothing. `None` where it is odd.
pub(super) fn fields(target: &Target<'_>, empty: &Value, new: &Value) -> Option<Value> {
    let hidden = match target.filter(target.version) {
        Filter::All => None,
        Filter::Except(fields) => Some(fields),
        Filter::Below(_) => return None,
    };
    let fresh = FreshFields { types: target.types };
    let limits = Limits { hidden, unmanaged: Some(&UNMANAGED_FIELDS), depth: MAX_OWNED_DEPTH };
    let (_, owned) = fresh.place(Place::Typed(&Node::Object(target.of)), Some(empty), new, limits)?;
    Some(Value::Object(owned))
}

struct FreshFields<'t> {
    types: &'t Types,
}

/// Fields that cannot be owned.
#[derive(Clone, Copy)]
struct Limits<'f> {
    /// These, and all below them.
    hidden: Option<&'f FieldSet>,
    /// These themselves.
    unmanaged: Option<&'f FieldSet>,
    /// How many more levels may follow.
    depth: usize,
}

impl Limits<'_> {
    /// The limits below an element, and whether it can be owned itself. `None` where nothing below can.
    fn below(self, element: &Element) -> Option<(Self, bool)> {
        let (is_hidden, hidden) = step(self.hidden, element);
        let (is_unmanaged, unmanaged) = step(self.unmanaged, element);
        (!is_hidden).then_some((Limits { hidden, unmanaged, depth: self.depth - 1 }, !is_unmanaged))
    }
}

/// Whether an element is in a set, and the set below it.
fn step<'f>(set: Option<&'f FieldSet>, element: &Element) -> (bool, Option<&'f FieldSet>) {
    set.and_then(|set| set.step(element)).map_or((false, None), |(member, below)| (member, Some(below)))
}

impl<'t> FreshFields<'t> {
    /// Whether the value itself is owned, and the fields below it.
    fn place(
        &self,
        place: Place<'t>,
        empty: Option<&Value>,
        new: &Value,
        limits: Limits<'_>,
    ) -> Option<(bool, Map<String, Value>)> {
        if limits.depth == 0 || empty.is_some_and(|empty| place.face(empty) != place.face(new)) {
            return None;
        }
        let is_new = empty.is_none();
        match (place.shape(self.types, Some(new)), new) {
            (FieldShape::List(list), Value::Array(items)) if !list.is_atomic() && !items.is_empty() => {
                // An empty value in the empty object: unchanged, so not owned.
                empty
                    .is_none_or(is_scalar_or_empty)
                    .then(|| self.items(list, items, limits))?
                    .map(|below| (is_new, below))
            }
            (FieldShape::Map(map), Value::Object(members)) if !map.atomic && !members.is_empty() => {
                let empty = empty.and_then(Value::as_object);
                self.members(map, empty, members, limits).map(|below| (is_new, below))
            }
            _ => {
                let is_plain = fits(self.types, place, new) && empty.is_none_or(is_scalar_or_empty);
                let is_same = empty.is_some_and(|empty| compare_values(empty, new).is_eq());
                is_plain.then(|| (!is_same, Map::new()))
            }
        }
    }

    fn members(
        &self,
        map: MapShape<'t>,
        empty: Option<&Map<String, Value>>,
        members: &Map<String, Value>,
        limits: Limits<'_>,
    ) -> Option<Map<String, Value>> {
        let mut owned = Map::new();
        for (name, value) in members {
            let place = map.place(name)?;
            let empty = empty.and_then(|empty| empty.get(name));
            self.graft(&mut owned, &Element::field(name), place, empty, value, limits)?;
        }
        Some(owned)
    }

    fn items(&self, list: ListShape<'t>, items: &[Value], limits: Limits<'_>) -> Option<Map<String, Value>> {
        let mut owned = Map::new();
        for item in items {
            let element = list.element(self.types, item).ok()?;
            let before = owned.len();
            self.graft(&mut owned, &element, list.items, None, item, limits)?;
            // Another item has the same key.
            (owned.len() > before).then_some(())?;
        }
        Some(owned)
    }

    fn graft(
        &self,
        owned: &mut Map<String, Value>,
        element: &Element,
        place: Place<'t>,
        empty: Option<&Value>,
        value: &Value,
        limits: Limits<'_>,
    ) -> Option<()> {
        let Some((limits, can_be_owned)) = limits.below(element) else {
            // A field that the strategy resets has no manager, but a value of the wrong type still makes
            // tracking fail.
            return fits(self.types, place, value).then_some(());
        };
        let (is_owned, mut below) = self.place(place, empty, value, limits)?;
        let is_owned = is_owned && can_be_owned;
        if is_owned && !below.is_empty() {
            below.insert(".".to_owned(), Value::Object(Map::new()));
        }
        if is_owned || !below.is_empty() {
            owned.insert(element.to_text(), Value::Object(below));
        }
        Some(())
    }
}

/// Whether a value contains no others.
fn is_scalar_or_empty(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::managed_fields::samples::{thing, things};
    use crate::managed_fields::{Unconvertible, empty_object, entries_of, update};
    use crate::{encode, types::TypeId};
    use proptest::prelude::*;
    use serde_json::json;

    /// The fields in one walk, and through `update`.
    fn both(new: &Value, hidden: &[&[&str]]) -> (Option<Value>, Value) {
        let (types, of): (_, TypeId) = things();
        let filter = Filter::Except(FieldSet::of_fields(hidden.iter().copied()));
        let target = Target {
            types,
            of,
            version: "example.com/v1",
            subresource: "",
            filters: &[("example.com/v1", filter)],
            convert: &|_, _| Err(Unconvertible::NoSuchVersion),
        };
        let empty = empty_object(&target);
        let mut slow = new.clone();
        update(&target, &empty, &mut slow, "me", "now");
        let slow = entries_of(&slow).map(|entries| entries[0]["fieldsV1"].clone()).unwrap_or(json!({}));
        (fields(&target, &empty, new), slow)
    }

    proptest! {
        #[test]
        fn one_walk_gives_the_fields_of_update(mut new in thing(), phase in "[ab]?") {
            let (types, of) = things();
            new["status"] = json!({"phase": phase});
            encode::normalize(types, of, &mut new);
            for hidden in [&[][..], &[&["status"][..]], &[&["spec", "items"]]] {
                let (fast, slow) = both(&new, hidden);
                prop_assert!(fast.is_none_or(|fast| fast == slow), "{new} {hidden:?} {slow}");
            }
        }
    }

    #[test]
    fn malformed_objects_are_left_to_update() {
        let thing = |spec: Value| json!({"metadata": {"name": "n"}, "spec": spec, "status": {}});
        for (spec, is_plain) in [
            (
                json!({"items": null, "count": 1, "labels": {"a": "b"}, "args": ["x", "x"], "any": {"b": [1]}}),
                true,
            ),
            (json!({"items": [{"name": "a", "value": "v"}, {"name": "b"}], "tags": ["t"]}), true),
            (json!({"items": [{"name": "a"}, {"name": "a"}]}), false),
            (json!({"items": null, "count": "one"}), false),
            (json!({"items": null, "args": [1]}), false),
            (json!({"items": null, "unknown": 1}), false),
        ] {
            let (fast, slow) = both(&thing(spec), &[]);
            assert_eq!(fast.is_some(), is_plain);
            assert!(fast.is_none_or(|fast| fast == slow));
        }
    }
}
