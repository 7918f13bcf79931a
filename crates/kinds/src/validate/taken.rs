//! What a list had before the entry that is looked at, so that finding one that comes twice takes no second pass.

use std::{borrow::Borrow, collections::HashSet, hash::Hash};

/// Only ever asked what it holds: the order of the hashes shows nowhere.
#[derive(Clone, Debug)]
pub(crate) struct Taken<T>(HashSet<T>);

impl<T> Default for Taken<T> {
    fn default() -> Self {
        Taken(HashSet::new())
    }
}

impl<T: Eq + Hash> Taken<T> {
    pub(crate) fn contains<Q: Eq + Hash + ?Sized>(&self, value: &Q) -> bool
    where
        T: Borrow<Q>,
    {
        self.0.contains(value)
    }

    pub(crate) fn push(&mut self, value: T) {
        self.0.insert(value);
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Adds a value; `false` where it was there before.
    pub(crate) fn add(&mut self, value: T) -> bool {
        self.0.insert(value)
    }
}

impl<T: Eq + Hash> FromIterator<T> for Taken<T> {
    fn from_iter<I: IntoIterator<Item = T>>(values: I) -> Self {
        Taken(values.into_iter().collect())
    }
}
