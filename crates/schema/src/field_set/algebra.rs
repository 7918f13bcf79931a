//! Union, intersection and differences of sets. Each is one pass over both, in the order of their elements.

use std::cmp::Ordering;

use super::{Element, Entry, FieldSet};

impl FieldSet {
    /// The fields in either set.
    #[must_use]
    pub fn union(self, other: FieldSet) -> FieldSet {
        if other.is_empty() {
            return self;
        }
        let mut entries = Vec::with_capacity(self.entries.len().max(other.entries.len()));
        let (mut left, mut right) =
            (self.entries.into_iter().peekable(), other.entries.into_iter().peekable());
        while let (Some(ours), Some(theirs)) = (left.peek(), right.peek()) {
            match ours.element.cmp(&theirs.element) {
                Ordering::Less => entries.extend(left.next()),
                Ordering::Greater => entries.extend(right.next()),
                Ordering::Equal => {
                    entries.extend(left.next().zip(right.next()).map(|(ours, theirs)| Entry {
                        element: ours.element,
                        member: ours.member || theirs.member,
                        below: ours.below.union(theirs.below),
                    }))
                }
            }
        }
        entries.extend(left);
        entries.extend(right);
        FieldSet { entries }
    }

    /// The fields in any of the sets: merged in pairs, so that many sets take little more time than one.
    #[must_use]
    pub fn union_of(mut sets: Vec<FieldSet>) -> FieldSet {
        while sets.len() > 1 {
            let mut rest = sets.into_iter();
            let mut merged = Vec::with_capacity(rest.len().div_ceil(2));
            while let Some(one) = rest.next() {
                merged.push(match rest.next() {
                    Some(other) => one.union(other),
                    None => one,
                });
            }
            sets = merged;
        }
        sets.pop().unwrap_or_default()
    }

    /// The fields in both sets.
    #[must_use]
    pub fn intersection(mut self, other: &FieldSet) -> FieldSet {
        let mut theirs = Cursor(&other.entries);
        self.entries.retain_mut(|entry| {
            let Some(their) = theirs.seek(&entry.element) else { return false };
            entry.member &= their.member;
            entry.below = std::mem::take(&mut entry.below).intersection(&their.below);
            entry.holds_something()
        });
        self
    }

    /// The fields in this set and not in the other. Removing a field keeps those above and below it.
    #[must_use]
    pub fn difference(mut self, other: &FieldSet) -> FieldSet {
        let mut theirs = Cursor(&other.entries);
        self.entries.retain_mut(|entry| {
            let Some(their) = theirs.seek(&entry.element) else { return true };
            entry.member &= !their.member;
            entry.below = std::mem::take(&mut entry.below).difference(&their.below);
            entry.holds_something()
        });
        self
    }

    /// The fields of this set that are neither in the other nor below a field of it.
    #[must_use]
    pub fn recursive_difference(mut self, other: &FieldSet) -> FieldSet {
        let mut theirs = Cursor(&other.entries);
        self.entries.retain_mut(|entry| {
            let Some(their) = theirs.seek(&entry.element) else { return true };
            if their.member {
                return false;
            }
            entry.below = std::mem::take(&mut entry.below).recursive_difference(&their.below);
            entry.holds_something()
        });
        self
    }

    /// The fields that have no fields of the set below them.
    #[must_use]
    pub fn leaves(mut self) -> FieldSet {
        for entry in &mut self.entries {
            entry.member &= entry.below.is_empty();
            entry.below = std::mem::take(&mut entry.below).leaves();
        }
        self
    }
}

impl Entry {
    fn holds_something(&self) -> bool {
        self.member || !self.below.is_empty()
    }
}

/// Finds elements that are looked up in ascending order.
struct Cursor<'a>(&'a [Entry]);

impl<'a> Cursor<'a> {
    fn seek(&mut self, element: &Element) -> Option<&'a Entry> {
        while let Some((first, rest)) = self.0.split_first() {
            match first.element.cmp(element) {
                Ordering::Less => self.0 = rest,
                Ordering::Equal => return Some(first),
                Ordering::Greater => return None,
            }
        }
        None
    }
}
