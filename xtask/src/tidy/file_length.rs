//! A file has at most 400 lines, tests included.

use super::Finding;
use crate::source::Workspace;

const MAX_LINES: usize = 400;

pub(super) fn find(workspace: &Workspace) -> Vec<Finding> {
    let long = workspace.sources.iter().filter(|source| source.lines() > MAX_LINES);
    long.map(|source| Finding {
        path: source.path.clone(),
        line: MAX_LINES + 1,
        place: source.path.clone(),
        size: source.lines(),
        problem: format!("the file has {} lines: split it, {MAX_LINES} are allowed", source.lines()),
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::{super::tests::check, *};

    #[test]
    fn files_of_more_than_400_lines_are_found() {
        check(find, &[("crates/a/src/lib.rs", &"\n".repeat(400))], &[]);
        check(find, &[("crates/a/src/lib.rs", &"\n".repeat(401))], &[("crates/a/src/lib.rs", 401)]);
    }
}
