//! An ordered map of keys with fast point reads: a tree for ranges, a hash table for single keys.
//!
//! Both hold slot numbers of one vector. A point read in a tree of a million long keys misses the CPU cache
//! at every comparison (measured: five times as long); the table reduces that to a few misses, for a handful
//! of bytes per key.

use crate::{Error, versions::Versions};
use bytes::Bytes;
use foldhash::fast::RandomState;
use hashbrown::HashTable;
use std::{collections::BTreeMap, hash::BuildHasher, ops::RangeBounds};

#[derive(Debug, Default)]
pub(crate) struct Index {
    order: BTreeMap<Bytes, u32>,
    table: HashTable<u32>,
    slots: Vec<Slot>,
    /// Unused slots.
    free: Vec<u32>,
    hasher: RandomState,
}

#[derive(Debug)]
struct Slot {
    key: Bytes,
    versions: Option<Versions>,
}

impl Index {
    /// An index of entries that come in key order.
    pub(crate) fn load(
        entries: impl Iterator<Item = Result<(Bytes, Versions), Error>>,
    ) -> Result<Index, Error> {
        let mut index = Index::default();
        let mut order = Vec::new();
        for entry in entries {
            let (key, versions) = entry?;
            order.push((key.clone(), index.occupy(key, versions)));
        }
        index.order = order.into_iter().collect();
        Ok(index)
    }

    /// The key as stored here, and its versions.
    pub(crate) fn get(&self, key: &[u8]) -> Option<(&Bytes, &Versions)> {
        let slot = self.find(key)?;
        self.slot(slot)
    }

    pub(crate) fn get_mut(&mut self, key: &[u8]) -> Option<&mut Versions> {
        let slot = self.find(key)?;
        self.slots[slot as usize].versions.as_mut()
    }

    /// Adds a key that is not there yet.
    pub(crate) fn insert(&mut self, key: Bytes, versions: Versions) {
        let slot = self.occupy(key.clone(), versions);
        self.order.insert(key, slot);
    }

    pub(crate) fn remove(&mut self, key: &[u8]) {
        let Some(slot) = self.order.remove(key) else { return };
        let hash = self.hasher.hash_one(key);
        if let Ok(entry) = self.table.find_entry(hash, |other| *other == slot) {
            entry.remove();
        }
        self.slots[slot as usize] = Slot { key: Bytes::new(), versions: None };
        self.free.push(slot);
    }

    pub(crate) fn range(&self, range: impl RangeBounds<Bytes>) -> impl Iterator<Item = (&Bytes, &Versions)> {
        self.order.range(range).filter_map(|(_, slot)| self.slot(*slot))
    }

    fn slot(&self, slot: u32) -> Option<(&Bytes, &Versions)> {
        let Slot { key, versions } = &self.slots[slot as usize];
        versions.as_ref().map(|versions| (key, versions))
    }

    fn find(&self, key: &[u8]) -> Option<u32> {
        let hash = self.hasher.hash_one(key);
        self.table.find(hash, |slot| self.slots[*slot as usize].key == key).copied()
    }

    /// Puts a key into a slot and the slot into the table.
    fn occupy(&mut self, key: Bytes, versions: Versions) -> u32 {
        let hash = self.hasher.hash_one(&key[..]);
        let occupied = Slot { key, versions: Some(versions) };
        let slot = match self.free.pop() {
            Some(slot) => {
                self.slots[slot as usize] = occupied;
                slot
            }
            None => {
                let slot = u32::try_from(self.slots.len()).expect("four billion keys do not fit in memory");
                self.slots.push(occupied);
                slot
            }
        };
        let (slots, hasher) = (&self.slots, &self.hasher);
        self.table.insert_unique(hash, slot, |slot| hasher.hash_one(&slots[*slot as usize].key[..]));
        slot
    }
}
