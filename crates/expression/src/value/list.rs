//! Lists: made by an expression, or a typed view of a JSON array.

use super::{Key, Value, json};
use crate::{
    equality::equal,
    shape::{ListKind, Shape},
};
use serde_json::Value as Json;
use std::{
    collections::{BTreeMap, btree_map::Entry},
    sync::Arc,
};

/// A list of values. Cheap to clone.
#[derive(Clone, Debug)]
pub struct List<'a>(ListRepr<'a>);

#[derive(Clone, Debug)]
enum ListRepr<'a> {
    Made(Arc<[Value<'a>]>),
    /// An accumulator of a comprehension grows in place while it is held nowhere else.
    Grown(Arc<Vec<Value<'a>>>),
    Json {
        items: &'a [Json],
        shape: Option<&'a dyn Shape>,
    },
    /// The sum of a list with a declared kind and another.
    Merged {
        items: Arc<[Value<'a>]>,
        shape: &'a dyn Shape,
    },
}

impl<'a> List<'a> {
    pub fn new(items: impl Into<Arc<[Value<'a>]>>) -> List<'a> {
        List(ListRepr::Made(items.into()))
    }

    /// A view of a JSON array whose schema is this, if there is one.
    pub fn json(items: &'a [Json], shape: Option<&'a dyn Shape>) -> List<'a> {
        List(ListRepr::Json { items, shape })
    }

    pub fn len(&self) -> usize {
        match &self.0 {
            ListRepr::Made(items) | ListRepr::Merged { items, .. } => items.len(),
            ListRepr::Grown(items) => items.len(),
            ListRepr::Json { items, .. } => items.len(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn at(&self, index: usize) -> Option<Value<'a>> {
        match &self.0 {
            ListRepr::Made(items) | ListRepr::Merged { items, .. } => items.get(index).cloned(),
            ListRepr::Grown(items) => items.get(index).cloned(),
            ListRepr::Json { items, shape } => {
                let part = shape.and_then(|shape| shape.items());
                items.get(index).map(|item| json::view(item, part))
            }
        }
    }

    pub fn iter(&self) -> impl Iterator<Item = Value<'a>> + '_ {
        (0..self.len()).filter_map(|index| self.at(index))
    }

    pub fn contains(&self, value: &Value<'_>) -> bool {
        self.iter().any(|item| equal(&item, value))
    }

    /// `a + b`, in the way of the list type that the schema declares for `a`.
    pub(crate) fn plus(self, other: &List<'a>) -> List<'a> {
        let Some(shape) = self.shape() else { return self.appended(other) };
        let kind = shape.list_kind();
        let mut items: Vec<Value<'a>> = self.iter().collect();
        if let ListKind::Atomic = kind {
            items.extend(other.iter());
            return List(ListRepr::Merged { items: items.into(), shape });
        }
        let mut places: BTreeMap<Identity<'a>, usize> = self.places(kind);
        for item in other.iter() {
            match (places.entry(Identity::of(&item, kind)), kind) {
                (Entry::Occupied(place), ListKind::Map(_)) => items[*place.get()] = item,
                (Entry::Occupied(_), _) => {}
                (Entry::Vacant(place), _) => {
                    place.insert(items.len());
                    items.push(item);
                }
            }
        }
        List(ListRepr::Merged { items: items.into(), shape })
    }

    /// The position of each element, by its identity.
    fn places(&self, kind: ListKind<'_>) -> BTreeMap<Identity<'a>, usize> {
        self.iter().enumerate().map(|(index, item)| (Identity::of(&item, kind), index)).collect()
    }

    fn appended(self, other: &List<'a>) -> List<'a> {
        let mut items = match self.0 {
            ListRepr::Grown(items) => items,
            _ => Arc::new(self.iter().collect()),
        };
        Arc::make_mut(&mut items).extend(other.iter());
        List(ListRepr::Grown(items))
    }

    fn shape(&self) -> Option<&'a dyn Shape> {
        match &self.0 {
            ListRepr::Merged { shape, .. } => Some(*shape),
            ListRepr::Json { shape, .. } => *shape,
            ListRepr::Made(_) | ListRepr::Grown(_) => None,
        }
    }

    /// Sets and lists that are maps compare without order; `None` for all other lists.
    pub(crate) fn equal_as_declared(&self, other: &List<'_>) -> Option<bool> {
        let kind = self.shape()?.list_kind();
        if let ListKind::Atomic = kind {
            return None;
        }
        let places: BTreeMap<Identity<'_>, usize> = self.places(kind);
        Some(other.iter().all(|item| {
            let known = places.get(&Identity::of(&item, kind)).and_then(|place| self.at(*place));
            known.is_some_and(|known| equal(&known, &item))
        }))
    }
}

/// The identity of an element: its value in a set, its keys in a list map.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Identity<'a>(Vec<Option<Key<'a>>>);

impl<'a> Identity<'a> {
    fn of(item: &Value<'a>, kind: ListKind<'_>) -> Identity<'a> {
        match (kind, item) {
            (ListKind::Map(keys), Value::Map(map)) => {
                Identity(keys.iter().map(|key| Some(Key::of(&map.property(key)?))).collect())
            }
            _ => Identity(vec![Some(Key::of(item))]),
        }
    }
}
