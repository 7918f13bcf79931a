//! The old value of a field, for ratcheting: unchanged values may stay invalid.

use std::collections::HashMap;

use serde_json::Value;

use crate::structural::shape::{ListType, Shape, ShapeId, Structural};

/// The old value that a new one is compared with.
#[derive(Clone, Copy, Debug)]
pub(in crate::structural) struct Before<'s, 'o> {
    schema: &'s Structural,
    shape: &'s Shape,
    pub(in crate::structural) old: &'o Value,
}

/// The items of the old list, found by their keys.
#[derive(Debug)]
pub(in crate::structural) struct OldItems<'s, 'o> {
    list: Before<'s, 'o>,
    by_key: HashMap<Vec<&'o Value>, &'o Value>,
}

impl<'s, 'o> Before<'s, 'o> {
    pub(in crate::structural) fn new(schema: &'s Structural, id: ShapeId, old: &'o Value) -> Self {
        Self { schema, shape: schema.shape(id), old }
    }

    pub(in crate::structural) fn member(self, name: &str) -> Option<Self> {
        let old = self.old.as_object()?.get(name)?;
        let id = self.schema.member(self.shape, name)?;
        Some(Self::new(self.schema, id, old))
    }

    pub(in crate::structural) fn items(self) -> OldItems<'s, 'o> {
        let old = self.old.as_array().map_or(&[][..], Vec::as_slice);
        let mut by_key = HashMap::new();
        if self.shape.list == ListType::Map {
            for item in old {
                if let Some(key) = key(self.shape, item) {
                    by_key.entry(key).or_insert(item);
                }
            }
        }
        OldItems { list: self, by_key }
    }

    /// Whether the new value equals the old one, as far as the schema covers them.
    pub(in crate::structural) fn is_unchanged(self, new: &Value) -> bool {
        match (self.old, new) {
            (Value::Array(old), Value::Array(new)) => {
                if self.shape.list != ListType::Map || self.shape.items.is_none() {
                    return old == new;
                }
                let items = self.items();
                old.len() == new.len()
                    && new.iter().all(|item| items.find(item).is_some_and(|before| before.is_unchanged(item)))
            }
            // Kubernetes: a member that the schema does not declare counts as a change of the whole.
            (Value::Object(old), Value::Object(new)) => {
                old.len() == new.len()
                    && new.iter().all(|(name, value)| {
                        self.member(name).is_some_and(|before| before.is_unchanged(value))
                    })
            }
            (old, new) => old == new,
        }
    }
}

impl<'s, 'o> OldItems<'s, 'o> {
    /// The old item with the same keys, if the list has keys.
    pub(in crate::structural) fn find(&self, item: &Value) -> Option<Before<'s, 'o>> {
        let Before { schema, shape, .. } = self.list;
        let old = self.by_key.get(&key(shape, item)?)?;
        Some(Before::new(schema, shape.items?, old))
    }
}

/// The values of the keys, if all are set to scalars.
fn key<'v>(shape: &Shape, item: &'v Value) -> Option<Vec<&'v Value>> {
    let item = item.as_object()?;
    let is_scalar = |part: &&Value| part.is_string() || part.is_number() || part.is_boolean();
    let part = |name: &String| item.get(name).filter(is_scalar);
    let key: Vec<_> = shape.list_keys().iter().map(part).collect::<Option<_>>()?;
    (!key.is_empty()).then_some(key)
}
