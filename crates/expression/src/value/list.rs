//! Lists: made by an expression, or a typed view of a JSON array.

use super::{Value, json};
use crate::{
    equality::equal,
    shape::{ListKind, Shape},
};
use serde_json::Value as Json;
use std::sync::Arc;

/// A list of values. Cheap to clone.
#[derive(Clone, Debug)]
pub struct List<'a>(Repr<'a>);

#[derive(Clone, Debug)]
enum Repr<'a> {
    Made(Arc<[Value<'a>]>),
    /// An accumulator of a comprehension grows in place while nobody else holds it.
    Grown(Arc<Vec<Value<'a>>>),
    Json { items: &'a [Json], shape: Option<&'a dyn Shape> },
    /// The sum of a list with a declared kind and another.
    Merged { items: Arc<[Value<'a>]>, shape: &'a dyn Shape },
}

impl<'a> List<'a> {
    pub fn new(items: impl Into<Arc<[Value<'a>]>>) -> List<'a> {
        List(Repr::Made(items.into()))
    }

    /// A view of a JSON array whose schema is this, if there is one.
    pub fn json(items: &'a [Json], shape: Option<&'a dyn Shape>) -> List<'a> {
        List(Repr::Json { items, shape })
    }

    pub fn len(&self) -> usize {
        match &self.0 {
            Repr::Made(items) | Repr::Merged { items, .. } => items.len(),
            Repr::Grown(items) => items.len(),
            Repr::Json { items, .. } => items.len(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn at(&self, index: usize) -> Option<Value<'a>> {
        match &self.0 {
            Repr::Made(items) | Repr::Merged { items, .. } => items.get(index).cloned(),
            Repr::Grown(items) => items.get(index).cloned(),
            Repr::Json { items, shape } => {
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
        for item in other.iter() {
            match kind {
                ListKind::Atomic => items.push(item),
                ListKind::Set if items.iter().any(|known| equal(known, &item)) => {}
                ListKind::Set => items.push(item),
                ListKind::Map(keys) => match items.iter().position(|known| same_keys(known, &item, keys)) {
                    Some(place) => items[place] = item,
                    None => items.push(item),
                },
            }
        }
        List(Repr::Merged { items: items.into(), shape })
    }

    fn appended(self, other: &List<'a>) -> List<'a> {
        let mut items = match self.0 {
            Repr::Grown(items) => items,
            _ => Arc::new(self.iter().collect()),
        };
        Arc::make_mut(&mut items).extend(other.iter());
        List(Repr::Grown(items))
    }

    fn shape(&self) -> Option<&'a dyn Shape> {
        match &self.0 {
            Repr::Merged { shape, .. } => Some(*shape),
            Repr::Json { shape, .. } => *shape,
            Repr::Made(_) | Repr::Grown(_) => None,
        }
    }

    /// Sets and lists that are maps compare without order; `None` for all other lists.
    pub(crate) fn equal_as_declared(&self, other: &List<'_>) -> Option<bool> {
        match self.shape()?.list_kind() {
            ListKind::Atomic => None,
            ListKind::Set => Some(other.iter().all(|item| self.contains(&item))),
            ListKind::Map(keys) => Some(other.iter().all(|item| {
                self.iter().find(|known| same_keys(known, &item, keys)).is_some_and(|known| equal(&known, &item))
            })),
        }
    }
}

fn same_keys(one: &Value<'_>, other: &Value<'_>, keys: &[String]) -> bool {
    let (Value::Map(one), Value::Map(other)) = (one, other) else { return false };
    keys.iter().all(|key| match (one.property(key), other.property(key)) {
        (Some(one), Some(other)) => equal(&one, &other),
        (None, None) => true,
        _ => false,
    })
}
