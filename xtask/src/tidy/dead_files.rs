//! Every Rust file is part of some crate.

use super::Finding;
use crate::source::Workspace;

pub(super) fn find(workspace: &Workspace) -> Vec<Finding> {
    let dead = workspace.sources.iter().filter(|source| !workspace.reach.contains(&source.path));
    dead.map(|source| Finding {
        path: source.path.clone(),
        line: 1,
        place: source.path.clone(),
        size: 1,
        problem: "no `mod` line leads to this file: add one, or delete the file".to_owned(),
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::{super::tests::check, *};

    #[test]
    fn files_that_no_mod_line_names_are_found() {
        let part = ("crates/a/src/part.rs", "");
        check(find, &[("crates/a/src/lib.rs", "mod part;"), part], &[]);
        check(find, &[("crates/a/src/lib.rs", "// mod part;"), part], &[("crates/a/src/part.rs", 1)]);
    }
}
