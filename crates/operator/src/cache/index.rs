//! Finds objects by a value that is computed from them.

use crate::{Key, cache::Item};
use std::{collections::BTreeMap, fmt, sync::Arc};

/// The values under which an object is found.
pub(crate) type Values = Arc<dyn Fn(&Item) -> Vec<String> + Send + Sync>;

/// One entry for each value of each object, in order.
pub(crate) struct Index {
    values: Values,
    entries: BTreeMap<(Arc<str>, Key), Item>,
}

impl Index {
    pub(crate) fn new(values: Values) -> Index {
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

    /// `before` goes out, `after` comes in.
    pub(crate) fn follow(&mut self, before: Option<&Item>, after: Option<&Item>) {
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
