//! The kept versions of one key.

use crate::{Entry, Revision};
use bytes::Bytes;

/// The value of a key since `revision`; `None` since it was deleted.
#[derive(Clone, Debug)]
pub(crate) struct Version {
    pub(crate) revision: Revision,
    pub(crate) value: Option<Bytes>,
}

#[derive(Clone, Debug)]
pub(crate) struct Versions {
    pub(crate) latest: Version,
    /// Oldest first. Boxed, because almost every key has none.
    #[expect(
        clippy::box_collection,
        reason = "a pointer where a vector would be three words, times every key"
    )]
    older: Option<Box<Vec<Version>>>,
}

impl Versions {
    pub(crate) fn new(latest: Version) -> Versions {
        Versions { latest, older: None }
    }

    pub(crate) fn push(&mut self, version: Version) {
        let replaced = std::mem::replace(&mut self.latest, version);
        self.older.get_or_insert_default().push(replaced);
    }

    fn at(&self, revision: Revision) -> Option<&Version> {
        let mut newest_first =
            std::iter::once(&self.latest).chain(self.older.iter().flat_map(|older| older.iter().rev()));
        newest_first.find(|version| version.revision <= revision)
    }

    /// Whether the key existed at a revision.
    pub(crate) fn is_at(&self, revision: Revision) -> bool {
        self.at(revision).is_some_and(|version| version.value.is_some())
    }

    pub(crate) fn entry_at(&self, key: &Bytes, revision: Revision) -> Option<Entry> {
        let version = self.at(revision)?;
        let value = version.value.clone()?;
        Some(Entry { key: key.clone(), value, revision: version.revision })
    }

    /// Drops versions that no reader at `floor` or later can see; true when none is left.
    pub(crate) fn forget(&mut self, floor: Revision) -> bool {
        if self.latest.revision <= floor {
            self.older = None;
            return self.latest.value.is_none();
        }
        if let Some(older) = &mut self.older {
            let visible = older.partition_point(|version| version.revision <= floor);
            older.drain(..visible.saturating_sub(1));
            if older.first().is_some_and(|oldest| oldest.revision <= floor && oldest.value.is_none()) {
                older.remove(0);
            }
            if older.is_empty() {
                self.older = None;
            }
        }
        false
    }
}
