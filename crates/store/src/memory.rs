//! A store in memory, for tests: fast, and gone with the process.

use crate::{
    Answer, Batch, Error, Feed, Limits, Page, Range, Read, ReadStore, Revision, Store, snapshot, tree::Tree,
};
use bytes::Bytes;
use futures::future::ready;
use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

#[derive(Debug)]
pub struct Memory(Arc<Tree>);

impl Memory {
    pub fn new() -> Memory {
        Memory::with_limits(Limits::default())
    }

    pub fn with_limits(limits: Limits) -> Memory {
        Memory(Arc::new(Tree::new(limits)))
    }

    /// A separate store with the entries and the history of this one; values are shared.
    pub fn fork(&self) -> Memory {
        Memory(Arc::new(self.0.fork()))
    }

    pub(crate) fn of_tree(tree: Tree) -> Memory {
        Memory(Arc::new(tree))
    }

    /// A store from a backup of any store.
    pub fn restore(backup: &Path) -> Result<Memory, Error> {
        let (revision, entries) = snapshot::read_file(backup)?;
        Ok(Memory(Arc::new(Tree::load(Limits::default(), revision, entries)?)))
    }
}

impl Default for Memory {
    fn default() -> Memory {
        Memory::new()
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        self.0.window().close();
    }
}

impl ReadStore for Memory {
    fn get(&self, key: Bytes, at: Option<Revision>) -> Answer<'_, Read> {
        Box::pin(ready(self.0.get(&key, at)))
    }

    fn range(&self, range: Range) -> Answer<'_, Page> {
        Box::pin(ready(self.0.range(&range)))
    }

    fn count(&self, range: Range) -> Answer<'_, u64> {
        Box::pin(ready(self.0.count(&range)))
    }

    fn revision(&self) -> Answer<'_, Revision> {
        Box::pin(ready(Ok(self.0.revision())))
    }

    fn feed(&self, prefix: Bytes, since: Option<Revision>) -> Answer<'_, Feed> {
        Box::pin(ready(Feed::join(self.0.window(), prefix, since)))
    }
}

impl Store for Memory {
    fn commit(&self, batch: Batch) -> Answer<'_, Revision> {
        Box::pin(ready(batch.check().and_then(|()| self.0.commit(&batch))))
    }

    fn compact(&self, floor: Revision) -> Answer<'_, ()> {
        Box::pin(ready(self.0.compact(floor)))
    }

    fn fork_in_memory(&self) -> Option<Memory> {
        Some(self.fork())
    }

    fn backup(&self, file: PathBuf) -> Answer<'_, Revision> {
        Box::pin(ready(snapshot::back_up(&self.0, &file)))
    }
}
