//! A store that takes its time.

use bytes::Bytes;
use std::{fmt, path::PathBuf, time::Duration};
use store::{Answer, Batch, Feed, Memory, Page, Range, Read, Revision, Store};
use world::World;

/// A store in memory; each read of an object and each write waits first for as long as it is told.
pub(crate) struct Slow<D> {
    store: Memory,
    world: World,
    delay: D,
}

pub(crate) enum Asked<'a> {
    Commit,
    Get(&'a [u8]),
}

impl<D: Fn(Asked<'_>) -> Duration + Send + Sync + 'static> Slow<D> {
    pub(crate) fn new(world: &World, delay: D) -> Slow<D> {
        Slow { store: Memory::new(), world: world.clone(), delay }
    }
}

impl<D> fmt::Debug for Slow<D> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Slow").field("store", &self.store).finish_non_exhaustive()
    }
}

impl<D: Fn(Asked<'_>) -> Duration + Send + Sync + 'static> Store for Slow<D> {
    fn commit(&self, batch: Batch) -> Answer<'_, Revision> {
        Box::pin(async move {
            self.world.sleep((self.delay)(Asked::Commit)).await;
            self.store.commit(batch).await
        })
    }
    fn get(&self, key: Bytes, at: Option<Revision>) -> Answer<'_, Read> {
        Box::pin(async move {
            self.world.sleep((self.delay)(Asked::Get(&key))).await;
            self.store.get(key, at).await
        })
    }
    fn range(&self, range: Range) -> Answer<'_, Page> {
        self.store.range(range)
    }
    fn count(&self, range: Range) -> Answer<'_, u64> {
        self.store.count(range)
    }
    fn revision(&self) -> Answer<'_, Revision> {
        self.store.revision()
    }
    fn feed(&self, prefix: Bytes, since: Option<Revision>) -> Answer<'_, Feed> {
        self.store.feed(prefix, since)
    }
    fn compact(&self, floor: Revision) -> Answer<'_, ()> {
        self.store.compact(floor)
    }
    fn backup(&self, file: PathBuf) -> Answer<'_, Revision> {
        self.store.backup(file)
    }
}
