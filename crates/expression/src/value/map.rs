//! Maps: made by an expression, or a typed view of a JSON object.

use super::{Text, Value, json};
use crate::{
    escape::{escape, unescape},
    shape::{self, Form, Shape},
    text::describe,
};
use serde_json::Value as Json;
use std::{cmp::Ordering, collections::BTreeMap, sync::Arc};

/// A map of values. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Map<'a>(MapRepr<'a>);

#[derive(Clone, Debug)]
enum MapRepr<'a> {
    /// Sorted by key.
    Made(Arc<Vec<(Key<'a>, Value<'a>)>>),
    Json {
        entries: &'a serde_json::Map<String, Json>,
        shape: Option<&'a dyn Shape>,
        is_resource: bool,
    },
}

/// The key of a map. An int and a uint of the same number are one key.
#[derive(Clone, Debug)]
pub enum Key<'a> {
    Bool(bool),
    Int(i64),
    Uint(u64),
    /// Only numbers that are not integers.
    Double(f64),
    String(Text<'a>),
    /// Any other value, identified by its text.
    Other(Arc<(String, Value<'a>)>),
}

impl<'a> Map<'a> {
    pub fn new(entries: BTreeMap<Key<'a>, Value<'a>>) -> Map<'a> {
        Map(MapRepr::Made(Arc::new(entries.into_iter().collect())))
    }

    /// A view of a JSON object whose schema is this, if there is one.
    pub fn json(
        entries: &'a serde_json::Map<String, Json>,
        shape: Option<&'a dyn Shape>,
        is_resource: bool,
    ) -> Map<'a> {
        Map(MapRepr::Json { entries, shape, is_resource })
    }

    pub fn len(&self) -> usize {
        match &self.0 {
            MapRepr::Made(entries) => entries.len(),
            MapRepr::Json { entries, .. } => entries.len(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn find(&self, key: &Value<'_>) -> Option<Value<'a>> {
        match &self.0 {
            MapRepr::Made(entries) => lookup(entries, &Key::of(key)),
            MapRepr::Json { shape, .. } => {
                let name = key.as_str()?;
                if !shape.is_some_and(has_properties) {
                    return self.property(name);
                }
                // A null field of an object counts as absent, like an optional field.
                self.property(&unescape(name)?).filter(|value| !matches!(value, Value::Null))
            }
        }
    }

    /// The value under a JSON name, spelled as in JSON.
    pub(crate) fn property(&self, name: &str) -> Option<Value<'a>> {
        match &self.0 {
            MapRepr::Made(entries) => lookup(entries, &Key::String(Text::Borrowed(name))),
            MapRepr::Json { entries, shape: None, .. } => {
                entries.get(name).map(|value| json::view(value, None))
            }
            MapRepr::Json { entries, .. } => {
                let part = self.part(name)?;
                entries.get(name).map(|value| json::view(value, Some(part)))
            }
        }
    }

    /// The schema of what is under a JSON name.
    fn part(&self, name: &str) -> Option<&'a dyn Shape> {
        let MapRepr::Json { shape, is_resource, .. } = &self.0 else { return None };
        let shape = (*shape)?;
        if *is_resource && let Some(part) = shape::resource_property(name) {
            return Some(part);
        }
        match shape.form() {
            Form::Map => shape.values(),
            _ => shape.property(name),
        }
    }

    /// The keys that expressions may see, in order.
    pub fn keys(&self) -> Vec<Value<'a>> {
        match &self.0 {
            MapRepr::Made(entries) => entries.iter().map(|(key, _)| key.clone().into_value()).collect(),
            MapRepr::Json { entries, shape, .. } => {
                let escaped = shape.is_some_and(has_properties);
                let visible = entries.keys().filter(|name| shape.is_none() || self.part(name).is_some());
                visible
                    .map(|name| match escape(name).filter(|spelled| escaped && spelled != name) {
                        Some(spelled) => Value::string(spelled),
                        None => Value::String(Text::Borrowed(name)),
                    })
                    .collect()
            }
        }
    }

    /// The entry that comes first.
    pub(crate) fn first(&self) -> Option<(Value<'a>, Value<'a>)> {
        let key = match &self.0 {
            MapRepr::Made(entries) => entries.first()?.0.clone().into_value(),
            MapRepr::Json { .. } => self.keys().into_iter().next()?,
        };
        let value = self.find(&key)?;
        Some((key, value))
    }

    /// Keys and values, in the order of the keys.
    pub fn entries(&self) -> Vec<(Value<'a>, Value<'a>)> {
        let value = |key: Value<'a>| self.find(&key).map(|value| (key, value));
        self.keys().into_iter().filter_map(value).collect()
    }

    /// This map with one more entry; it grows in place while it is held nowhere else.
    pub(crate) fn with(self, key: Key<'a>, value: Value<'a>) -> Map<'a> {
        let mut entries = match self.0 {
            MapRepr::Made(entries) => entries,
            MapRepr::Json { .. } => {
                let owned = self.entries().into_iter();
                let mut owned: Vec<_> = owned.map(|(key, value)| (Key::of(&key), value)).collect();
                owned.sort_by(|a, b| a.0.cmp(&b.0));
                Arc::new(owned)
            }
        };
        let list = Arc::make_mut(&mut entries);
        match list.binary_search_by(|(known, _)| known.order(&key)) {
            Ok(at) => list[at].1 = value,
            Err(at) => list.insert(at, (key, value)),
        }
        Map(MapRepr::Made(entries))
    }

    /// Whether data without a schema is equal; `None` where neither side is a view.
    pub(crate) fn equal_unknown_fields(&self, other: &Map<'_>) -> Option<bool> {
        let (MapRepr::Json { entries, shape, .. }, MapRepr::Json { entries: others, .. }) =
            (&self.0, &other.0)
        else {
            return None;
        };
        (*shape)?;
        let mut unknown = entries.iter().filter(|(name, _)| self.part(name).is_none());
        Some(unknown.all(|(name, value)| others.get(name).is_none_or(|theirs| theirs == value)))
    }
}

