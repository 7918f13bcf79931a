//! The paths that a file writes out from `crate` or `super`, with the groups of `use` spread out.

use super::Source;

/// A path as seen from the root of the crate: `["write", "commit", "create"]`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct PathUse {
    pub(crate) segments: Vec<String>,
    pub(crate) line: usize,
}

/// The module of a file below `src`: `["write", "commit"]` for `write/commit.rs`, none for the root.
pub(crate) fn module_path(in_src: &str) -> Vec<String> {
    let parts = in_src.trim_end_matches(".rs").split('/');
    parts.filter(|part| !matches!(*part, "lib" | "main" | "mod")).map(str::to_owned).collect()
}

pub(crate) fn paths(source: &Source) -> Vec<PathUse> {
    let here = module_path(source.in_src().unwrap_or_default());
    let mut found = Vec::new();
    for at in 0..source.code.len() {
        let is_inside_path = at > 0 && source.word(at - 1) == ":";
        let (above, mut next) = match source.word(at) {
            _ if is_inside_path => continue,
            "crate" => (here.len(), at + 1),
            "super" => (1, at + 1),
            _ => continue,
        };
        let mut start = here[..here.len().saturating_sub(above)].to_vec();
        while is_path_mark(source, next) && source.word(next + 2) == "super" {
            start.pop();
            next += 3;
        }
        if is_path_mark(source, next) {
            spread(source, next, &start, &mut found);
        }
    }
    found
}

/// The paths that a file imports from its own modules, which it names without `crate`: `use write::Checked`.
pub(crate) fn imports(source: &Source) -> Vec<PathUse> {
    let mut found = Vec::new();
    for at in (0..source.code.len()).filter(|at| source.word(*at) == "use" && is_path_mark(source, at + 2)) {
        spread(source, at + 2, &[source.word(at + 1).to_owned()], &mut found);
    }
    found
}

fn is_path_mark(source: &Source, at: usize) -> bool {
    source.word(at) == ":" && source.word(at + 1) == ":"
}

/// Adds the paths that go on with the `::` at a place. Answers with the place behind them.
fn spread(source: &Source, mark: usize, before: &[String], found: &mut Vec<PathUse>) -> usize {
    let (mut at, mut segments) = (mark, before.to_vec());
    while is_path_mark(source, at) {
        match source.word(at + 2) {
            "{" => return spread_group(source, at + 3, &segments, found),
            "*" => {
                found.push(PathUse { segments, line: source.code[mark].line });
                return at + 3;
            }
            word if word.starts_with(|first: char| first.is_alphabetic() || first == '_') => {
                segments.push(word.to_owned());
                at += 3;
            }
            _ => break,
        }
    }
    if segments.len() > before.len() {
        found.push(PathUse { segments, line: source.code[mark].line });
    }
    at
}

/// Adds the paths of a group of `use`, from behind its brace.
fn spread_group(source: &Source, start: usize, before: &[String], found: &mut Vec<PathUse>) -> usize {
    let mut at = start;
    while at < source.code.len() && source.word(at) != "}" {
        let mut segments = before.to_vec();
        let line = source.code[at].line;
        match source.word(at) {
            // What comes behind `as` is a name of this file.
            "as" => at += 2,
            "," | "*" => at += 1,
            "self" => {
                found.push(PathUse { segments, line });
                at += 1;
            }
            word => {
                segments.push(word.to_owned());
                at = match is_path_mark(source, at + 1) {
                    true => spread(source, at + 1, &segments, found),
                    false => {
                        found.push(PathUse { segments, line });
                        at + 1
                    }
                };
            }
        }
    }
    at + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(path: &str, text: &str, expected: &[&str]) {
        compare(paths(&Source::parse(path, text)), expected);
    }

    fn compare(found: Vec<PathUse>, expected: &[&str]) {
        let found: Vec<_> = found.iter().map(|path| path.segments.join("::")).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn paths_are_seen_from_the_root() {
        let file = "crates/a/src/write/commit.rs";
        check(
            file,
            "use crate::{answer::{self, Body}, stored, verbs::*};",
            &["answer", "answer::Body", "stored", "verbs"],
        );
        check(file, "use super::{Checked, change::Next as N};", &["write::Checked", "write::change::Next"]);
        check(file, "fn f() { super::super::fair::seat(crate::x::<u8>()) }", &["fair::seat", "x"]);
        check(file, "pub(crate) fn f() {} pub(super) fn g() {}", &[]);
        check("crates/a/src/lib.rs", "use crate::write::create;", &["write::create"]);
    }

    #[test]
    fn a_root_imports_from_its_modules() {
        let root = Source::parse(
            "crates/a/src/lib.rs",
            "pub use write::{Checked, commit::Outcome};\nuse api::Status;",
        );
        compare(imports(&root), &["write::Checked", "write::commit::Outcome", "api::Status"]);
    }
}
