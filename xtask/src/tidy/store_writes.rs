//! In the server, one file writes to the store, so that nothing gets there unchecked.

use super::Finding;
use crate::source::{Source, Workspace};

const SERVER: &str = "crates/server/src/";
const WRITER: &str = "crates/server/src/write/commit.rs";
/// The methods of `store::Store` that change what it holds.
const WRITES: [&str; 2] = ["commit", "compact"];

pub(super) fn find(workspace: &Workspace) -> Vec<Finding> {
    let sources =
        workspace.sources.iter().filter(|source| source.path.starts_with(SERVER) && source.path != WRITER);
    sources.flat_map(in_source).collect()
}

fn in_source(source: &Source) -> Vec<Finding> {
    let is_write = |at: &usize| {
        let is_call = source.word(*at) == "." && source.word(at + 2) == "(";
        is_call && WRITES.contains(&source.word(at + 1)) && !source.is_test_at(source.code[*at].line)
    };
    let found = (0..source.code.len()).filter(is_write).map(|at| Finding {
        path: source.path.clone(),
        line: source.code[at].line,
        place: source.path.clone(),
        size: 1,
        problem: format!("`{}` changes the store: only {WRITER} may", source.word(at + 1)),
    });
    found.collect()
}

#[cfg(test)]
mod tests {
    use super::{super::tests::check, *};

    #[test]
    fn writes_outside_the_one_file_are_found() {
        let writes = "fn f() { store.commit(batch).await }";
        check(find, &[(WRITER, writes), ("crates/store/src/lib.rs", writes)], &[]);
        check(find, &[("crates/server/src/a.rs", "fn f() { store.get(key).await; commit(call) }")], &[]);
        check(find, &[("crates/server/src/a.rs", &format!("#[cfg(test)]\n{writes}"))], &[]);
        check(find, &[("crates/server/src/a.rs", writes)], &[("crates/server/src/a.rs", 1)]);
    }
}
