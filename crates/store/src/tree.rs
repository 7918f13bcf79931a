//! All keys in order, with every version that is still kept: the state of [`crate::Memory`] and
//! [`crate::Embedded`], without I/O.

use crate::{
    Batch, Change, Commit, Condition, Conflict, Entry, Error, Limits, Page, Previous, Range, Read, Revision,
    Write,
    index::Index,
    versions::{Version, Versions},
    window::Window,
};
use bytes::Bytes;
use std::{
    collections::BTreeMap,
    ops::{Bound, ControlFlow},
    sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard},
};

/// Entries read under one lock: long scans let writers in between.
const SCAN: usize = 1024;

#[derive(Debug)]
pub(crate) struct Tree {
    keys: RwLock<Keys>,
    window: Arc<Window>,
    limits: Limits,
}

/// Versions of keys that are decided, but not applied to the tree yet.
pub(crate) type Overlay = BTreeMap<Bytes, Version>;

#[derive(Debug, Default)]
struct Keys {
    entries: Index,
    revision: Revision,
    /// Keys and values of the latest revision, in bytes.
    live_bytes: u64,
    /// Revisions with active readers: the floor stays below them.
    pins: BTreeMap<Revision, usize>,
}

impl Tree {
    pub(crate) fn new(limits: Limits) -> Tree {
        Tree { keys: RwLock::default(), window: Arc::new(Window::new(Revision(0))), limits }
    }

    /// A tree of `entries`, which come in order, without history.
    pub(crate) fn load(
        limits: Limits,
        revision: Revision,
        entries: impl Iterator<Item = Result<Entry, Error>>,
    ) -> Result<Tree, Error> {
        let mut live_bytes = 0;
        let versions = entries.map(|entry| {
            let Entry { key, value, revision } = entry?;
            live_bytes += (key.len() + value.len()) as u64;
            Ok((key, Versions::new(Version { revision, value: Some(value) })))
        });
        let entries = Index::load(versions)?;
        let keys = Keys { entries, revision, live_bytes, pins: BTreeMap::new() };
        Ok(Tree { keys: RwLock::new(keys), window: Arc::new(Window::new(revision)), limits })
    }

    /// Another tree with the same entries and the same history. Values are shared.
    pub(crate) fn fork(&self) -> Tree {
        // Commits change keys and window under this lock.
        let keys = self.read();
        let versions = keys.entries.range(..).map(|(key, versions)| Ok((key.clone(), versions.clone())));
        let entries = Index::load(versions).expect("entries in memory are not damaged");
        let forked =
            Keys { entries, revision: keys.revision, live_bytes: keys.live_bytes, pins: BTreeMap::new() };
        let window = Arc::new(self.window.fork());
        Tree { keys: RwLock::new(forked), window, limits: self.limits }
    }

    pub(crate) fn window(&self) -> &Arc<Window> {
        &self.window
    }

    pub(crate) fn revision(&self) -> Revision {
        self.read().revision
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.limits
    }

    pub(crate) fn live_bytes(&self) -> u64 {
        self.read().live_bytes
    }

    pub(crate) fn get(&self, key: &Bytes, at: Option<Revision>) -> Result<Read, Error> {
        let keys = self.read();
        let revision = self.resolve(&keys, at)?;
        let entry = keys.entries.get(key).and_then(|(_, versions)| versions.entry_at(key, revision));
        Ok(Read { entry, revision })
    }

    pub(crate) fn range(self: &Arc<Tree>, range: &Range) -> Result<Page, Error> {
        let pin = self.pin(range.at)?;
        let mut page = Page { entries: Vec::new(), more: false, revision: pin.revision };
        let limit = if range.limit == 0 { usize::MAX } else { range.limit };
        self.scan(range, |key, versions| {
            let Some(entry) = versions.entry_at(key, pin.revision) else { return ControlFlow::Continue(()) };
            if page.entries.len() == limit {
                page.more = true;
                return ControlFlow::Break(());
            }
            page.entries.push(entry);
            ControlFlow::Continue(())
        });
        Ok(page)
    }

