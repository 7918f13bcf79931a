//! Writes the files of a project, says what it did to each, and keeps those that people have edited.

use crate::up::print_line;
use anyhow::{Context, Result};
use std::{
    fs,
    path::{Path, PathBuf},
};

/// Writes files below a folder.
#[derive(Debug)]
pub(crate) struct ProjectFiles {
    root: PathBuf,
    /// Overwrite files that differ.
    force: bool,
}

impl ProjectFiles {
    pub(crate) fn new(root: &Path, force: bool) -> ProjectFiles {
        ProjectFiles { root: root.to_owned(), force }
    }

    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.root.join(path)
    }

    pub(crate) fn exists(&self, path: &str) -> bool {
        self.path(path).exists()
    }

    pub(crate) fn read(&self, path: &str) -> Result<Option<String>> {
        match fs::read_to_string(self.path(path)) {
            Ok(text) => Ok(Some(text)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error).with_context(|| format!("cannot read {path}")),
        }
    }

    /// Writes a file that people will edit: one that is there and differs stays, unless `--force` was given.
    pub(crate) fn write(&self, path: &str, text: &str) -> Result<()> {
        match self.read(path)? {
            Some(old) if is_same_code(&old, text) => report("unchanged", path),
            Some(_) if !self.force => report("kept", &format!("{path}: edited (--force overwrites it)")),
            _ => self.overwrite(path, text)?,
        }
        Ok(())
    }

    /// Writes a file that later commands extend: one that is there stays, also with `--force`, which would lose what they
    /// have added.
    pub(crate) fn write_if_missing(&self, path: &str, text: &str) -> Result<()> {
        if self.exists(path) { Ok(()) } else { self.overwrite(path, text) }
    }

    /// Writes a file that no one else writes.
    pub(crate) fn overwrite(&self, path: &str, text: &str) -> Result<()> {
        let target = self.path(path);
        if let Some(parent) = target.parent() {
            fs::create_dir_all(parent).with_context(|| format!("cannot create {}", parent.display()))?;
        }
        fs::write(&target, text).with_context(|| format!("cannot write {}", target.display()))?;
        report("wrote", path);
        Ok(())
    }

    pub(crate) fn remove(&self, path: &str) -> Result<()> {
        fs::remove_file(self.path(path)).with_context(|| format!("cannot remove {path}"))?;
        report("removed", path);
        Ok(())
    }

    /// Adds lines above the comments `setpoint:…` of a file, unless they are there already.
    pub(crate) fn insert(&self, path: &str, insertions: &[(&str, Vec<String>)]) -> Result<()> {
        let Some(old) = self.read(path)? else {
            report("missing", &format!("{path}: add these lines where they belong: {insertions:?}"));
            return Ok(());
        };
        let mut text = old.clone();
        for (marker, lines) in insertions {
            match with_lines(&text, marker, lines) {
                Some(longer) => text = longer,
                None => report(
                    "kept",
                    &format!(
                        "{path}: it has no comment `setpoint:{marker}`; add by hand: {}",
                        lines.join(" ")
                    ),
                ),
            }
        }
        if text == old {
            report("unchanged", path);
        } else {
            fs::write(self.path(path), text).with_context(|| format!("cannot write {path}"))?;
            report("extended", path);
        }
        Ok(())
    }
}

/// One line for a file: what was done, and its path.
pub(crate) fn report(what: &str, path: &str) {
    print_line(&format!("{what:<9} {path}"));
}

/// Whether two texts differ at most by how a formatter writes them: by white space, commas, semicolons, braces around one
/// expression, and the order of imports. A text with the same letters in another order counts as the same, too: then the
/// file stays as it is, which does no harm.
fn is_same_code(one: &str, other: &str) -> bool {
    let letters = |text: &str| {
        let mut letters: Vec<char> =
            text.chars().filter(|it| !it.is_whitespace() && !",;{}".contains(*it)).collect();
        letters.sort_unstable();
        letters
    };
    one == other || letters(one) == letters(other)
}

/// The text with lines above the comment `setpoint:MARKER`, indented as it is; the same text if the first one is there
/// already, and `None` without such a comment.
fn with_lines(text: &str, marker: &str, lines: &[String]) -> Option<String> {
    let is_there = |line: &String| text.lines().any(|old| old.trim() == line.trim());
    if lines.iter().all(is_there) {
        return Some(text.to_owned());
    }
    let marker = format!("setpoint:{marker}");
    let is_marker = |line: &str| {
        let comment = line.trim().trim_start_matches(['/', '#']).trim();
        comment == marker
    };
    if !text.lines().any(is_marker) {
        return None;
    }
    let mut longer = String::with_capacity(text.len() + 100);
    for old in text.lines() {
        if is_marker(old) {
            let indent = &old[..old.len() - old.trim_start().len()];
            for line in lines.iter().filter(|line| !is_there(line)) {
                longer.push_str(indent);
                longer.push_str(line);
                longer.push('\n');
            }
        }
        longer.push_str(old);
        longer.push('\n');
    }
    Some(longer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_added_above_their_marker_once() {
        let text = "vec![\n    // setpoint:kinds\n]\n";
        let lines = ["a(),".to_owned()];
        let once = with_lines(text, "kinds", &lines).unwrap();
        assert_eq!(once, "vec![\n    a(),\n    // setpoint:kinds\n]\n");
        assert_eq!(with_lines(&once, "kinds", &lines).unwrap(), once);
        assert_eq!(with_lines(text, "others", &lines), None);
        assert_eq!(with_lines("# setpoint:x\n", "x", &lines).unwrap(), "a(),\n# setpoint:x\n");
    }

    #[test]
    fn a_formatted_file_is_not_an_edited_one() {
        let written = "use b::{x, y};\nuse a::z;\nfn f() { match x { Some(y) => g(y), _ => {} } }\n";
        let formatted = "use a::z;\nuse b::{\n    x,\n    y,\n};\nfn f() {\n    match x {\n        Some(y) => {\n            \
                         g(y)\n        }\n        _ => {}\n    }\n}\n";
        assert!(is_same_code(written, formatted));
        assert!(!is_same_code(written, &formatted.replace("g(y)", "h(y)")));
    }

    #[test]
    fn a_file_that_was_edited_is_kept_unless_forced() {
        let folder = tempfile::tempdir().unwrap();
        let (files, force) =
            (ProjectFiles::new(folder.path(), false), ProjectFiles::new(folder.path(), true));
        files.write("a/b.txt", "one").unwrap();
        files.write("a/b.txt", "two").unwrap();
        assert_eq!(files.read("a/b.txt").unwrap().as_deref(), Some("one"));
        files.write_if_missing("a/b.txt", "two").unwrap();
        assert_eq!(files.read("a/b.txt").unwrap().as_deref(), Some("one"));
        force.write("a/b.txt", "two").unwrap();
        assert_eq!(files.read("a/b.txt").unwrap().as_deref(), Some("two"));
        assert_eq!(files.read("none").unwrap(), None);
    }
}
