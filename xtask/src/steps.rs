//! Runs programs one after the other, and counts the results of their tests.

use anyhow::{Context, Result};
use std::{
    io::{BufRead, BufReader},
    process::{Command, ExitCode, Stdio},
};

#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) passed: u64,
    pub(crate) failed: u64,
    /// The steps that were skipped, and why.
    pub(crate) skipped: Vec<String>,
}

impl Tally {
    /// Runs a check that counts as one test.
    pub(crate) fn check(&mut self, name: &str, command: &mut Command) -> Result<()> {
        println!("\n── {name}");
        let status = command.status().with_context(|| format!("cannot run {command:?}"))?;
        self.count(name, status.success());
        Ok(())
    }

    fn count(&mut self, name: &str, good: bool) {
        if good {
            self.passed += 1;
        } else {
            self.failed += 1;
            println!("── {name}: FAILED");
        }
    }

    /// Counts a check of this program, which passes where it has found no problem.
    pub(crate) fn problems(&mut self, name: &str, problems: &[String]) {
        println!("\n── {name}");
        problems.iter().for_each(|problem| println!("{problem}"));
        self.count(name, problems.is_empty());
    }

    /// Runs a test runner, shows what it says, and counts its tests.
    pub(crate) fn suite(&mut self, name: &str, command: &mut Command) -> Result<()> {
        println!("\n── {name}");
        let mut child =
            command.stdout(Stdio::piped()).spawn().with_context(|| format!("cannot run {command:?}"))?;
        let output = child.stdout.take().context("the output of the runner")?;
        let failed_before = self.failed;
        for line in BufReader::new(output).lines() {
            let line = line?;
            println!("{line}");
            if let Some((passed, failed)) = parse_summary(&line) {
                self.passed += passed;
                self.failed += failed;
            }
        }
        if !child.wait()?.success() && self.failed == failed_before {
            // It failed before it printed a summary.
            self.failed += 1;
            println!("── {name}: FAILED");
        }
        Ok(())
    }

    /// Prints what was skipped, and the numbers; fails if anything failed.
    pub(crate) fn summary(&self) -> ExitCode {
        println!();
        for skipped in &self.skipped {
            println!("SKIPPED {skipped}");
        }
        println!("{} passed, {} failed, {} skipped", self.passed, self.failed, self.skipped.len());
        if self.failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }

    pub(crate) fn skip(&mut self, name: &str, reason: &str) {
        println!("\n── {name}: SKIPPED: {reason}");
        self.skipped.push(format!("{name}: {reason}"));
    }
}

/// Reads `test result: ok. 5 passed; 0 failed; 0 ignored; …`.
fn parse_summary(line: &str) -> Option<(u64, u64)> {
    let summary = line.strip_prefix("test result: ")?;
    let count = |word: &str| {
        let before = &summary[..summary.find(word)?];
        before.trim().rsplit(' ').next()?.parse().ok()
    };
    Some((count(" passed")?, count(" failed")?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn summaries_of_the_test_runner_are_counted() {
        for (line, expected) in [
            ("test result: ok. 5 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out", Some((5, 0))),
            ("test result: FAILED. 12 passed; 3 failed; 0 ignored", Some((12, 3))),
            ("running 5 tests", None),
            ("test five ... ok", None),
        ] {
            assert_eq!(parse_summary(line), expected, "{line}");
        }
    }
}
