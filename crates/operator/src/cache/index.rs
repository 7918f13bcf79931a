//! An index: finds objects by values that are computed from them.

use crate::{
    Key,
    cache::{Item, items::Items},
};
use serde::de::DeserializeOwned;
use std::{
    any::{Any, TypeId},
    collections::BTreeMap,
    fmt,
    sync::Arc,
};

type ValuesOf = dyn Fn(&Item) -> Vec<String> + Send + Sync;

/// The values by which an object is found (client-go: `IndexFunc`).
#[derive(Clone)]
pub(crate) struct IndexFunction {
    values: Arc<ValuesOf>,
    /// Tells one function of the program from another.
    function: TypeId,
}

impl IndexFunction {
    /// The values that `values` finds in an object of type `K`. An object that cannot be decoded has none; reading
    /// it is an error.
    pub(crate) fn typed<K: DeserializeOwned>(
        values: impl Fn(&K) -> Vec<String> + Send + Sync + 'static,
    ) -> IndexFunction {
        let function = values.type_id();
        let of_item =
            move |item: &Item| item.decode::<K>().map_or_else(|_| Vec::new(), |object| values(&object));
        IndexFunction { values: Arc::new(of_item), function }
    }

    /// The values that `values` finds without decoding the object.
    pub(crate) fn of_items(values: impl Fn(&Item) -> Vec<String> + Send + Sync + 'static) -> IndexFunction {
        IndexFunction { function: values.type_id(), values: Arc::new(values) }
    }
}

/// One entry for each value of each object, in order.
pub(crate) struct Index {
    values: IndexFunction,
    entries: BTreeMap<(Arc<str>, Key), Item>,
}

/// The indexes of a cache.
#[derive(Debug, Default)]
pub(crate) struct Indexes {
    named: BTreeMap<&'static str, Index>,
    /// The first name that was given to two functions.
    contested: Option<&'static str>,
    labels: BTreeMap<Box<str>, Index>,
}

/// How many labels are indexed: each costs an entry for each object that has it. For the values of further labels
/// all objects are searched.
const MOST_LABELS: usize = 8;

impl Indexes {
    /// Whether there is an index of this name and this function.
    pub(crate) fn has(&self, name: &str, values: &IndexFunction) -> bool {
        self.named.get(name).is_some_and(|index| index.values.function == values.function)
    }

    /// If there is an index of this name, it stays as it is.
    pub(crate) fn add(&mut self, name: &'static str, values: IndexFunction, items: &Items) {
        if self.named.contains_key(name) && !self.has(name, &values) {
            self.contested.get_or_insert(name);
        }
        self.named.entry(name).or_insert_with(|| Index::filled(values, items));
    }

    /// A name that was given to two functions, if there is one.
    pub(crate) fn contested(&self) -> Option<&'static str> {
        self.contested
    }

    pub(crate) fn find<'a>(&'a self, name: &str, value: &'a str) -> impl Iterator<Item = &'a Item> {
        self.named.get(name).into_iter().flat_map(move |index| index.find(value))
    }

    pub(crate) fn has_label(&self, label: &str) -> bool {
        self.labels.contains_key(label)
    }

    /// Whether one more label may be indexed because a selector asks for it.
    pub(crate) fn may_add_label(&self) -> bool {
        self.labels.len() < MOST_LABELS
    }

    pub(crate) fn add_label(&mut self, label: &str, items: &Items) {
        let (name, label) = (Box::from(label), label.to_owned());
        let value = move |item: &Item| item.labels().get(&label).map(str::to_owned).into_iter().collect();
        self.labels.entry(name).or_insert_with(|| Index::filled(IndexFunction::of_items(value), items));
    }

    /// The objects with this value of a label, in one namespace or in all, by its index if there is one.
    pub(crate) fn labelled<'a>(
        &'a self,
        label: &str,
        value: &'a str,
        namespace: Option<&'a str>,
        items: &'a Items,
    ) -> Vec<&'a Item> {
        let has_value = |item: &&Item| item.labels().get(label) == Some(value);
        match (self.labels.get(label), namespace) {
            (Some(index), None) => index.find(value).collect(),
            (Some(index), Some(namespace)) => index.find_in(namespace, value).collect(),
            (None, None) => items.iter().filter(has_value).collect(),
            (None, Some(namespace)) => items.in_namespace(namespace).filter(has_value).collect(),
        }
    }

    pub(crate) fn update(&mut self, before: Option<&Item>, after: Option<&Item>) {
        let all = self.named.values_mut().chain(self.labels.values_mut());
        all.for_each(|index| index.update(before, after));
    }
}

