//! The value that stood in a place before: what did not change may stay wrong.

use std::collections::HashMap;

use serde_json::Value;

use crate::structural::shape::{ListKind, Shape, ShapeId, Structural};

/// The old value that goes with a new one.
#[derive(Clone, Copy, Debug)]
pub(in crate::structural) struct Before<'s, 'o> {
    schema: &'s Structural,
    shape: &'s Shape,
    pub(in crate::structural) old: &'o Value,
}

/// The items of the list that stood in a place before, found by what tells them apart.
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
        if self.shape.list == ListKind::Map {
            for item in old {
                if let Some(key) = key(self.shape, item) {
                    by_key.entry(key).or_insert(item);
                }
            }
        }
        OldItems { list: self, by_key }
    }

    /// Whether the new value is the old one, as far as the schema can tell.
    pub(in crate::structural) fn is_unchanged(self, new: &Value) -> bool {
        match (self.old, new) {
            (Value::Array(old), Value::Array(new)) => {
                if self.shape.list != ListKind::Map || self.shape.items.is_none() {
                    return old == new;
                }
                let items = self.items();
                old.len() == new.len()
                    && new.iter().all(|item| items.find(item).is_some_and(|before| before.is_unchanged(item)))
            }
            // Kubernetes: a member that the schema does not name makes a change of the whole.
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
    /// The item before, if the list tells its items apart by key.
    pub(in crate::structural) fn find(&self, item: &Value) -> Option<Before<'s, 'o>> {
        let Before { schema, shape, .. } = self.list;
        let old = self.by_key.get(&key(shape, item)?)?;
        Some(Before::new(schema, shape.items?, old))
    }
}

/// The values of the keys, if all are there and single values.
fn key<'v>(shape: &Shape, item: &'v Value) -> Option<Vec<&'v Value>> {
    let item = item.as_object()?;
    let is_scalar = |part: &&Value| part.is_string() || part.is_number() || part.is_boolean();
    let part = |name: &String| item.get(name).filter(is_scalar);
    let key: Vec<_> = shape.list_keys().iter().map(part).collect::<Option<_>>()?;
    (!key.is_empty()).then_some(key)
}
