//! Remembers what was generated, so that the next time unedited files are replaced and edited ones are kept.

use super::{
    files::{ProjectFiles, report},
    manifests::FileTexts,
};
use anyhow::Result;
use std::collections::BTreeMap;

/// A line for each generated file: the check of its text, and its path.
const LIST: &str = "config/.generated";

/// Writes generated files. What people have edited since the last time is kept; what is not generated any more is
/// removed.
pub(crate) fn write(files: &ProjectFiles, texts: &FileTexts, force: bool) -> Result<()> {
    let mut before = read(&files.read(LIST)?.unwrap_or_default());
    let mut list = BTreeMap::new();
    for (path, text) in texts {
        let recorded = before.remove(path);
        list.insert(path.clone(), check(text));
        match files.read(path)? {
            Some(old) if old == *text => report("unchanged", path),
            Some(old) if recorded != Some(check(&old)) && !force => {
                report("kept", &format!("{path}: edited (--force overwrites it)"));
                // The record stays as it is: the file is as different the next time.
                list.extend(recorded.map(|recorded| (path.clone(), recorded)));
            }
            _ => files.overwrite(path, text)?,
        }
    }
    for (path, recorded) in before {
        match files.read(&path)? {
            Some(old) if check(&old) == recorded => files.remove(&path)?,
            Some(_) => report("kept", &format!("{path}: edited, and no longer generated; remove it by hand")),
            None => {}
        }
    }
    let mut text = String::from("# Files of `setpoint generate` that it may replace. Commit this.\n");
    for (path, check) in &list {
        text.push_str(&format!("{check:016x} {path}\n"));
    }
    if files.read(LIST)?.as_deref() != Some(&text) {
        files.overwrite(LIST, &text)?;
    }
    Ok(())
}

fn read(list: &str) -> BTreeMap<String, u64> {
    let lines = list.lines().filter_map(|line| line.split_once(' '));
    lines.filter_map(|(check, path)| Some((path.to_owned(), u64::from_str_radix(check, 16).ok()?))).collect()
}

/// FNV-1a: tells an edited file from one that was not. The same on every machine and in every version.
fn check(text: &str) -> u64 {
    text.bytes()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(files: &[(&str, &str)]) -> FileTexts {
        files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect()
    }

    #[test]
    fn edited_files_are_kept_and_unedited_ones_are_replaced_or_removed() {
        let folder = tempfile::tempdir().unwrap();
        let files = ProjectFiles::new(folder.path(), false);
        let read = |path: &str| files.read(path).unwrap();
        write(&files, &texts(&[("a", "1"), ("b", "1"), ("c", "1"), ("d", "1")]), false).unwrap();
        std::fs::write(folder.path().join("b"), "edited").unwrap();
        std::fs::write(folder.path().join("d"), "edited").unwrap();
        write(&files, &texts(&[("a", "2"), ("b", "2")]), false).unwrap();
        assert_eq!(read("a").as_deref(), Some("2"), "it was not edited");
        assert_eq!(read("b").as_deref(), Some("edited"));
        assert_eq!(read("c"), None, "it is not generated any more");
        assert_eq!(read("d").as_deref(), Some("edited"));
        write(&files, &texts(&[("a", "2"), ("b", "3")]), false).unwrap();
        assert_eq!(read("b").as_deref(), Some("edited"), "still edited");
        write(&files, &texts(&[("a", "2"), ("b", "3")]), true).unwrap();
        assert_eq!(read("b").as_deref(), Some("3"));
        write(&files, &texts(&[("a", "2"), ("b", "4")]), false).unwrap();
        assert_eq!(read("b").as_deref(), Some("4"));
    }

    #[test]
    fn a_file_that_was_there_before_the_first_time_counts_as_edited() {
        let folder = tempfile::tempdir().unwrap();
        let files = ProjectFiles::new(folder.path(), false);
        std::fs::write(folder.path().join("a"), "mine").unwrap();
        for _ in 0..2 {
            write(&files, &texts(&[("a", "1")]), false).unwrap();
            assert_eq!(files.read("a").unwrap().as_deref(), Some("mine"));
        }
    }
}
