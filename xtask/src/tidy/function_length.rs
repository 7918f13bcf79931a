//! A function has at most 70 lines, from `fn` to its closing brace.

use super::Finding;
use crate::source::Workspace;

const MAX_LINES: usize = 70;

pub(super) fn find(workspace: &Workspace) -> Vec<Finding> {
    let functions = workspace
        .sources
        .iter()
        .flat_map(|source| source.outline.functions.iter().map(|function| (source.path.as_str(), function)));
    let long = functions.filter(|(_, function)| function.lines > MAX_LINES);
    long.map(|(path, function)| Finding {
        path: path.to_owned(),
        line: function.line,
        place: format!("{path}:{}", function.name),
        size: function.lines,
        problem: format!(
            "the function `{}` has {} lines: split it, {MAX_LINES} are allowed",
            function.name, function.lines
        ),
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::{super::tests::check, *};

    #[test]
    fn functions_of_more_than_70_lines_are_found() {
        let function = |lines: usize| {
            format!("impl A {{\n    fn long() {{\n{}    }}\n}}\n", "        f();\n".repeat(lines - 2))
        };
        check(find, &[("xtask/src/a.rs", &function(70))], &[]);
        check(find, &[("xtask/src/a.rs", &function(71))], &[("xtask/src/a.rs:long", 71)]);
    }
}
