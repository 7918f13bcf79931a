//! The latest commits, and the readers that follow them. A commit never waits for a reader.
//!
//! A reader has no buffer of its own, only a position in the shared history. A commit marks the readers whose
//! prefix it touches and wakes them; each then takes the commits that it has not seen. A reader that falls
//! out of the window gets [`Error::Compacted`]. A reader that no commit touches never moves and never falls
//! behind.

use crate::{Change, Commit, Error, Revision};
use bytes::Bytes;
use foldhash::fast::RandomState;
use std::{
    collections::{BTreeMap, HashMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock},
    task::Waker,
};

/// How much history is kept for reads and feeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    pub changes: usize,
    /// Memory for history only: overwritten values and the list of changes.
    pub bytes: usize,
    /// The quota: keys and values of the latest revision, in bytes. Writes that would exceed it fail.
    pub live_bytes: u64,
}

/// Existing keys may exceed the quota by this part of it (1/16), so that entries can still be marked for
/// deletion.
const RESERVE: u64 = 16;

impl Limits {
    /// The live bytes after `changes`, or an error if they would exceed the quota.
    pub(crate) fn check_growth(&self, live: u64, changes: &[Change]) -> Result<u64, Error> {
        let size = |change: &Change| {
            let value = change.value.as_ref().map_or(0, |value| change.key.len() + value.len());
            let previous = change.previous.as_ref().map_or(0, |old| change.key.len() + old.value.len());
            (value as u64, previous as u64)
        };
        let (added, removed) =
            changes.iter().map(size).fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
        let next = (live + added).saturating_sub(removed);
        let is_new = changes.iter().any(|change| change.previous.is_none() && change.value.is_some());
        let limit =
            if is_new { self.live_bytes } else { self.live_bytes.saturating_add(self.live_bytes / RESERVE) };
        if added > removed && next > limit {
            return Err(Error::QuotaExceeded { limit: self.live_bytes });
        }
        Ok(next)
    }
}

impl Default for Limits {
    /// Ten seconds of the fastest writers, hours of a usual cluster; 64 MiB at the most.
    fn default() -> Limits {
        Limits { changes: 100_000, bytes: 64 << 20, live_bytes: u64::MAX }
    }
}

/// The memory of a change beside its bytes: records, counters, map nodes.
const CHANGE_OVERHEAD: usize = 192;
/// Commits that a reader takes at once, so that it does not lock the window for each.
const TAKE: usize = 64;

#[derive(Debug)]
pub(crate) struct Window {
    history: RwLock<History>,
    readers: Mutex<Readers>,
}

#[derive(Clone, Debug)]
struct History {
    /// Commits up to here are dropped.
    floor: Revision,
    /// Commits up to here have been delivered.
    head: Revision,
    commits: VecDeque<Arc<Commit>>,
    changes: usize,
    weight: usize,
    closed: bool,
}

impl Window {
    /// An empty window after `floor`.
    pub(crate) fn new(floor: Revision) -> Window {
        let history =
            History { floor, head: floor, commits: VecDeque::new(), changes: 0, weight: 0, closed: false };
        Window { history: RwLock::new(history), readers: Mutex::default() }
    }

    /// Another window with the same commits, and without readers.
    pub(crate) fn fork(&self) -> Window {
        let history = History { closed: false, ..self.read().clone() };
        Window { history: RwLock::new(history), readers: Mutex::default() }
    }

    pub(crate) fn append(&self, commits: impl IntoIterator<Item = Arc<Commit>>) {
        let mut woken = Vec::new();
        let mut history = self.write();
        let mut readers = lock(&self.readers);
        for commit in commits {
            readers.mark(&commit, &mut woken);
            history.push(commit);
        }
        readers.reach(history.head, &mut woken);
        drop((readers, history));
        wake(woken);
    }

    #[cfg(feature = "etcd")]
    pub(crate) fn head(&self) -> Revision {
        self.read().head
    }

    pub(crate) fn floor(&self) -> Revision {
        self.read().floor
    }

