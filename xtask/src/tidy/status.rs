//! In the server, `refusal` makes the Status of a failure and `answer` that of a success; other modules return a `Refusal`.

use super::Finding;
use crate::source::{Source, Workspace};

const SERVER: &str = "crates/server/src/";
/// Where a Status is made: these files, and the files of their folders.
const MAKERS: [&str; 2] = ["crates/server/src/refusal", "crates/server/src/answer"];

pub(super) fn find(workspace: &Workspace) -> Vec<Finding> {
    let is_meant =
        |path: &str| path.starts_with(SERVER) && !MAKERS.iter().any(|maker| path.starts_with(maker));
    workspace.sources.iter().filter(|source| is_meant(&source.path)).flat_map(in_source).collect()
}

fn in_source(source: &Source) -> Vec<Finding> {
    let is_constructor = |at: &usize| {
        let is_path = source.word(at + 1) == ":" && source.word(at + 2) == ":";
        source.word(*at) == "Status" && is_path && !source.is_test_at(source.code[*at].line)
    };
    let found = (0..source.code.len()).filter(is_constructor).map(|at| Finding {
        path: source.path.clone(),
        line: source.code[at].line,
        place: source.path.clone(),
        size: 1,
        problem: format!("`Status::{}` belongs in {}.rs: return a `Refusal`", source.word(at + 3), MAKERS[0]),
    });
    found.collect()
}

#[cfg(test)]
mod tests {
    use super::{super::tests::check, *};

    #[test]
    fn statuses_that_are_made_elsewhere_are_found() {
        let makes = "fn f() -> Status { Status::bad_request(\"no\") }";
        check(
            find,
            &[("crates/server/src/refusal/reasons.rs", makes), ("crates/operator/src/a.rs", makes)],
            &[],
        );
        check(find, &[("crates/server/src/a.rs", "// Status::bad_request\nfn f(status: &Status) {}")], &[]);
        check(find, &[("crates/server/src/a.rs", "const A: u16 = StatusCode::OK;")], &[]);
        check(find, &[("crates/server/src/a.rs", makes)], &[("crates/server/src/a.rs", 1)]);
    }
}
