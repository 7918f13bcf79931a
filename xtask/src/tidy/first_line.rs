//! The first line of every file says what the file is for.

use super::Finding;
use crate::source::Workspace;

pub(super) fn find(workspace: &Workspace) -> Vec<Finding> {
    let silent = workspace
        .sources
        .iter()
        .filter(|source| !is_sentence(source.text.lines().next().unwrap_or_default()));
    silent
        .map(|source| Finding {
            path: source.path.clone(),
            line: 1,
            place: source.path.clone(),
            size: 1,
            problem: "begin the file with `//!` and a sentence that says what it is for".to_owned(),
        })
        .collect()
}

fn is_sentence(line: &str) -> bool {
    line.strip_prefix("//! ").is_some_and(|text| text.split_whitespace().count() > 1)
}

#[cfg(test)]
mod tests {
    use super::{super::tests::check, *};

    #[test]
    fn files_that_do_not_begin_with_a_sentence_are_found() {
        for text in ["//! Reads requests.\n\nuse a;\n", "//! Reads requests,\n//! and answers them.\n"] {
            check(find, &[("xtask/src/a.rs", text)], &[]);
        }
        for text in ["", "use a;\n", "// Reads requests.\n", "//!\n//! Reads requests.\n", "//! Requests\n"] {
            check(find, &[("xtask/src/a.rs", text)], &[("xtask/src/a.rs", 1)]);
        }
    }
}