    /// The new floor that would bring the window within `limits`.
    pub(crate) fn excess(&self, limits: &Limits) -> Option<Revision> {
        let history = self.read();
        let (mut changes, mut weight) = (history.changes, history.weight);
        let mut floor = None;
        for commit in &history.commits {
            if changes <= limits.changes && weight <= limits.bytes {
                break;
            }
            changes -= commit.changes.len();
            weight -= memory_of(commit);
            floor = Some(commit.revision);
        }
        floor
    }

    /// Forgets everything up to `floor`, and returns it, as callers have more to clean up.
    pub(crate) fn forget(&self, floor: Revision) -> Vec<Arc<Commit>> {
        let mut history = self.write();
        let count = history.commits.partition_point(|commit| commit.revision <= floor);
        let forgotten: Vec<_> = history.commits.drain(..count).collect();
        for commit in &forgotten {
            history.changes -= commit.changes.len();
            history.weight -= memory_of(commit);
        }
        history.floor = history.floor.max(floor);
        forgotten
    }

    /// Continues at `revision` with a gap before it: every reader is cut off.
    #[cfg(feature = "etcd")]
    pub(crate) fn skip_to(&self, revision: Revision) {
        self.forget(revision);
        let mut history = self.write();
        let unseen = history.head.next();
        history.head = history.head.max(revision);
        let woken = lock(&self.readers).mark_all(unseen);
        drop(history);
        wake(woken);
    }

    /// Ends every feed.
    pub(crate) fn close(&self) {
        let mut history = self.write();
        history.closed = true;
        let woken = lock(&self.readers).mark_all(history.head.next());
        drop(history);
        wake(woken);
    }

    /// Adds a reader after `since`, or after the head.
    pub(crate) fn join(&self, prefix: Bytes, since: Option<Revision>) -> Result<Arc<Reader>, Error> {
        let history = self.read();
        if history.closed {
            return Err(Error::Closed);
        }
        let since = since.unwrap_or(history.head);
        history.check(since)?;
        let pending = (since < history.head).then(|| since.next());
        let reader = Arc::new(Reader { prefix, place: Mutex::new(Place { pending, waker: None }) });
        lock(&self.readers).add(&reader);
        Ok(reader)
    }

    pub(crate) fn leave(&self, reader: &Arc<Reader>) {
        lock(&self.readers).remove(reader);
    }

    /// Wakes `reader` when everything up to `mark` has been delivered, even if none of it is under its
    /// prefix.
    pub(crate) fn expect(&self, reader: &Arc<Reader>, mark: Revision) {
        let history = self.read();
        if history.head < mark {
            lock(&self.readers).marks.push((mark, Arc::clone(reader)));
        }
    }

    /// Moves the commits that `reader` has not seen to `inbox`; if there are none, keeps `waker` for the next
    /// commit under its prefix.
    pub(crate) fn take(
        &self,
        reader: &Reader,
        inbox: &mut VecDeque<Arc<Commit>>,
        waker: &Waker,
    ) -> Result<Taken, Error> {
        let history = self.read();
        if history.closed {
            return Err(Error::Closed);
        }
        let mut place = lock(&reader.place);
        if let Some(pending) = place.pending {
            history.check(Revision(pending.0 - 1))?;
            place.pending = history.collect(pending, &reader.prefix, inbox);
        }
        if !inbox.is_empty() {
            return Ok(Taken::Some);
        }
        place.waker = Some(waker.clone());
        Ok(Taken::Nothing { seen: history.head })
    }

