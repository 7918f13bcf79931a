//! The keys a queue knows, each in a slot, and lines in which slots stand one behind the other.
//!
//! A slot is linked into its line by its neighbours' numbers, so that a key joins, leaves and
//! overtakes in constant time and without an allocation.

use super::{Priority, Time, Why};
use crate::Key;
use foldhash::fast::FixedState;
use hashbrown::HashTable;
use std::hash::BuildHasher;

pub(super) type SlotId = u32;
/// Nobody: the neighbour of the first and of the last.
const NONE: SlotId = SlotId::MAX;

/// One key and what is to become of it. It is here as long as it is wanted or in work.
#[derive(Debug)]
pub(super) struct Slot {
    pub(super) key: Key,
    pub(super) in_work: bool,
    pub(super) wanted: Wanted,
    /// Of what is wanted; while in work and not wanted again, of the turn under way.
    pub(super) priority: Priority,
    pub(super) why: Why,
    /// In a row.
    pub(super) failures: u32,
    /// When it began to stand in its line.
    pub(super) since: Time,
    before: SlotId,
    behind: SlotId,
}

/// When a key is to be handed out. While it is in work, that waits until it is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    Not,
    Now,
    At(Due),
}

/// A moment, and a number that orders the keys of one moment by their coming.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Due(pub(super) Time, pub(super) u64);

#[derive(Debug, Default)]
pub(super) struct Slots {
    all: Vec<Option<Slot>>,
    free: Vec<SlotId>,
    by_key: HashTable<SlotId>,
    hasher: FixedState,
}

impl Slots {
    pub(super) fn len(&self) -> usize {
        self.by_key.len()
    }

    pub(super) fn find(&self, key: &Key) -> Option<SlotId> {
        let hash = self.hasher.hash_one(key);
        self.by_key.find(hash, |id| slot(&self.all, *id).key == *key).copied()
    }

    /// The key must not be here yet.
    pub(super) fn insert(&mut self, key: &Key, why: Why) -> SlotId {
        let new = Slot {
            key: key.clone(),
            in_work: false,
            wanted: Wanted::Not,
            priority: Priority::Background,
            why,
            failures: 0,
            since: Time::ZERO,
            before: NONE,
            behind: NONE,
        };
        let id = match self.free.pop() {
            Some(id) => id,
            None => {
                self.all.push(None);
                SlotId::try_from(self.all.len() - 1).expect("the queue's limit is far below")
            }
        };
        self.all[id as usize] = Some(new);
        let hash = self.hasher.hash_one(key);
        let rehash = |id: &SlotId| self.hasher.hash_one(&slot(&self.all, *id).key);
        self.by_key.insert_unique(hash, id, rehash);
        id
    }

    pub(super) fn remove(&mut self, id: SlotId) {
        let gone = self.all[id as usize].take().expect("a slot in use");
        let hash = self.hasher.hash_one(&gone.key);
        if let Ok(entry) = self.by_key.find_entry(hash, |other| *other == id) {
            entry.remove();
        }
        self.free.push(id);
    }
}

impl std::ops::Index<SlotId> for Slots {
    type Output = Slot;
    fn index(&self, id: SlotId) -> &Slot {
        slot(&self.all, id)
    }
}

impl std::ops::IndexMut<SlotId> for Slots {
    fn index_mut(&mut self, id: SlotId) -> &mut Slot {
        self.all[id as usize].as_mut().expect("a slot in use")
    }
}

fn slot(all: &[Option<Slot>], id: SlotId) -> &Slot {
    all[id as usize].as_ref().expect("a slot in use")
}

/// Slots in the order of their coming. A slot stands in one line at most.
#[derive(Debug)]
pub(super) struct Line {
    first: SlotId,
    last: SlotId,
    len: usize,
}

impl Default for Line {
    fn default() -> Line {
        Line { first: NONE, last: NONE, len: 0 }
    }
}

impl Line {
    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn first(&self) -> Option<SlotId> {
        (self.first != NONE).then_some(self.first)
    }

    pub(super) fn join(&mut self, slots: &mut Slots, id: SlotId, since: Time) {
        let slot = &mut slots[id];
        (slot.before, slot.behind, slot.since) = (self.last, NONE, since);
        match self.last {
            NONE => self.first = id,
            last => slots[last].behind = id,
        }
        self.last = id;
        self.len += 1;
    }

    pub(super) fn leave(&mut self, slots: &mut Slots, id: SlotId) {
        let Slot { before, behind, .. } = slots[id];
        match before {
            NONE => self.first = behind,
            before => slots[before].behind = behind,
        }
        match behind {
            NONE => self.last = before,
            behind => slots[behind].before = before,
        }
        self.len -= 1;
    }

    pub(super) fn each<'a>(&self, slots: &'a Slots) -> impl Iterator<Item = &'a Slot> + use<'a> {
        let mut next = self.first;
        std::iter::from_fn(move || {
            let slot = (next != NONE).then(|| &slots[next])?;
            next = slot.behind;
            Some(slot)
        })
    }
}
