//! Journeys through the code, each step a function of a file, checked to be there and to be called.

use crate::source::{Function, Source, Workspace};
use anyhow::{Context, Result, ensure};

/// A title, and the steps in travel order.
#[derive(Debug)]
pub(super) struct Journey {
    pub(super) title: String,
    steps: Vec<Step>,
}

#[derive(Debug, PartialEq, Eq)]
struct Step {
    /// How far it is indented: a step is called by the last one before it that is indented less.
    depth: usize,
    /// From `crates/`.
    path: String,
    function: String,
    /// What its caller writes instead of its name, where it is called through a trait, a table or a queue.
    by: Option<String>,
    words: String,
    line: usize,
}

/// Titles stand at the beginning of a line; steps are indented: `path:function [by NAME]  words`.
pub(super) fn parse(text: &str) -> Result<Vec<Journey>> {
    let mut journeys: Vec<Journey> = Vec::new();
    let lines =
        text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty() && !line.starts_with('#'));
    for (at, line) in lines {
        let depth = line.len() - line.trim_start().len();
        if depth == 0 {
            journeys.push(Journey { title: line.trim_end().to_owned(), steps: Vec::new() });
            continue;
        }
        let journey =
            journeys.last_mut().with_context(|| format!("line {}: a step before any title", at + 1))?;
        journey.steps.push(parse_step(line, depth, at + 1)?);
    }
    Ok(journeys)
}

fn parse_step(line: &str, depth: usize, at: usize) -> Result<Step> {
    let mut words = line.split_whitespace().peekable();
    let step = words.next().and_then(|step| step.split_once(':'));
    let (path, function) = step.with_context(|| format!("line {at}: a step begins with path:function"))?;
    let by = words.next_if_eq(&"by").and_then(|_| words.next()).map(str::to_owned);
    let words: Vec<_> = words.collect();
    ensure!(!words.is_empty(), "line {at}: say what `{function}` does");
    Ok(Step {
        depth,
        path: path.to_owned(),
        function: function.to_owned(),
        by,
        words: words.join(" "),
        line: at,
    })
}

impl Journey {
    /// As a nested list.
    pub(super) fn print(&self) -> String {
        let first = self.steps.first().map_or(0, |step| step.depth);
        let print = |step: &Step| {
            let indent = " ".repeat(step.depth - first.min(step.depth));
            format!("{indent}- `{}:{}` {}", step.path, step.function, step.words)
        };
        self.steps.iter().map(print).collect::<Vec<_>>().join("\n")
    }

    /// Steps whose function is not there, or is not mentioned by its caller, with their lines.
    pub(super) fn problems(&self, workspace: &Workspace) -> impl Iterator<Item = (usize, String)> {
        let problem = |at: usize| Some((self.steps[at].line, self.problem(workspace, at)?));
        (0..self.steps.len()).filter_map(problem)
    }

    fn problem(&self, workspace: &Workspace, at: usize) -> Option<String> {
        let step = &self.steps[at];
        if step.found(workspace).is_none_or(|(_, bodies)| bodies.is_empty()) {
            return Some(format!("crates/{} has no function `{}`", step.path, step.function));
        }
        let caller = self.steps[..at].iter().rev().find(|before| before.depth < step.depth);
        let Some(caller) = caller else {
            return (at > 0)
                .then(|| format!("no step calls `{}`: indent it below its caller", step.function));
        };
        let name = step.by.as_ref().unwrap_or(&step.function);
        // What is wrong with the caller is told at its own line.
        let (source, bodies) = caller.found(workspace)?;
        let is_mentioned =
            bodies.iter().any(|function| function.body.clone().any(|at| source.word(at) == name));
        (!bodies.is_empty() && !is_mentioned)
            .then(|| format!("`{}` of crates/{} does not mention `{name}`", caller.function, caller.path))
    }
}

impl Step {
    /// Its file, and the functions of its name in it.
    fn found<'a>(&self, workspace: &'a Workspace) -> Option<(&'a Source, Vec<&'a Function>)> {
        let source = workspace.source(&format!("crates/{}", self.path))?;
        let functions = source.outline.functions.iter().filter(|function| function.name == self.function);
        Some((source, functions.collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(text: &str) -> Vec<String> {
        let workspace = Workspace::of(&[
            (
                "crates/a/src/lib.rs",
                "mod b;\nfn handle() { answer(); (table.run)() }\nfn answer() { b::write() }",
            ),
            ("crates/a/src/b.rs", "fn write() {}\nfn hook() {}"),
        ]);
        let journeys = parse(text).unwrap();
        journeys
            .iter()
            .flat_map(|journey| journey.problems(&workspace))
            .map(|(at, text)| format!("{at}: {text}"))
            .collect()
    }

    #[test]
    fn a_step_is_called_by_the_step_that_it_is_indented_below() {
        let good = "A write\n  a/src/lib.rs:handle begins\n    a/src/lib.rs:answer goes on\n      a/src/b.rs:write ends\n    a/src/b.rs:hook by run follows";
        assert_eq!(problems(good), Vec::<String>::new());
        assert_eq!(
            problems(
                "A\n  a/src/lib.rs:handle x\n    a/src/b.rs:write x\n    a/src/b.rs:gone x\n  a/src/b.rs:hook x"
            ),
            [
                "3: `handle` of crates/a/src/lib.rs does not mention `write`",
                "4: crates/a/src/b.rs has no function `gone`",
                "5: no step calls `hook`: indent it below its caller",
            ]
        );
    }

    #[test]
    fn steps_are_printed_as_a_nested_list() {
        let journeys =
            parse("# a comment\nA write\n  a/src/lib.rs:handle  begins\n    b.rs:hook by run  goes on")
                .unwrap();
        assert_eq!(journeys[0].title, "A write");
        assert_eq!(journeys[0].print(), "- `a/src/lib.rs:handle` begins\n  - `b.rs:hook` goes on");
        assert!(parse("  a.rs:b c").is_err() && parse("A\n  a.rs:b").is_err());
    }
}
