//! Comments and names of functions say who does what, in plain words.

use super::Finding;
use crate::source::{Source, Workspace};

/// Signs of a sentence that has to be decoded: it does not name who or what is meant.
const RIDDLES: [&str; 3] = ["nobody", "whoever", "what is told"];

pub(super) fn find(workspace: &Workspace) -> Vec<Finding> {
    workspace.sources.iter().flat_map(in_source).collect()
}

fn in_source(source: &Source) -> Vec<Finding> {
    let comments =
        source.comments.iter().map(|comment| (comment.line, source.text_of(comment).to_lowercase()));
    let names =
        source.outline.functions.iter().map(|function| (function.line, function.name.replace('_', " ")));
    let texts = comments.chain(names);
    let found = texts.flat_map(|(line, text)| {
        let each = RIDDLES
            .iter()
            .flat_map(move |riddle| text.match_indices(riddle).map(|_| *riddle).collect::<Vec<_>>());
        each.map(move |riddle| (line, riddle))
    });
    let found = found.map(|(line, riddle)| Finding {
        path: source.path.clone(),
        line,
        place: source.krate().to_owned(),
        size: 1,
        problem: format!("\"{riddle}\" is a riddle: name who or what is meant"),
    });
    found.collect()
}

#[cfg(test)]
mod tests {
    use super::{super::tests::check, *};

    #[test]
    fn riddles_in_comments_and_names_are_found() {
        check(find, &[("crates/a/src/a.rs", "// The client sees this.\nfn f() { say(\"nobody\") }")], &[]);
        check(find, &[("crates/a/src/a.rs", "/// Nobody sees this.\nfn f() {}")], &[("crates/a", 1)]);
        check(
            find,
            &[("crates/a/src/a.rs", "fn what_is_told_to_whoever_asks() {}")],
            &[("crates/a", 1), ("crates/a", 1)],
        );
    }
}
