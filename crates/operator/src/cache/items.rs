//! A set of items that is searched by key and by UID, and iterated in the order of keys.

use crate::{Key, cache::Item};
use foldhash::fast::FixedState;
use hashbrown::{HashTable, hash_table::Entry};
use std::{
    borrow::Borrow,
    collections::BTreeSet,
    hash::BuildHasher,
    ops::Bound::{Excluded, Included},
};

/// Each of the three costs about a pointer for each object.
#[derive(Debug, Default)]
pub(crate) struct Items {
    by_key: HashTable<Item>,
    by_uid: HashTable<Item>,
    sorted: BTreeSet<ByKey>,
}

#[derive(Debug)]
struct ByKey(Item);

impl Items {
    pub(crate) fn get(&self, key: &str) -> Option<&Item> {
        self.by_key.find(hash(key), |item| item.key().as_str() == key)
    }

    pub(crate) fn by_uid(&self, uid: &str) -> Option<&Item> {
        self.by_uid.find(hash(uid), |item| item.uid() == uid)
    }

    pub(crate) fn len(&self) -> usize {
        self.sorted.len()
    }

    /// In the order of their keys.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Item> {
        self.sorted.iter().map(|ByKey(item)| item)
    }

    pub(crate) fn in_namespace(&self, namespace: &str) -> impl Iterator<Item = &Item> {
        // `0` is the next character after `/` in ASCII.
        let (first, end) = (format!("{namespace}/"), format!("{namespace}0"));
        let range = self.sorted.range::<str, _>((Included(first.as_str()), Excluded(end.as_str())));
        range.map(|ByKey(item)| item)
    }

    /// Returns the item that had the same key.
    pub(crate) fn put(&mut self, item: Item) -> Option<Item> {
        let before = self.take(item.key());
        insert(&mut self.by_key, &item, |item| item.key().as_str());
        insert(&mut self.by_uid, &item, Item::uid);
        self.sorted.insert(ByKey(item));
        before
    }

    pub(crate) fn take(&mut self, key: &Key) -> Option<Item> {
        let key = key.as_str();
        let entry = self.by_key.find_entry(hash(key), |item| item.key().as_str() == key).ok()?;
        let (item, _) = entry.remove();
        if let Ok(entry) = self.by_uid.find_entry(hash(item.uid()), |other| other.is_same(&item)) {
            entry.remove();
        }
        self.sorted.remove(key);
        Some(item)
    }
}

fn insert(table: &mut HashTable<Item>, item: &Item, name: fn(&Item) -> &str) {
    let same = |other: &Item| name(other) == name(item);
    match table.entry(hash(name(item)), same, |other| hash(name(other))) {
        // The server has given one UID to two objects: the later one wins.
        Entry::Occupied(mut entry) => *entry.get_mut() = item.clone(),
        Entry::Vacant(entry) => drop(entry.insert(item.clone())),
    }
}

fn hash(text: &str) -> u64 {
    FixedState::default().hash_one(text)
}

impl Borrow<str> for ByKey {
    fn borrow(&self) -> &str {
        self.0.key().as_str()
    }
}

impl PartialEq for ByKey {
    fn eq(&self, other: &ByKey) -> bool {
        self.0.key() == other.0.key()
    }
}

impl Eq for ByKey {}

impl PartialOrd for ByKey {
    fn partial_cmp(&self, other: &ByKey) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for ByKey {
    fn cmp(&self, other: &ByKey) -> std::cmp::Ordering {
        self.0.key().cmp(other.0.key())
    }
}
