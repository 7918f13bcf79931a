//! The files that a container has written, and which others it can be sure of.

use crate::budget::{Budget, OverBudget, STEP, beginning};
use std::{collections::BTreeMap, time::Duration};

/// A container sees so many files; more that it writes are forgotten.
const MOST_FILES: usize = 100;
/// So much of each.
const MOST_BYTES: usize = 4096;
/// Linux: files with longer paths cannot be made.
const MOST_PATH: usize = 4096;
/// To compare a path with another one.
const COMPARE: usize = 16;

/// Files by their paths. A folder ends with a slash.
pub(crate) type Texts = BTreeMap<String, String>;

/// A change of a file: how long after the start, its path, and its new text unless it is deleted.
pub(crate) type Change = (Duration, String, Option<String>);

/// The bytes of files and their paths.
pub(crate) fn size(texts: &Texts) -> usize {
    texts.iter().map(|(path, text)| path.len() + text.len()).sum()
}

#[derive(Clone, Debug)]
pub(super) struct Files<'a> {
    texts: Texts,
    /// Folders whose other files are known to be absent.
    folders: &'a [String],
    /// Only the last change of a file at a time.
    changes: BTreeMap<(Duration, String), Option<String>>,
    /// How often a file has been written or deleted.
    pub(super) writes: usize,
    budget: &'a Budget,
}

impl<'a> Files<'a> {
    pub(super) fn new(texts: Texts, folders: &'a [String], budget: &'a Budget) -> Files<'a> {
        Files { texts, folders, changes: BTreeMap::new(), writes: 0, budget }
    }

    /// Returns whether the file can be written.
    pub(super) fn write(
        &mut self,
        now: Duration,
        path: &str,
        text: &str,
        appends: bool,
    ) -> Result<bool, OverBudget> {
        self.budget.charge(STEP + 2 * path.len() + text.len())?;
        let is_new = !self.texts.contains_key(path);
        if path.len() > MOST_PATH {
            return Ok(false);
        }
        if !path.starts_with('/') || (is_new && self.texts.len() >= MOST_FILES) {
            return Ok(true);
        }
        let before = self.texts.get(path).filter(|_| appends).map_or("", String::as_str);
        self.budget.charge(2 * before.len())?;
        let mut whole = before.to_owned();
        whole.push_str(beginning(text, MOST_BYTES));
        whole.truncate(beginning(&whole, MOST_BYTES).len());
        self.changes.insert((now, path.to_owned()), Some(whole.clone()));
        self.texts.insert(path.to_owned(), whole);
        self.writes += 1;
        Ok(true)
    }

    /// Deletes a file or a folder with all that is in it.
    pub(super) fn delete(&mut self, now: Duration, path: &str) -> Result<(), OverBudget> {
        self.charge_for_search(path)?;
        let path = path.trim_end_matches('*').trim_end_matches('/');
        let is_inside = |it: &str| it == path || it.strip_prefix(path).is_some_and(|it| it.starts_with('/'));
        let gone: Vec<String> = self.texts.keys().filter(|it| is_inside(it)).cloned().collect();
        for path in gone {
            self.budget.charge(STEP + path.len())?;
            self.texts.remove(&path);
            self.changes.insert((now, path), None);
            self.writes += 1;
        }
        Ok(())
    }

    /// The text of a file; `None` if it is not known, `Some(None)` if there is no such file.
    pub(super) fn read(&self, path: &str) -> Result<Option<Option<&str>>, OverBudget> {
        self.charge_for_search(path)?;
        Ok(match self.texts.get(path) {
            Some(text) => Some(Some(text)),
            None if path == "/dev/null" => Some(Some("")),
            None => self.is_known(path).then_some(None),
        })
    }

    /// Whether a test as `-f` holds for a path; `None` if it is not known.
    pub(super) fn test(&self, test: &str, path: &str) -> Result<Option<bool>, OverBudget> {
        let path = if path.len() > 1 { path.trim_end_matches('/') } else { path };
        let folder = format!("{path}/");
        let file = self.read(path)?;
        let is_folder =
            self.folders.iter().any(|it| it == path) || self.texts.keys().any(|it| it.starts_with(&folder));
        let file = match file {
            None if is_folder => None,
            Some(known) => known,
            None => return Ok(None),
        };
        Ok(Some(match test {
            "-d" => is_folder,
            "-f" => file.is_some(),
            "-s" => is_folder || file.is_some_and(|text| !text.is_empty()),
            _ => is_folder || file.is_some(),
        }))
    }

    pub(super) fn into_changes(self) -> Vec<Change> {
        self.changes.into_iter().map(|((at, path), text)| (at, path, text)).collect()
    }

    fn is_known(&self, path: &str) -> bool {
        let is_inside =
            |folder: &String| path.strip_prefix(folder.as_str()).is_some_and(|it| it.starts_with('/'));
        self.folders.iter().any(is_inside)
    }

    /// A path is compared with those of all files and folders.
    fn charge_for_search(&self, path: &str) -> Result<(), OverBudget> {
        let compared = self.texts.len() + self.folders.len();
        self.budget.charge(STEP + compared.saturating_mul(COMPARE + path.len() / COMPARE))
    }
}
