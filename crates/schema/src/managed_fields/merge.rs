//! Merges an applied configuration into an object. Nothing is removed here.
//!
//! Items of a list are in the order of the configuration as far as it has them; the others keep the object's
//! order.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::typed::{Typed, items};
use crate::field_set::Element;
use crate::field_set::shape::{FieldShape, ListShape, MapShape, Place};
use crate::types::{Node, Types};

impl<'t> Typed<'t> {
    /// Lays `over` over this object.
    pub(super) fn merge(&self, over: &Typed<'_>) -> Typed<'t> {
        let node = Node::Object(self.of);
        let merged =
            Merge { types: self.types }.place(Place::Typed(&node), Some(&self.value), Some(&over.value));
        self.with(merged.unwrap_or_default())
    }
}

struct Merge<'t> {
    types: &'t Types,
}

impl<'t> Merge<'t> {
    /// `None` where nothing is left: an empty object is not kept.
    fn place(&self, place: Place<'t>, live: Option<&Value>, over: Option<&Value>) -> Option<Value> {
        let decisive = over.or(live)?;
        match place.shape(self.types, Some(decisive)) {
            FieldShape::List(list) if !list.is_atomic() => {
                let (live, over) = (items(live), items(over));
                if !live.is_empty() || !over.is_empty() {
                    let merged = self.items(list, live, over);
                    return (!merged.is_empty()).then_some(Value::Array(merged));
                }
            }
            FieldShape::Map(map) if !map.atomic => {
                let (live, over) = (live.and_then(Value::as_object), over.and_then(Value::as_object));
                if [live, over].into_iter().flatten().any(|members| !members.is_empty()) {
                    let merged = self.members(map, live, over);
                    return (!merged.is_empty()).then_some(Value::Object(merged));
                }
            }
            _ => {}
        }
        Some(decisive.clone())
    }

    fn members(
        &self,
        map: MapShape<'t>,
        live: Option<&Map<String, Value>>,
        over: Option<&Map<String, Value>>,
    ) -> Map<String, Value> {
        let names: BTreeSet<&String> = [live, over].into_iter().flatten().flat_map(Map::keys).collect();
        let merged = names.into_iter().filter_map(|name| {
            let (live, over) = (live.and_then(|live| live.get(name)), over.and_then(|over| over.get(name)));
            Some((name.clone(), self.place(map.place(name)?, live, over)?))
        });
        merged.collect()
    }

    fn items(&self, list: ListShape<'t>, live: &[Value], over: &[Value]) -> Vec<Value> {
        Weaving::new(self, list, live, over).weave()
    }
}

/// Two lists that are being merged.
struct Weaving<'m, 't, 'v> {
    merge: &'m Merge<'t>,
    list: ListShape<'t>,
    live: Vec<(Element, &'v Value)>,
    over: Vec<(Element, &'v Value)>,
    /// By key. Null where several items of the object have the key: those are not merged.
    live_by_key: BTreeMap<Element, &'v Value>,
    over_by_key: BTreeMap<Element, &'v Value>,
}

impl<'m, 't, 'v> Weaving<'m, 't, 'v> {
    fn new(merge: &'m Merge<'t>, list: ListShape<'t>, live: &'v [Value], over: &'v [Value]) -> Self {
        let keyed = |items: &'v [Value]| -> Vec<(Element, &'v Value)> {
            items.iter().filter_map(|item| Some((list.element(merge.types, item).ok()?, item))).collect()
        };
        let (live, over) = (keyed(live), keyed(over));
        let mut live_by_key = BTreeMap::new();
        for (element, item) in &live {
            live_by_key.entry(element.clone()).and_modify(|found| *found = &Value::Null).or_insert(*item);
        }
        let over_by_key = over.iter().cloned().collect();
        Weaving { merge, list, live, over, live_by_key, over_by_key }
    }

    /// Walks both lists. The object's items keep their order until one comes that the configuration has
    /// further on; that one waits for its turn in the order of the configuration.
    fn weave(&self) -> Vec<Value> {
        let mut woven = Vec::with_capacity(self.live.len().max(self.over.len()));
        let mut placed: BTreeSet<&Element> = BTreeSet::new();
        let shared: Vec<_> = self.over.iter().filter(|(key, _)| self.live_by_key.contains_key(key)).collect();
        let mut shared = shared.into_iter().map(|(key, _)| key).peekable();
        let (mut live, mut over) = (self.live.iter().peekable(), self.over.iter().peekable());
        while live.peek().is_some() || over.peek().is_some() {
            if let (Some((key, _)), Some((next, _))) = (live.peek(), over.peek()) {
                if key == next {
                    woven.extend(self.merged(key));
                    placed.insert(key);
                    shared.next();
                    live.next();
                    over.next();
                    continue;
                }
                let is_shared = self.over_by_key.contains_key(key);
                if is_shared && shared.peek().is_some_and(|wanted| *wanted != key) {
                    live.next();
                    continue;
                }
            }
            if let Some((key, item)) = live.peek() {
                if !self.over_by_key.contains_key(key) {
                    woven.extend(self.merge.place(self.list.items, Some(item), None));
                    live.next();
                    continue;
                }
                if placed.contains(key) {
                    live.next();
                }
            }
            if let Some((key, _)) = over.next() {
                woven.extend(self.merged(key));
                placed.insert(key);
                shared.next_if(|wanted| *wanted == key);
            }
        }
        woven
    }

    fn merged(&self, key: &Element) -> Option<Value> {
        let (live, over) = (self.live_by_key.get(key).copied(), self.over_by_key.get(key).copied());
        self.merge.place(self.list.items, live, over)
    }
}
