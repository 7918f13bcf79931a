//! An index: finds objects by values that are computed from them.

use crate::{Key, cache::Item};
use std::{collections::BTreeMap, fmt, sync::Arc};

/// The values by which an object is found (client-go: `IndexFunc`).
pub(crate) type IndexFunction = Arc<dyn Fn(&Item) -> Vec<String> + Send + Sync>;

/// One entry for each value of each object, in order.
pub(crate) struct Index {
    values: IndexFunction,
    entries: BTreeMap<(Arc<str>, Key), Item>,
}

impl Index {
    pub(crate) fn new(values: IndexFunction) -> Index {
        Index { values, entries: BTreeMap::new() }
    }

    /// Finds objects by the UIDs of their owners.
    pub(crate) fn owners() -> Index {
        Index::new(Arc::new(|item| item.owner_references().into_iter().map(|owner| owner.uid).collect()))
    }

    pub(crate) fn find<'a>(&'a self, value: &'a str) -> impl Iterator<Item = &'a Item> {
        let first = (Arc::from(value), Key::parse(""));
        let entries = self.entries.range(first..);
        entries.take_while(move |((found, _), _)| &**found == value).map(|(_, item)| item)
    }

    /// Replaces the entries of `before` by those of `after`.
    pub(crate) fn update(&mut self, before: Option<&Item>, after: Option<&Item>) {
        for item in before.into_iter() {
            for value in (self.values)(item) {
                self.entries.remove(&(value.into(), item.key().clone()));
            }
        }
        for item in after.into_iter() {
            for value in (self.values)(item) {
                self.entries.insert((value.into(), item.key().clone()), item.clone());
            }
        }
    }
}

impl fmt::Debug for Index {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Index of {}", self.entries.len())
    }
}
