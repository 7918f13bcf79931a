//! One ordered, revisioned key space with a change feed; a value is bytes.
//!
//! Every commit moves the whole space to one new [`Revision`]. Reads see one revision, the latest or a kept
//! one; a [`Feed`] delivers every commit after a revision, in order, without gaps. Three stores have the same
//! contract (`tests/contract.rs` runs on all of them): [`Memory`] for tests, [`Embedded`] in a directory of
//! this machine, `Etcd` (a feature) for many processes on one cluster.
//!
//! ```
//! use store::{Batch, Event, Memory, Range, ReadStore, Store};
//!
//! world::run(|_world| async {
//!     let store = Memory::new();
//!     let mut feed = store.feed("/fruit/".into(), None).await?;
//!     let first = store.commit(Batch::new().create("/fruit/apple", "green")).await?;
//!     store.commit(Batch::new().replace("/fruit/apple", "red", first)).await?;
//!
//!     let page = store.range(Range::prefix("/fruit/")).await?;
//!     assert_eq!(page.entries[0].value, "red");
//!     let Event::Commit(commit) = feed.next().await? else { panic!() };
//!     assert_eq!(commit.revision, first);
//!
//!     let stale = store.commit(Batch::new().replace("/fruit/apple", "blue", first)).await;
//!     assert!(stale.is_err(), "`first` is not the latest revision of the key");
//!     Ok::<_, store::Error>(())
//! })
//! .unwrap()
//! .unwrap();
//! ```

mod batch;
mod error;
mod range;

mod index;
mod tree;
mod versions;
mod window;

mod feed;
mod snapshot;

mod embedded;
#[cfg(feature = "etcd")]
mod etcd;
mod memory;

pub use batch::{Batch, Condition, MAX_BATCH_BYTES, MAX_BATCH_WRITES, MAX_KEY_BYTES, Write};
pub use bytes::Bytes;
pub use embedded::{Embedded, Opened, Options, Progress, Torn};
pub use error::{Conflict, Corruption, Error};
#[cfg(feature = "etcd")]
pub use etcd::{Etcd, EtcdOptions, EtcdTls};
pub use feed::{Event, Feed};
pub use memory::Memory;
pub use range::{Page, Range, Read};
pub use window::Limits;

use futures::future::BoxFuture;
use std::{fmt, path::PathBuf};

/// The number of a commit: 0 before the first, one more for each, the same for all keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Revision(pub u64);

impl Revision {
    pub(crate) fn next(self) -> Revision {
        Revision(self.0 + 1)
    }
}

impl fmt::Display for Revision {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(out)
    }
}

/// A key with its value and the revision of the commit that wrote it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    pub key: Bytes,
    pub value: Bytes,
    pub revision: Revision,
}

/// The changes of one commit, as far as they are under the reader's prefix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Commit {
    pub revision: Revision,
    pub changes: Box<[Change]>,
}

/// The change of one key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    pub key: Bytes,
    /// The new value; `None` where the key was deleted.
    pub value: Option<Bytes>,
    /// The value before; `None` where the key is new.
    pub previous: Option<Previous>,
}

/// The value that a change replaced or removed, and the revision that had written it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Previous {
    pub value: Bytes,
    pub revision: Revision,
}

/// The future that every method of a store returns.
pub type Answer<'a, T> = BoxFuture<'a, Result<T, Error>>;

/// The read-only half of a store.
pub trait ReadStore: fmt::Debug + Send + Sync {
    /// Reads one key, now or as it was at a revision.
    fn get(&self, key: Bytes, at: Option<Revision>) -> Answer<'_, Read>;

    /// Reads a range of keys in order, all at one revision.
    fn range(&self, range: Range) -> Answer<'_, Page>;

    /// Counts the entries of a range, ignoring its limit.
    fn count(&self, range: Range) -> Answer<'_, u64>;

    /// The latest revision: at least that of every commit acknowledged, by any process, before the call.
    fn revision(&self) -> Answer<'_, Revision>;

    /// Follows every commit after `since` (or from now on) that touches keys under `prefix`.
    fn feed(&self, prefix: Bytes, since: Option<Revision>) -> Answer<'_, Feed>;

    /// Whether the last write could be made durable: `false` while the disk is full or broken.
    fn is_writable(&self) -> bool {
        true
    }
}

pub trait Store: ReadStore {
    /// Writes all of `batch`, or nothing. Returns the new revision when the commit is durable; a batch that
    /// changes nothing returns the current one. By then the feeds of this process have the commit or, after a
    /// conflict, the commit that it conflicts with.
    fn commit(&self, batch: Batch) -> Answer<'_, Revision>;

    /// Drops versions that were overwritten or deleted by `floor`: reads and feeds from before it get
    /// [`Error::Compacted`].
    fn compact(&self, floor: Revision) -> Answer<'_, ()>;

    /// A separate store in memory with the entries and the history of this one; values are shared. `None` where entries
    /// are not in this process.
    fn fork_in_memory(&self) -> Option<Memory> {
        None
    }

    /// Writes all entries of the latest revision to a new file, without blocking writers.
    fn backup(&self, file: PathBuf) -> Answer<'_, Revision>;
}