    fn read(&self) -> std::sync::RwLockReadGuard<'_, History> {
        self.history.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> std::sync::RwLockWriteGuard<'_, History> {
        self.history.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl History {
    fn push(&mut self, commit: Arc<Commit>) {
        self.head = commit.revision;
        if commit.changes.is_empty() {
            return;
        }
        self.changes += commit.changes.len();
        self.weight += memory_of(&commit);
        self.commits.push_back(commit);
    }

    /// Whether everything after `revision` can still be delivered.
    fn check(&self, revision: Revision) -> Result<(), Error> {
        if revision < self.floor {
            return Err(Error::Compacted { asked: revision, floor: self.floor });
        }
        if revision > self.head {
            return Err(Error::Future { asked: revision, current: self.head });
        }
        Ok(())
    }

    /// Collects up to [`TAKE`] commits from `first` on; returns where to continue.
    fn collect(&self, first: Revision, prefix: &[u8], inbox: &mut VecDeque<Arc<Commit>>) -> Option<Revision> {
        let start = self.commits.partition_point(|commit| commit.revision < first);
        for commit in self.commits.range(start..) {
            if inbox.len() == TAKE {
                return Some(commit.revision);
            }
            inbox.extend(under(prefix, commit));
        }
        None
    }
}

/// The part of `commit` under `prefix`, if any.
fn under(prefix: &[u8], commit: &Arc<Commit>) -> Option<Arc<Commit>> {
    let inside = |change: &&Change| change.key.starts_with(prefix);
    match commit.changes.iter().filter(inside).count() {
        0 => None,
        all if all == commit.changes.len() => Some(Arc::clone(commit)),
        _ => {
            let changes = commit.changes.iter().filter(inside).cloned().collect();
            Some(Arc::new(Commit { revision: commit.revision, changes }))
        }
    }
}

fn memory_of(commit: &Commit) -> usize {
    let previous = |change: &Change| change.previous.as_ref().map_or(0, |previous| previous.value.len());
    commit.changes.iter().map(|change| CHANGE_OVERHEAD + change.key.len() + previous(change)).sum()
}

/// The result of [`Window::take`].
pub(crate) enum Taken {
    Some,
    /// The reader has seen everything up to this revision.
    Nothing {
        seen: Revision,
    },
}

/// A follower of a prefix.
#[derive(Debug)]
pub(crate) struct Reader {
    prefix: Bytes,
    place: Mutex<Place>,
}

#[derive(Debug)]
struct Place {
    /// The first commit that it may not have seen; `None` when it has seen all for its prefix.
    pending: Option<Revision>,
    waker: Option<Waker>,
}

impl Reader {
    fn mark(&self, revision: Revision) -> Option<Waker> {
        let mut place = lock(&self.place);
        place.pending.get_or_insert(revision);
        place.waker.take()
    }
}

/// Readers by prefix, found from a key without visiting the others.
#[derive(Debug, Default)]
struct Readers {
    by_prefix: HashMap<Bytes, Vec<Arc<Reader>>, RandomState>,
    /// How many prefixes there are of each length.
    lengths: BTreeMap<usize, usize>,
    /// Readers that wait for the head to reach a revision.
    marks: Vec<(Revision, Arc<Reader>)>,
}

impl Readers {
    fn add(&mut self, reader: &Arc<Reader>) {
        let same = self.by_prefix.entry(reader.prefix.clone()).or_default();
        if same.is_empty() {
            *self.lengths.entry(reader.prefix.len()).or_default() += 1;
        }
        same.push(Arc::clone(reader));
    }

    fn remove(&mut self, reader: &Arc<Reader>) {
        self.marks.retain(|(_, other)| !Arc::ptr_eq(other, reader));
        let Some(same) = self.by_prefix.get_mut(&reader.prefix) else { return };
        same.retain(|other| !Arc::ptr_eq(other, reader));
        if same.is_empty() {
            self.by_prefix.remove(&reader.prefix);
            let length = reader.prefix.len();
            if let Some(count) = self.lengths.get_mut(&length) {
                *count -= 1;
                if *count == 0 {
                    self.lengths.remove(&length);
                }
            }
        }
    }

    fn mark(&self, commit: &Commit, woken: &mut Vec<Waker>) {
        for change in &commit.changes {
            for length in self.lengths.keys().take_while(|length| **length <= change.key.len()) {
                let readers = self.by_prefix.get(&change.key[..*length]).into_iter().flatten();
                woken.extend(readers.filter_map(|reader| reader.mark(commit.revision)));
            }
        }
    }

    fn reach(&mut self, head: Revision, woken: &mut Vec<Waker>) {
        for (_, reader) in self.marks.extract_if(.., |(mark, _)| *mark <= head) {
            woken.extend(lock(&reader.place).waker.take());
        }
    }

    fn mark_all(&self, revision: Revision) -> Vec<Waker> {
        self.by_prefix.values().flatten().filter_map(|reader| reader.mark(revision)).collect()
    }
}

/// Wakes outside of every lock: the task that wakes may take them.
fn wake(wakers: Vec<Waker>) {
    for waker in wakers {
        waker.wake();
    }
}

/// No code under the lock can panic halfway through a change, so poisoning is harmless.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
