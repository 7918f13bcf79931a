//! The keys of a queue, each in a slot; and first-in-first-out lists of slots.
//!
//! A slot holds the numbers of its neighbours in the list, so that a key is added, removed and moved in
//! constant time and without an allocation.

use super::{Priority, Reason, Time};
use crate::Key;
use foldhash::fast::FixedState;
use hashbrown::HashTable;
use std::hash::BuildHasher;

pub(super) type SlotId = u32;
/// The neighbour before the first and after the last.
const NONE: SlotId = SlotId::MAX;

/// One key and its state. It has a slot as long as it is scheduled or in progress.
#[derive(Debug)]
pub(super) struct Slot {
    pub(super) key: Key,
    pub(super) in_progress: bool,
    pub(super) scheduled: Scheduled,
    /// Of what is scheduled; if nothing is, of the reconcile in progress.
    pub(super) priority: Priority,
    pub(super) reason: Reason,
    /// Failures in a row.
    pub(super) failures: u32,
    /// When it came into its list.
    pub(super) since: Time,
    previous: SlotId,
    next: SlotId,
}

/// When a key is due. While it is in progress, it waits until that is finished.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scheduled {
    No,
    Now,
    At(Due),
}

/// A time, and a number that orders keys with the same time by their arrival.
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

    /// The key must not have a slot yet.
    pub(super) fn insert(&mut self, key: &Key, reason: Reason) -> SlotId {
        let new = Slot {
            key: key.clone(),
            in_progress: false,
            scheduled: Scheduled::No,
            priority: Priority::Background,
            reason,
            failures: 0,
            since: Time::ZERO,
            previous: NONE,
            next: NONE,
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

/// Slots in the order of their arrival. A slot is in one list at most.
#[derive(Debug)]
pub(super) struct Fifo {
    first: SlotId,
    last: SlotId,
    len: usize,
}

impl Default for Fifo {
    fn default() -> Fifo {
        Fifo { first: NONE, last: NONE, len: 0 }
    }
}

impl Fifo {
    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn first(&self) -> Option<SlotId> {
        (self.first != NONE).then_some(self.first)
    }

    pub(super) fn push(&mut self, slots: &mut Slots, id: SlotId, since: Time) {
        let slot = &mut slots[id];
        (slot.previous, slot.next, slot.since) = (self.last, NONE, since);
        match self.last {
            NONE => self.first = id,
            last => slots[last].next = id,
        }
        self.last = id;
        self.len += 1;
    }

    pub(super) fn remove(&mut self, slots: &mut Slots, id: SlotId) {
        let Slot { previous, next, .. } = slots[id];
        match previous {
            NONE => self.first = next,
            previous => slots[previous].next = next,
        }
        match next {
            NONE => self.last = previous,
            next => slots[next].previous = previous,
        }
        self.len -= 1;
    }

    pub(super) fn iter<'a>(&self, slots: &'a Slots) -> impl Iterator<Item = &'a Slot> + use<'a> {
        let mut next = self.first;
        std::iter::from_fn(move || {
            let slot = (next != NONE).then(|| &slots[next])?;
            next = slot.next;
            Some(slot)
        })
    }
}