    /// The number of entries in a range, ignoring its limit.
    pub(crate) fn count(self: &Arc<Tree>, range: &Range) -> Result<u64, Error> {
        let pin = self.pin(range.at)?;
        let mut count = 0;
        self.scan(range, |_, versions| {
            count += u64::from(versions.is_at(pin.revision));
            ControlFlow::Continue(())
        });
        Ok(count)
    }

    /// Shows every key of a range in order, letting writers in from time to time. The caller
    /// holds a pin, or the past may change between two keys.
    fn scan(&self, range: &Range, mut visit: impl FnMut(&Bytes, &Versions) -> ControlFlow<()>) {
        if range.is_empty() {
            return;
        }
        let mut start = Bound::Included(range.start.clone());
        loop {
            let keys = self.read();
            let end = range.end.as_ref().map_or(Bound::Unbounded, Bound::Excluded);
            let mut scanned = 0;
            let mut last = None;
            for (key, versions) in keys.entries.range((start.as_ref(), end)).take(SCAN) {
                if visit(key, versions).is_break() {
                    return;
                }
                scanned += 1;
                last = Some(key);
            }
            match last {
                Some(last) if scanned == SCAN => start = Bound::Excluded(last.clone()),
                _ => return,
            }
        }
    }

    /// The changes of `batch` on top of `overlay`; or the first condition that fails.
    pub(crate) fn changes_of(&self, batch: &Batch, overlay: &Overlay) -> Result<Box<[Change]>, Conflict> {
        self.read().changes_of(batch, overlay)
    }

    /// Checks and applies a batch in one step, for a store that does nothing in between.
    pub(crate) fn commit(&self, batch: &Batch) -> Result<Revision, Error> {
        self.commit_if(batch, |live, changes| self.limits.check_growth(live, changes).map(drop))
    }

    /// As `commit`, for a batch that was committed before: without the quota.
    pub(crate) fn replay(&self, batch: &Batch) -> Result<Revision, Error> {
        self.commit_if(batch, |_, _| Ok(()))
    }

    fn commit_if(
        &self,
        batch: &Batch,
        check: impl FnOnce(u64, &[Change]) -> Result<(), Error>,
    ) -> Result<Revision, Error> {
        let mut keys = self.write();
        let changes = keys.changes_of(batch, &Overlay::new())?;
        if changes.is_empty() {
            return Ok(keys.revision);
        }
        check(keys.live_bytes, &changes)?;
        let revision = keys.revision.next();
        self.apply_to(&mut keys, [Commit { revision, changes }]);
        Ok(revision)
    }

    /// Makes commits visible to reads and feeds.
    pub(crate) fn apply(&self, commits: impl IntoIterator<Item = Commit>) {
        self.apply_to(&mut self.write(), commits);
    }

    fn apply_to(&self, keys: &mut Keys, commits: impl IntoIterator<Item = Commit>) {
        let commits = commits.into_iter().map(|commit| {
            keys.apply(&commit);
            Arc::new(commit)
        });
        // Feeds hear of it before anyone can read it: a client that has read a revision cannot miss it.
        self.window.append(commits.collect::<Vec<_>>());
        if let Some(floor) = self.window.excess(&self.limits) {
            self.raise_floor(keys, floor);
        }
    }

    pub(crate) fn compact(&self, floor: Revision) -> Result<(), Error> {
        let mut keys = self.write();
        if floor > keys.revision {
            return Err(Error::Future { asked: floor, current: keys.revision });
        }
        let current = self.window.floor();
        if floor < current {
            return Err(Error::Compacted { asked: floor, floor: current });
        }
        self.raise_floor(&mut keys, floor);
        Ok(())
    }

    /// Forgets what is older than `floor`, as far as no pin keeps it readable.
    fn raise_floor(&self, keys: &mut Keys, floor: Revision) {
        let floor = keys.pins.keys().next().map_or(floor, |pinned| floor.min(*pinned));
        if floor <= self.window.floor() {
            return;
        }
        for commit in self.window.forget(floor) {
            for change in &commit.changes {
                keys.prune(&change.key, floor);
            }
        }
    }

