//! The errors of a store, by what the caller can do about them.

use crate::{Entry, Revision};
use bytes::Bytes;
use std::{io, path::PathBuf};

#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Another writer was first: read again, decide again.
    #[error(transparent)]
    Conflict(Box<Conflict>),

    /// The requested revision has been compacted: list again.
    #[error("revision {asked} has been compacted; the oldest kept is {floor}")]
    Compacted { asked: Revision, floor: Revision },

    #[error("revision {asked} is in the future; the current one is {current}")]
    Future { asked: Revision, current: Revision },

    #[error("a batch of {size} bytes is over the limit of {limit}")]
    TooLarge { size: usize, limit: usize },

    /// The store has reached its quota: reads go on, and so do writes that make it smaller.
    // etcd does not report its limit, so it is 0 here then.
    #[error("the store holds as much as it may ({limit} bytes)")]
    QuotaExceeded { limit: u64 },

    /// No store can serve the request.
    #[error("{0}")]
    Invalid(&'static str),

    /// No space on the disk: nothing was written; reads go on, and writes succeed once there is space.
    #[error("no room to write {}", file.display())]
    Full { file: PathBuf, source: io::Error },

    /// The disk failed to keep what was written. Reads go on; writes fail until the store is opened again and
    /// reads what is really there.
    #[error("the disk failed; no write is taken until the store is opened again: {0}")]
    Broken(String),

    #[error(transparent)]
    Corrupt(Box<Corruption>),

    #[error("{} is in use by {holder}", directory.display())]
    InUse { directory: PathBuf, holder: String },

    #[error("cannot {doing} {}", path.display())]
    Io { doing: &'static str, path: PathBuf, source: io::Error },

    /// The cluster did not accept the request; nothing was written.
    #[error("the store cannot be reached: {0}")]
    Unavailable(String),

    /// The connection broke after a write was sent: it may have been committed or not. Read to find out.
    #[error("the outcome of the write is unknown: {0}")]
    OutcomeUnknown(String),

    #[error("the store is closed")]
    Closed,
}

/// A condition of a batch did not hold.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("write {index} expected something else at {:?}", key)]
pub struct Conflict {
    /// The write of the batch, the first if several conflict.
    pub index: usize,
    pub key: Bytes,
    /// The current entry of the key.
    pub found: Option<Entry>,
    /// The revision at which it was read.
    pub revision: Revision,
}

/// Bytes on disk that are not what was written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{} is damaged at byte {offset}: {problem}", file.display())]
pub struct Corruption {
    pub file: PathBuf,
    pub offset: u64,
    pub problem: String,
}

impl From<Conflict> for Error {
    fn from(conflict: Conflict) -> Error {
        Error::Conflict(Box::new(conflict))
    }
}

impl From<Corruption> for Error {
    fn from(corruption: Corruption) -> Error {
        Error::Corrupt(Box::new(corruption))
    }
}
