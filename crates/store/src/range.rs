//! Parameters and results of reads: one key, or a range of keys in order.

use crate::{Entry, Revision};
use bytes::Bytes;

/// One key, as it was at a revision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Read {
    pub entry: Option<Entry>,
    pub revision: Revision,
}

/// Keys from `start` up to, but excluding, `end`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Range {
    pub start: Bytes,
    /// `None` reaches to the last key.
    pub end: Option<Bytes>,
    /// At most this many entries; 0 for all.
    pub limit: usize,
    pub at: Option<Revision>,
}

/// Entries of a range in the order of their keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    pub entries: Vec<Entry>,
    /// There are more entries: continue with [`Range::after`] the last key, at the same revision.
    pub more: bool,
    pub revision: Revision,
}

impl Range {
    pub fn all() -> Range {
        Range::prefix("")
    }

    pub fn prefix(prefix: impl Into<Bytes>) -> Range {
        let start = prefix.into();
        let end = prefix_end(&start);
        Range { start, end, limit: 0, at: None }
    }

    /// Excludes keys before `key`.
    #[must_use]
    pub fn from(mut self, key: impl Into<Bytes>) -> Range {
        self.start = self.start.max(key.into());
        self
    }

    /// Excludes keys up to and including `key`.
    #[must_use]
    pub fn after(self, key: &[u8]) -> Range {
        let mut next = Vec::with_capacity(key.len() + 1);
        next.extend_from_slice(key);
        next.push(0);
        self.from(next)
    }

    #[must_use]
    pub fn limit(mut self, entries: usize) -> Range {
        self.limit = entries;
        self
    }

    #[must_use]
    pub fn at(mut self, revision: Revision) -> Range {
        self.at = Some(revision);
        self
    }

    #[cfg(feature = "etcd")]
    pub(crate) fn contains(&self, key: &[u8]) -> bool {
        *self.start <= *key && self.end.as_ref().is_none_or(|end| *key < **end)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.end.as_ref().is_some_and(|end| *end <= self.start)
    }
}

/// The first key after all that begin with `prefix`; `None` where there is no such key.
fn prefix_end(prefix: &[u8]) -> Option<Bytes> {
    let kept = prefix.iter().rposition(|byte| *byte < u8::MAX)?;
    let mut end = prefix[..=kept].to_vec();
    end[kept] += 1;
    Some(end.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_ends_before_its_next_sibling() {
        for (prefix, end) in
            [(&b"/a/"[..], Some(&b"/a0"[..])), (b"a\xff", Some(b"b")), (b"\xff\xff", None), (b"", None)]
        {
            assert_eq!(prefix_end(prefix).as_deref(), end, "{prefix:?}");
        }
    }
}
