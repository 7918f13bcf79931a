//! Errors in an expression's text, printed with the line and a mark under the place.

use std::fmt;

/// Further errors are counted, not printed.
const MAX_PRINTED: usize = 100;
/// Longer lines are not shown.
const MAX_SNIPPET_BYTES: usize = 16_384;

/// All errors of one expression, in the order of the text.
#[derive(Clone, Debug)]
pub struct Issues {
    issues: Vec<Issue>,
    truncated: usize,
    text: String,
}

/// One error and its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Issue {
    /// Counted from one; `None` if the error has no place.
    pub place: Option<Place>,
    pub message: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    pub line: u32,
    pub column: u32,
}

/// Errors as they are found, by offset in characters.
#[derive(Debug)]
pub(crate) struct Found<'s> {
    source: &'s str,
    found: Vec<(Option<u32>, String)>,
}

impl<'s> Found<'s> {
    pub(crate) fn new(source: &'s str) -> Found<'s> {
        Found { source, found: Vec::new() }
    }

    pub(crate) fn at(&mut self, offset: u32, message: impl Into<String>) {
        self.found.push((Some(offset), message.into()));
    }

    pub(crate) fn nowhere(&mut self, message: impl Into<String>) {
        self.found.push((None, message.into()));
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    pub(crate) fn finish(self) -> Result<(), Issues> {
        if self.found.is_empty() {
            return Ok(());
        }
        let lines: Vec<&str> = self.source.split('\n').collect();
        let truncated = self.found.len().saturating_sub(MAX_PRINTED);
        let mut issues: Vec<Issue> = self
            .found
            .into_iter()
            .take(MAX_PRINTED)
            .map(|(offset, message)| Issue { place: offset.map(|offset| place(&lines, offset)), message })
            .collect();
        issues.sort_by_key(|issue| issue.place);
        let mut text: Vec<String> = issues.iter().map(|issue| issue.print(&lines)).collect();
        if truncated > 0 {
            text.push(format!("{truncated} more errors were truncated"));
        }
        Err(Issues { issues, truncated, text: text.join("\n") })
    }
}

impl Issues {
    pub fn iter(&self) -> impl Iterator<Item = &Issue> {
        self.issues.iter()
    }

    pub fn count(&self) -> usize {
        self.issues.len() + self.truncated
    }
}

impl fmt::Display for Issues {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for Issues {}

impl Issue {
    fn print(&self, lines: &[&str]) -> String {
        let Some(place) = self.place else { return format!("ERROR: <input>:-1:0: {}", self.message) };
        // Kubernetes: an empty expression has no first column.
        let column = if matches!(lines, [] | [""]) { 0 } else { place.column };
        let mut text = format!("ERROR: <input>:{}:{column}: {}", place.line, self.message);
        let snippet = lines.get(place.line as usize - 1).copied().unwrap_or_default();
        if snippet.len() > MAX_SNIPPET_BYTES || (lines.len() == 1 && snippet.is_empty()) {
            return text;
        }
        let snippet = snippet.replace('\t', " ");
        let mut mark = String::new();
        let mut rest = snippet.chars();
        for _ in 1..place.column {
            match rest.next() {
                Some(letter) => mark.push(if letter.len_utf8() > 1 { '\u{ff0e}' } else { '.' }),
                None => break,
            }
        }
        mark.push(if rest.next().is_some_and(|letter| letter.len_utf8() > 1) { '\u{ff3e}' } else { '^' });
        text.push_str(&format!("\n | {snippet}\n | {mark}"));
        text
    }
}

fn place(lines: &[&str], offset: u32) -> Place {
    let mut rest = offset;
    for (index, line) in lines.iter().enumerate() {
        let length = line.chars().count() as u32;
        if rest <= length || index + 1 == lines.len() {
            return Place { line: index as u32 + 1, column: rest + 1 };
        }
        rest -= length + 1;
    }
    Place { line: 1, column: 1 }
}
