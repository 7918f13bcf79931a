//! What this process has deleted, and the watch may still report in an earlier version.

use super::ReflectorId;
use foldhash::fast::FixedState;
use hashbrown::HashMap;
use std::collections::VecDeque;

/// How many are kept. A tombstone is removed as soon as the watch confirms the deletion, so a deleted object
/// can reappear for a moment only while the watch is this many deletions behind.
const MOST: usize = 16_384;

/// Tombstones by name; a name is a UID or a key, and contents have a set of each.
#[derive(Debug, Default)]
pub(super) struct Tombstones {
    by_name: HashMap<Box<str>, Tombstone, FixedState>,
    /// The oldest first. Names whose tombstone has gone since are skipped.
    order: VecDeque<Box<str>>,
}

#[derive(Clone, Copy, Debug)]
struct Tombstone {
    /// Hides every version up to this one. `u64::MAX` for a UID, which never comes back.
    until: u64,
    reflector: ReflectorId,
    /// How many lists had started at the time of the deletion.
    lists: u64,
}

impl Tombstones {
    pub(super) fn add(&mut self, name: &str, until: u64, reflector: ReflectorId, lists: u64) {
        if let Some(known) = self.by_name.get_mut(name) {
            known.until = known.until.max(until);
            known.lists = lists;
            return;
        }
        while self.order.len() >= MOST {
            if let Some(oldest) = self.order.pop_front() {
                self.by_name.remove(&oldest);
            }
        }
        self.order.push_back(name.into());
        self.by_name.insert(name.into(), Tombstone { until, reflector, lists });
    }

    /// Whether an object of this version is one that was deleted.
    pub(super) fn hides(&self, name: &str, version: u64) -> bool {
        self.by_name.get(name).is_some_and(|tombstone| tombstone.until >= version)
    }

    /// Whether the deletion came before the start of the reflector's current list.
    pub(super) fn is_before(&self, name: &str, reflector: ReflectorId, lists: u64) -> bool {
        let tombstone = self.by_name.get(name);
        tombstone.is_some_and(|tombstone| tombstone.reflector == reflector && tombstone.lists < lists)
    }

    pub(super) fn forget(&mut self, name: &str) {
        if self.by_name.remove(name).is_some() {
            self.shorten_order();
        }
    }

    /// The watch has reported the deletion, and reports no earlier version after that.
    pub(super) fn confirm(&mut self, name: &str, version: u64) {
        let is_confirmed = |tombstone: &Tombstone| tombstone.until == u64::MAX || tombstone.until <= version;
        if self.by_name.get(name).is_some_and(is_confirmed) {
            self.forget(name);
        }
    }

    /// A complete list that started after a deletion confirms it.
    pub(super) fn complete_list(&mut self, reflector: ReflectorId, lists: u64) {
        self.by_name.retain(|_, tombstone| tombstone.reflector != reflector || tombstone.lists >= lists);
        self.shorten_order();
    }

    /// Drops names without a tombstone once they are the majority, so that the cost is spread over many calls.
    fn shorten_order(&mut self) {
        if self.order.len() > 2 * self.by_name.len() + 16 {
            let by_name = &self.by_name;
            self.order.retain(|name| by_name.contains_key(name));
        }
    }
}
