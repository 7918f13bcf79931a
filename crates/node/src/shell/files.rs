//! The files that a container has written, and which others it can be sure of.

use std::{collections::BTreeMap, time::Duration};

/// A container sees so many files; more that it writes are forgotten.
const MOST_FILES: usize = 100;
/// So much of each.
const MOST_BYTES: usize = 4096;

/// Files by their paths. A folder ends with a slash.
pub(crate) type Texts = BTreeMap<String, String>;

/// A change of a file: how long after the start, its path, and its new text unless it is deleted.
pub(crate) type Change = (Duration, String, Option<String>);

#[derive(Clone, Debug, Default)]
pub(super) struct Files {
    texts: Texts,
    /// Folders whose other files are known to be absent.
    folders: Vec<String>,
    pub(super) changes: Vec<Change>,
}

impl Files {
    pub(super) fn new(texts: &Texts, folders: &[String]) -> Files {
        Files { texts: texts.clone(), folders: folders.to_vec(), changes: Vec::new() }
    }

    pub(super) fn write(&mut self, now: Duration, path: &str, text: &str, appends: bool) {
        let is_new = !self.texts.contains_key(path);
        if !path.starts_with('/') || (is_new && self.texts.len() >= MOST_FILES) {
            return;
        }
        let mut whole =
            if appends { self.texts.get(path).cloned().unwrap_or_default() } else { String::new() };
        whole.push_str(text);
        while whole.len() > MOST_BYTES {
            whole.pop();
        }
        self.changes.push((now, path.to_owned(), Some(whole.clone())));
        self.texts.insert(path.to_owned(), whole);
    }

    /// Deletes a file or a folder with all that is in it.
    pub(super) fn delete(&mut self, now: Duration, path: &str) {
        let path = path.trim_end_matches('*').trim_end_matches('/');
        let is_inside = |it: &str| it == path || it.strip_prefix(path).is_some_and(|it| it.starts_with('/'));
        let gone: Vec<String> = self.texts.keys().filter(|it| is_inside(it)).cloned().collect();
        for path in gone {
            self.texts.remove(&path);
            self.changes.push((now, path, None));
        }
    }

    /// The text of a file; `None` if it is not known, `Some(None)` if there is no such file.
    pub(super) fn read(&self, path: &str) -> Option<Option<&str>> {
        match self.texts.get(path) {
            Some(text) => Some(Some(text)),
            None if path == "/dev/null" => Some(Some("")),
            None => self.is_known(path).then_some(None),
        }
    }

    /// Whether a test as `-f` holds for a path.
    pub(super) fn test(&self, test: &str, path: &str) -> Option<bool> {
        let path = if path.len() > 1 { path.trim_end_matches('/') } else { path };
        let folder = format!("{path}/");
        let is_folder =
            self.folders.iter().any(|it| it == path) || self.texts.keys().any(|it| it.starts_with(&folder));
        let file = match self.read(path) {
            None if is_folder => None,
            other => other?,
        };
        Some(match test {
            "-d" => is_folder,
            "-f" => file.is_some(),
            "-s" => is_folder || file.is_some_and(|text| !text.is_empty()),
            _ => is_folder || file.is_some(),
        })
    }

    fn is_known(&self, path: &str) -> bool {
        let is_inside =
            |folder: &String| path.strip_prefix(folder.as_str()).is_some_and(|it| it.starts_with('/'));
        self.folders.iter().any(is_inside)
    }
}
