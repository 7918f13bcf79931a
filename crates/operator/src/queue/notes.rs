//! Notes about keys that are not in the queue: what they wait for, and which are dead letters.

use crate::Key;
use foldhash::fast::FixedState;
use hashbrown::HashMap;
use std::sync::{
    Mutex, MutexGuard, PoisonError,
    atomic::{AtomicUsize, Ordering::Relaxed},
};
use world::Timestamp;

/// Keys beyond this number get no note; they are in logs and metrics only.
const LIMIT: usize = 100_000;

/// A key that failed so often that it is retried rarely. It leaves the list when a reconcile succeeds,
/// or when the object changes and is reconciled again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadLetter {
    /// The key.
    pub key: Key,
    /// Failures in a row.
    pub failures: u32,
    /// The message of the last failure.
    pub message: String,
    /// When it became a dead letter.
    pub since: Timestamp,
}

/// What the last reconcile of a key left behind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Note {
    WaitsFor(&'static str),
    Dead { failures: u32, message: String, since: Timestamp },
}

#[derive(Debug, Default)]
pub(super) struct Notes {
    notes: Mutex<HashMap<Key, Note, FixedState>>,
    /// How many there are. Mostly none, and then a reconcile needs no lock.
    count: AtomicUsize,
}

impl Notes {
    /// Replaces the note of the key.
    pub(super) fn set(&self, key: &Key, note: Option<Note>) {
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
