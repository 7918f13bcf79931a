//! Sets of field paths, as managedFields has them: one for each manager.
//!
//! A set is a tree. An [`Element`] may be in the set itself, have elements below it that are, or both; the
//! root never is. [`FieldSet::of_value`] walks an object along its type and adds every leaf, every item of a
//! list with keys (or of a list set), and every entry of a map.

mod algebra;
mod element;
mod fields_v1;
mod filter;
mod of_value;
pub(crate) mod shape;

pub(crate) use element::compare_values;
pub use element::{Element, Key, Path};
pub use fields_v1::BadFields;
pub use filter::{Filter, Step};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldSet {
    /// In ascending order of the element, each of which is a member or has members below it.
    entries: Vec<Entry>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Entry {
    element: Element,
    member: bool,
    below: FieldSet,
}

impl FieldSet {
    /// The set of some paths of plain fields: `[["status"], ["metadata", "uid"]]`.
    pub fn of_fields<'a>(paths: impl IntoIterator<Item = &'a [&'a str]>) -> Self {
        let mut set = FieldSet::default();
        for path in paths {
            set.insert(&Path::of_fields(path.iter().copied()));
        }
        set
    }

    /// Adds the field at the end of the path, not the fields on the way.
    pub fn insert(&mut self, path: &Path) {
        let Some((last, leading)) = path.0.split_last() else { return };
        let mut set = self;
        for element in leading {
            set = &mut set.entry(element.clone()).below;
        }
        set.entry(last.clone()).member = true;
    }

    /// Whether the field at the end of the path is in the set. The root never is.
    #[must_use]
    pub fn has(&self, path: &Path) -> bool {
        let Some((last, leading)) = path.0.split_last() else { return false };
        let mut set = self;
        for element in leading {
            match set.below(element) {
                Some(below) => set = below,
                None => return false,
            }
        }
        set.has_member(last)
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// How many fields are in the set.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.iter().map(|entry| usize::from(entry.member) + entry.below.len()).sum()
    }

    /// The paths, each level before the levels below it.
    #[must_use]
    pub fn paths(&self) -> Vec<Path> {
        let mut paths = Vec::new();
        self.collect(&mut Vec::new(), &mut paths);
        paths
    }

    fn collect(&self, prefix: &mut Vec<Element>, paths: &mut Vec<Path>) {
        for entry in self.entries.iter().filter(|entry| entry.member) {
            let element = std::iter::once(&entry.element);
            paths.push(Path(prefix.iter().chain(element).cloned().collect()));
        }
        for entry in &self.entries {
            prefix.push(entry.element.clone());
            entry.below.collect(prefix, paths);
            prefix.pop();
        }
    }

    /// Whether this element itself is in the set.
    pub(crate) fn has_member(&self, element: &Element) -> bool {
        self.find(element).is_some_and(|entry| entry.member)
    }

    /// Whether an element itself is in the set, and the fields below it.
    pub(crate) fn step(&self, element: &Element) -> Option<(bool, &FieldSet)> {
        self.find(element).map(|entry| (entry.member, &entry.below))
    }

    /// The fields below an element, if there are any.
    pub(crate) fn below(&self, element: &Element) -> Option<&FieldSet> {
        self.find(element).map(|entry| &entry.below).filter(|below| !below.is_empty())
    }

    /// Adds an element, if it is a member, and the fields below it. Cheapest in ascending order.
    pub(crate) fn graft(&mut self, element: Element, member: bool, below: FieldSet) {
        if !member && below.is_empty() {
            return;
        }
        let entry = self.entry(element);
        entry.member |= member;
        let before = std::mem::take(&mut entry.below);
        entry.below = if before.is_empty() { below } else { before.union(below) };
    }

    fn find(&self, element: &Element) -> Option<&Entry> {
        let at = self.entries.binary_search_by(|entry| entry.element.cmp(element)).ok()?;
        self.entries.get(at)
    }

    fn entry(&mut self, element: Element) -> &mut Entry {
        let at = match self.entries.last() {
            Some(last) if last.element < element => Err(self.entries.len()),
            _ => self.entries.binary_search_by(|entry| entry.element.cmp(&element)),
        };
        let at = at.unwrap_or_else(|free| {
            self.entries.insert(free, Entry { element, member: false, below: FieldSet::default() });
            free
        });
        &mut self.entries[at]
    }
}

#[cfg(test)]
mod tests;