    /// Keeps a revision readable until the pin is dropped.
    pub(crate) fn pin(self: &Arc<Tree>, at: Option<Revision>) -> Result<Pin, Error> {
        let mut keys = self.write();
        let revision = self.resolve(&keys, at)?;
        keys.pin(revision);
        Ok(Pin { tree: Arc::clone(self), revision })
    }

    /// Pins the oldest revision that can be read.
    pub(crate) fn pin_floor(self: &Arc<Tree>) -> Pin {
        let mut keys = self.write();
        let revision = self.window.floor();
        keys.pin(revision);
        Pin { tree: Arc::clone(self), revision }
    }

    fn resolve(&self, keys: &Keys, at: Option<Revision>) -> Result<Revision, Error> {
        let Some(asked) = at else { return Ok(keys.revision) };
        if asked > keys.revision {
            return Err(Error::Future { asked, current: keys.revision });
        }
        let floor = self.window.floor();
        if asked < floor {
            return Err(Error::Compacted { asked, floor });
        }
        Ok(asked)
    }

    fn read(&self) -> RwLockReadGuard<'_, Keys> {
        self.keys.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Keys> {
        self.keys.write().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Keeps the floor at or below a revision.
#[derive(Debug)]
pub(crate) struct Pin {
    tree: Arc<Tree>,
    pub(crate) revision: Revision,
}

impl Drop for Pin {
    fn drop(&mut self) {
        let mut keys = self.tree.write();
        if let Some(count) = keys.pins.get_mut(&self.revision) {
            *count -= 1;
            if *count == 0 {
                keys.pins.remove(&self.revision);
            }
        }
    }
}

impl Keys {
    fn changes_of(&self, batch: &Batch, overlay: &Overlay) -> Result<Box<[Change]>, Conflict> {
        let mut changes = Vec::with_capacity(batch.writes().len());
        for (index, write) in batch.writes().iter().enumerate() {
            let (key, found) = self.current(&write.key, overlay);
            if !write.condition.holds(found.as_ref()) {
                let found =
                    found.map(|Previous { value, revision }| Entry { key: key.clone(), value, revision });
                let newest = overlay.values().map(|version| version.revision).max();
                let revision = self.revision.max(newest.unwrap_or_default());
                return Err(Conflict { index, key, found, revision });
            }
            let Write { value, .. } = write;
            if value.is_some() || found.is_some() {
                changes.push(Change { key, value: value.clone(), previous: found });
            }
        }
        Ok(changes.into())
    }

    /// The key as the tree already holds it, so that it is stored once, and its current value.
    fn current(&self, key: &Bytes, overlay: &Overlay) -> (Bytes, Option<Previous>) {
        let (key, version) = match overlay.get_key_value(key) {
            Some((key, version)) => (key, version),
            None => match self.entries.get(key) {
                Some((key, versions)) => (key, &versions.latest),
                None => return (key.clone(), None),
            },
        };
        let found = version.value.clone().map(|value| Previous { value, revision: version.revision });
        (key.clone(), found)
    }

    fn apply(&mut self, commit: &Commit) {
        self.revision = commit.revision;
        for change in &commit.changes {
            if let Some(previous) = &change.previous {
                self.live_bytes -= (change.key.len() + previous.value.len()) as u64;
            }
            if let Some(value) = &change.value {
                self.live_bytes += (change.key.len() + value.len()) as u64;
            }
            let latest = Version { revision: commit.revision, value: change.value.clone() };
            match self.entries.get_mut(&change.key) {
                Some(versions) => versions.push(latest),
                None => self.entries.insert(change.key.clone(), Versions::new(latest)),
            }
        }
    }

    fn pin(&mut self, revision: Revision) {
        *self.pins.entry(revision).or_default() += 1;
    }

    fn prune(&mut self, key: &Bytes, floor: Revision) {
        let Some(versions) = self.entries.get_mut(key) else { return };
        if versions.forget(floor) {
            self.entries.remove(key);
        }
    }
}

impl Condition {
    pub(crate) fn holds(self, found: Option<&Previous>) -> bool {
        match self {
            Condition::Anything => true,
            Condition::Absent => found.is_none(),
            Condition::At(revision) => found.is_some_and(|found| found.revision == revision),
        }
    }
}
