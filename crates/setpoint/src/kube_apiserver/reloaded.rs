//! What is read from files and read again when they change.

use anyhow::{Context, Result};
use std::{
    fmt, fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

/// A value of the texts of some files.
pub(super) struct Reloaded<T> {
    files: Vec<PathBuf>,
    build: fn(&[String]) -> Result<T>,
    last: Mutex<Last<T>>,
}

struct Last<T> {
    /// The state of each file when it was read.
    states: Vec<FileState>,
    value: T,
}

/// Differs once a file is written or replaced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct FileState {
    seconds: i64,
    nanoseconds: i64,
    bytes: u64,
    inode: u64,
}

impl FileState {
    fn of(path: &Path) -> FileState {
        // A file that is gone for a moment differs, and cannot be read.
        fs::metadata(path).map_or_else(
            |_| FileState::default(),
            |it| FileState {
                seconds: it.mtime(),
                nanoseconds: it.mtime_nsec(),
                bytes: it.len(),
                inode: it.ino(),
            },
        )
    }
}

impl<T: Clone> Reloaded<T> {
    pub(super) fn open(files: Vec<PathBuf>, build: fn(&[String]) -> Result<T>) -> Result<Reloaded<T>> {
        let last = Mutex::new(read(&files, build)?);
        Ok(Reloaded { files, build, last })
    }

    /// The current value. If the files have changed and cannot be used, the last good one.
    pub(super) fn get(&self) -> T {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let states: Vec<_> = self.files.iter().map(|path| FileState::of(path)).collect();
        if states != last.states {
            match read(&self.files, self.build) {
                Ok(read) => *last = read,
                Err(error) => {
                    tracing::warn!("a changed file cannot be used; its last content is kept: {error:#}");
                    // Not again before the next change.
                    last.states = states;
                }
            }
        }
        last.value.clone()
    }
}

fn read<T>(files: &[PathBuf], build: fn(&[String]) -> Result<T>) -> Result<Last<T>> {
    // Before the texts: a change in between is then seen at the next look.
    let states = files.iter().map(|path| FileState::of(path)).collect();
    let texts = files
        .iter()
        .map(|path| fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display())))
        .collect::<Result<Vec<_>>>()?;
    let value = build(&texts).with_context(|| {
        let names: Vec<_> = files.iter().map(|path| path.display().to_string()).collect();
        format!("cannot use {}", names.join(", "))
    })?;
    Ok(Last { states, value })
}

impl<T> fmt::Debug for Reloaded<T> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "what {:?} hold", self.files)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_file_is_read_again_and_a_bad_one_is_not_used() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("number");
        let build: fn(&[String]) -> Result<u32> = |texts| Ok(texts.concat().trim().parse()?);
        fs::write(&path, "1").unwrap();
        let number = Reloaded::open(vec![path.clone()], build).unwrap();
        assert_eq!(number.get(), 1);
        for (text, expected) in [("22", 22), ("three", 22), ("4444", 4444)] {
            // By a rename, as tools replace certificates.
            let next = scratch.path().join("next");
            fs::write(&next, text).unwrap();
            fs::rename(next, &path).unwrap();
            assert_eq!(number.get(), expected, "{text}");
        }
        fs::remove_file(&path).unwrap();
        assert_eq!(number.get(), 4444);
        assert!(Reloaded::open(vec![path], build).is_err());
    }
}
