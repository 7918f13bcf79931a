//! A store with delays, and with writes that fail on demand.

use bytes::Bytes;
use std::{fmt, path::PathBuf, time::Duration};
use store::{Answer, Batch, Feed, Memory, Page, Range, Read, ReadStore, Revision, Store};
use world::World;

/// A store in memory; each read of an object and each write first waits for `delay`.
pub(crate) struct Slow<D> {
    store: Memory,
    world: World,
    delay: D,
    failing: Box<Failing>,
}

/// The error of a write, if it shall fail.
type Failing = dyn Fn(&Batch) -> Option<store::Error> + Send + Sync;

pub(crate) enum StoreAccess<'a> {
    Commit,
    Get(&'a [u8]),
}

impl<D: Fn(StoreAccess<'_>) -> Duration + Send + Sync + 'static> Slow<D> {
    pub(crate) fn new(world: &World, delay: D) -> Slow<D> {
        Slow { store: Memory::new(), world: world.clone(), delay, failing: Box::new(|_| None) }
    }

    /// The same store, with these writes failing.
    pub(crate) fn failing(
        self,
        failing: impl Fn(&Batch) -> Option<store::Error> + Send + Sync + 'static,
    ) -> Slow<D> {
        Slow { failing: Box::new(failing), ..self }
    }
}

impl<D> fmt::Debug for Slow<D> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Slow").field("store", &self.store).finish_non_exhaustive()
    }
}

impl<D: Fn(StoreAccess<'_>) -> Duration + Send + Sync + 'static> ReadStore for Slow<D> {
    fn get(&self, key: Bytes, at: Option<Revision>) -> Answer<'_, Read> {
        Box::pin(async move {
            self.world.sleep((self.delay)(StoreAccess::Get(&key))).await;
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
}

impl<D: Fn(StoreAccess<'_>) -> Duration + Send + Sync + 'static> Store for Slow<D> {
    fn commit(&self, batch: Batch) -> Answer<'_, Revision> {
        Box::pin(async move {
            self.world.sleep((self.delay)(StoreAccess::Commit)).await;
            if let Some(error) = (self.failing)(&batch) {
                return Err(error);
            }
            self.store.commit(batch).await
        })
    }

    fn compact(&self, floor: Revision) -> Answer<'_, ()> {
        self.store.compact(floor)
    }

    fn backup(&self, file: PathBuf) -> Answer<'_, Revision> {
        self.store.backup(file)
    }
}