fn lookup<'a>(entries: &[(Key<'a>, Value<'a>)], key: &Key<'_>) -> Option<Value<'a>> {
    let at = entries.binary_search_by(|(known, _)| known.order(key)).ok()?;
    Some(entries[at].1.clone())
}

/// Whether names are spelled as identifiers: objects with fields, not maps.
fn has_properties(shape: &dyn Shape) -> bool {
    !matches!(shape.form(), Form::Map)
}

impl<'a> Key<'a> {
    /// The key that equals this value; a whole double finds the int.
    pub fn of(value: &Value<'a>) -> Key<'a> {
        match value {
            Value::Bool(value) => Key::Bool(*value),
            Value::Int(value) => Key::Int(*value),
            Value::Uint(value) => Key::Uint(*value),
            Value::Double(value) if value.fract() == 0.0 && value.abs() < 9.2e18 => Key::Int(*value as i64),
            Value::Double(value) => Key::Double(*value),
            Value::String(text) => Key::String(text.clone()),
            other => Key::Other(Arc::new((describe(other), other.clone()))),
        }
    }

    pub fn into_value(self) -> Value<'a> {
        match self {
            Key::Bool(value) => Value::Bool(value),
            Key::Int(value) => Value::Int(value),
            Key::Uint(value) => Value::Uint(value),
            Key::Double(value) => Value::Double(value),
            Key::String(text) => Value::String(text),
            Key::Other(other) => other.1.clone(),
        }
    }

    fn order(&self, other: &Key<'_>) -> Ordering {
        let wide = |key: &Key<'_>| match key {
            Key::Int(value) => i128::from(*value),
            Key::Uint(value) => i128::from(*value),
            Key::Bool(value) => i128::from(*value),
            Key::Double(_) | Key::String(_) | Key::Other(_) => 0,
        };
        match (self, other) {
            (Key::Double(a), Key::Double(b)) => a.total_cmp(b),
            (Key::Other(a), Key::Other(b)) => a.0.cmp(&b.0),
            (Key::String(a), Key::String(b)) => (**a).cmp(&**b),
            _ => self.rank().cmp(&other.rank()).then_with(|| wide(self).cmp(&wide(other))),
        }
    }

    fn rank(&self) -> u8 {
        match self {
            Key::Bool(_) => 0,
            Key::Int(_) | Key::Uint(_) => 1,
            Key::Double(_) => 2,
            Key::String(_) => 3,
            Key::Other(_) => 4,
        }
    }
}

impl Ord for Key<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.order(other)
    }
}

impl PartialOrd for Key<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Key<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Key<'_> {}
