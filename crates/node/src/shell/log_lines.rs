//! The lines that a container writes to its log, up to a limit.

use crate::budget::beginning;
use std::time::Duration;

/// A simulated container keeps so much of its log, in bytes.
const MOST_BYTES: usize = 256 << 10;
/// What a line counts beside its text: its time, and what it takes in memory.
const LINE: usize = 32;
/// So much of each line. Container runtimes split longer ones.
const MOST_LINE: usize = 16 << 10;
const FULL: &str = "the log ends here: a simulated container keeps 256 KiB";

/// A log that is being written.
#[derive(Clone, Debug)]
pub(crate) struct LogLines {
    lines: Vec<(Duration, String)>,
    left: usize,
    is_full: bool,
}

impl Default for LogLines {
    fn default() -> LogLines {
        LogLines { lines: Vec::new(), left: MOST_BYTES, is_full: false }
    }
}

impl LogLines {
    /// Adds a line; none after the log is full.
    pub(crate) fn push(&mut self, at: Duration, line: &str) {
        if self.is_full {
            return;
        }
        let line = beginning(line, MOST_LINE);
        match self.left.checked_sub(line.len() + LINE) {
            Some(left) => self.left = left,
            None => self.is_full = true,
        }
        let line = if self.is_full { FULL } else { line };
        self.lines.push((at, line.to_owned()));
    }

    /// Adds why the command has ended.
    pub(crate) fn end_with(&mut self, at: Duration, problem: &str) {
        self.lines.push((at, problem.to_owned()));
    }

    pub(crate) fn into_lines(self) -> Vec<(Duration, String)> {
        self.lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_tells_where_it_was_cut() {
        let mut log = LogLines::default();
        for _ in 0..100_000 {
            log.push(Duration::ZERO, "");
        }
        log.push(Duration::ZERO, &"x".repeat(MOST_LINE * 2));
        let lines = log.into_lines();
        assert_eq!(lines.len(), MOST_BYTES / LINE + 1);
        assert_eq!(lines.last().unwrap().1, FULL);
        let mut log = LogLines::default();
        log.push(Duration::ZERO, &"x".repeat(MOST_LINE * 2));
        assert_eq!(log.into_lines()[0].1.len(), MOST_LINE);
    }
}