impl Index {
    fn new(values: IndexFunction) -> Index {
        Index { values, entries: BTreeMap::new() }
    }

    /// An index of these items.
    fn filled(values: IndexFunction, items: &Items) -> Index {
        let mut index = Index::new(values);
        items.iter().for_each(|item| index.update(None, Some(item)));
        index
    }

    /// Finds objects by the UIDs of their owners.
    pub(crate) fn owners() -> Index {
        let uids = |item: &Item| item.owner_references().into_iter().map(|owner| owner.uid).collect();
        Index::new(IndexFunction::of_items(uids))
    }

    pub(crate) fn find<'a>(&'a self, value: &'a str) -> impl Iterator<Item = &'a Item> {
        self.from(value, Key::parse("")).map(|(_, item)| item)
    }

    /// As [`Index::find`], in one namespace.
    fn find_in<'a>(&'a self, namespace: &'a str, value: &'a str) -> impl Iterator<Item = &'a Item> {
        // Before every name: the keys of a namespace follow each other.
        let entries = self.from(value, Key::new(Some(namespace), ""));
        entries.take_while(move |(key, _)| key.namespace() == Some(namespace)).map(|(_, item)| item)
    }

    /// The objects with this value from a key on, in the order of their keys.
    fn from<'a>(&'a self, value: &'a str, first: Key) -> impl Iterator<Item = (&'a Key, &'a Item)> {
        let entries = self.entries.range((Arc::from(value), first)..);
        let entries = entries.take_while(move |((found, _), _)| &**found == value);
        entries.map(|((_, key), item)| (key, item))
    }

    /// Replaces the entries of `before` by those of `after`.
    pub(crate) fn update(&mut self, before: Option<&Item>, after: Option<&Item>) {
        for item in before.into_iter() {
            for value in (self.values.values)(item) {
                self.entries.remove(&(value.into(), item.key().clone()));
            }
        }
        for item in after.into_iter() {
            for value in (self.values.values)(item) {
                self.entries.insert((value.into(), item.key().clone()), item.clone());
            }
        }
    }
}

impl fmt::Debug for Index {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Index of {}", self.entries.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::test_reader;

    #[test]
    fn an_indexed_label_is_found_without_a_search_of_all_objects() {
        let none = Items::default();
        let mut indexes = Indexes::default();
        for number in 0..MOST_LABELS {
            assert!(indexes.may_add_label());
            indexes.add_label(&format!("label-{number}"), &none);
        }
        assert!(!indexes.may_add_label());
        // As the framework does for its own label.
        indexes.add_label("set", &none);
        let json = r#"{"metadata":{"name":"web","namespace":"prod","uid":"1","resourceVersion":"1",
            "labels":{"set":"a","app":"web"}}}"#;
        indexes.update(None, Some(&test_reader().read(json).unwrap()));
        for (label, value, namespace, found) in [
            ("set", "a", None, 1),
            ("set", "a", Some("prod"), 1),
            ("set", "a", Some("pro"), 0),
            ("set", "b", None, 0),
            // Not indexed: it is looked for among all objects, of which none are given here.
            ("app", "web", None, 0),
        ] {
            assert_eq!(indexes.labelled(label, value, namespace, &none).len(), found, "{label}={value}");
        }
    }
}
