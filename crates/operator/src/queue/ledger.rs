//! What is known of keys that are at rest: what they wait for, and which were given up for dead.

use crate::Key;
use foldhash::fast::FixedState;
use hashbrown::HashMap;
use std::sync::{
    Mutex, MutexGuard, PoisonError,
    atomic::{AtomicUsize, Ordering::Relaxed},
};
use world::Timestamp;

/// So many keys have a note; of more, only the logs and metrics tell.
const LIMIT: usize = 100_000;

/// A key that failed so often that it is tried rarely. It leaves the list when it does well, or
/// when something changes and it is tried anew.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadLetter {
    pub key: Key,
    /// In a row.
    pub failures: u32,
    /// Of the last one.
    pub message: String,
    /// When it was given up.
    pub since: Timestamp,
}

/// How a key was left by its last turn, if there is anything to say about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Note {
    WaitsFor(&'static str),
    Dead { failures: u32, message: String, since: Timestamp },
}

#[derive(Debug, Default)]
pub(super) struct Ledger {
    notes: Mutex<HashMap<Key, Note, FixedState>>,
    /// How many there are. Mostly none, and then a turn needs no lock.
    count: AtomicUsize,
}

impl Ledger {
    /// Replaces what was noted of the key.
    pub(super) fn write(&self, key: &Key, note: Option<Note>) {
        if note.is_none() && self.count.load(Relaxed) == 0 {
            return;
        }
        let mut notes = self.notes();
        let has_room = notes.len() < LIMIT;
        match (note, notes.get_mut(key)) {
            (
                Some(Note::Dead { failures, message, .. }),
                Some(Note::Dead { failures: f, message: m, .. }),
            ) => {
                (*f, *m) = (failures, message);
            }
            (Some(note), Some(old)) => *old = note,
            (Some(note), None) if has_room => _ = notes.insert(key.clone(), note),
            (Some(_), None) => {}
            (None, _) => _ = notes.remove(key),
        }
        self.count.store(notes.len(), Relaxed);
    }

    pub(super) fn dead_letters(&self) -> Vec<DeadLetter> {
        let notes = self.notes();
        let dead = notes.iter().filter_map(|(key, note)| match note {
            Note::Dead { failures, message, since } => Some(DeadLetter {
                key: key.clone(),
                failures: *failures,
                message: message.clone(),
                since: *since,
            }),
            Note::WaitsFor(_) => None,
        });
        let mut dead: Vec<_> = dead.collect();
        dead.sort_by(|one, other| one.key.cmp(&other.key));
        dead
    }

    pub(super) fn waits(&self) -> Vec<(Key, &'static str)> {
        let notes = self.notes();
        let waits = notes.iter().filter_map(|(key, note)| match note {
            Note::WaitsFor(what) => Some((key.clone(), *what)),
            Note::Dead { .. } => None,
        });
        let mut waits: Vec<_> = waits.collect();
        waits.sort();
        waits
    }

    fn notes(&self) -> MutexGuard<'_, HashMap<Key, Note, FixedState>> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
