//! A commit request: puts and deletes, each with its condition, all or nothing.

use crate::{Error, Revision};
use bytes::Bytes;

/// Keys and values of one batch, together. etcd rejects requests over 1.5 MiB by default; all stores have the
/// same limit.
pub const MAX_BATCH_BYTES: usize = 3 * 512 * 1024 - 16 * 1024;
/// Writes in one batch: etcd's default limit of operations in a transaction.
pub const MAX_BATCH_WRITES: usize = 128;
/// Far above any path of names, and small enough that keys never dominate memory.
pub const MAX_KEY_BYTES: usize = 4096;

/// Writes of one commit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Batch(Vec<Write>);

/// One key of a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Write {
    pub key: Bytes,
    /// The new value; `None` deletes the key.
    pub value: Option<Bytes>,
    pub condition: Condition,
}

/// The state of a key that a write requires; otherwise its batch fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Condition {
    Anything,
    Absent,
    /// The key exists, and that commit wrote it.
    At(Revision),
}

impl Batch {
    pub fn new() -> Batch {
        Batch::default()
    }

    #[must_use]
    pub fn with(mut self, write: Write) -> Batch {
        self.0.push(write);
        self
    }

    /// Puts `value` at `key` unconditionally.
    #[must_use]
    pub fn put(self, key: impl Into<Bytes>, value: impl Into<Bytes>) -> Batch {
        self.with(Write { key: key.into(), value: Some(value.into()), condition: Condition::Anything })
    }

    /// Puts `value` at `key` if the key does not exist.
    #[must_use]
    pub fn create(self, key: impl Into<Bytes>, value: impl Into<Bytes>) -> Batch {
        self.with(Write { key: key.into(), value: Some(value.into()), condition: Condition::Absent })
    }

    /// Puts `value` at `key` if `revision` was its last write.
    #[must_use]
    pub fn replace(self, key: impl Into<Bytes>, value: impl Into<Bytes>, revision: Revision) -> Batch {
        let condition = Condition::At(revision);
        self.with(Write { key: key.into(), value: Some(value.into()), condition })
    }

    /// Deletes `key` if it exists.
    #[must_use]
    pub fn delete(self, key: impl Into<Bytes>) -> Batch {
        self.with(Write { key: key.into(), value: None, condition: Condition::Anything })
    }

    /// Deletes `key` if `revision` was its last write.
    #[must_use]
    pub fn delete_at(self, key: impl Into<Bytes>, revision: Revision) -> Batch {
        self.with(Write { key: key.into(), value: None, condition: Condition::At(revision) })
    }

    pub fn writes(&self) -> &[Write] {
        &self.0
    }

    /// Keys and values together, in bytes.
    pub fn size(&self) -> usize {
        self.0.iter().map(|write| write.key.len() + write.value.as_ref().map_or(0, Bytes::len)).sum()
    }

    /// Fails for batches that no store accepts.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let size = self.size();
        if size > MAX_BATCH_BYTES {
            return Err(Error::TooLarge { size, limit: MAX_BATCH_BYTES });
        }
        if self.0.len() > MAX_BATCH_WRITES {
            return Err(Error::Invalid("a batch holds at most 128 writes"));
        }
        let mut keys: Vec<_> = self.0.iter().map(|write| &write.key).collect();
        keys.sort_unstable();
        if keys.first().is_some_and(|key| key.is_empty()) {
            return Err(Error::Invalid("a key must not be empty"));
        }
        if keys.iter().any(|key| key.len() > MAX_KEY_BYTES) {
            return Err(Error::Invalid("a key has at most 4096 bytes"));
        }
        if keys.windows(2).any(|pair| pair[0] == pair[1]) {
            return Err(Error::Invalid("a batch writes a key at most once"));
        }
        Ok(())
    }
}
