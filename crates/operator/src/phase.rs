//! The phase of an object, computed from the observed state each time and never stored.
//!
//! A stored phase is wrong after a crash, a rollback or an edit by hand. Here it is the first step that is not
//! done, so that work continues from whatever state there is.

use crate::condition::Report;
use std::fmt;

/// A named step, and whether it is done.
#[derive(Debug)]
pub struct Step<O> {
    /// Its name, one CamelCase word.
    pub name: &'static str,
    /// Tells from the observed state whether it is done.
    pub is_done: fn(&O) -> bool,
}

/// How many steps are done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// The step to work on; `None` when all are done.
    pub phase: Option<&'static str>,
    /// The steps before that one.
    pub done: usize,
    /// All steps.
    pub steps: usize,
}

/// Finds the first step that is not done. Later steps do not count, even if they are done: a step that is
/// undone becomes the phase again.
///
/// ```
/// use operator::phase::{Step, progress};
///
/// struct Observed { account: bool, identity: Option<&'static str> }
/// const STEPS: &[Step<Observed>] = &[
///     Step { name: "Account", is_done: |seen| seen.account },
///     Step { name: "Identity", is_done: |seen| seen.identity.is_some() },
/// ];
///
/// let now = progress(STEPS, &Observed { account: true, identity: None });
/// assert_eq!((now.phase, now.to_string()), (Some("Identity"), "Identity (1 of 2 done)".into()));
/// ```
pub fn progress<O>(steps: &[Step<O>], observed: &O) -> Progress {
    let done = steps.iter().take_while(|step| (step.is_done)(observed)).count();
    Progress { phase: steps.get(done).map(|step| step.name), done, steps: steps.len() }
}

impl Progress {
    /// Whether all steps are done.
    pub fn is_complete(&self) -> bool {
        self.phase.is_none()
    }

    /// The phase to show in a status; `Ready` when all steps are done.
    pub fn name(&self) -> &'static str {
        self.phase.unwrap_or("Ready")
    }

    /// A condition with the phase as its reason.
    /// ```
    /// use operator::{Timestamp, condition, phase::{Step, progress}};
    ///
    /// const STEPS: &[Step<bool>] = &[Step { name: "Account", is_done: |has_account| *has_account }];
    /// let mut conditions = Vec::new();
    /// condition::set(&mut conditions, progress(STEPS, &false).report("Ready"), Timestamp::UNIX_EPOCH);
    /// assert_eq!((conditions[0].status.as_str(), conditions[0].reason.as_str()), ("False", "Account"));
    /// ```
    pub fn report(&self, condition: &'static str) -> Report {
        Report::new(condition, self.is_complete(), self.name(), self.to_string())
    }
}

impl fmt::Display for Progress {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} ({} of {} done)", self.name(), self.done, self.steps)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_phase_is_the_first_step_not_done() {
        const STEPS: &[Step<[bool; 3]>] = &[
            Step { name: "Account", is_done: |seen| seen[0] },
            Step { name: "Identity", is_done: |seen| seen[1] },
            Step { name: "Key", is_done: |seen| seen[2] },
        ];
        for (observed, expected) in [
            ([false, false, false], "Account (0 of 3 done)"),
            ([true, false, false], "Identity (1 of 3 done)"),
            ([true, true, false], "Key (2 of 3 done)"),
            ([true, true, true], "Ready (3 of 3 done)"),
            // The account was lost: what stood on it does not count.
            ([false, true, true], "Account (0 of 3 done)"),
        ] {
            let progress = progress(STEPS, &observed);
            assert_eq!(progress.to_string(), expected);
            assert_eq!(progress.is_complete(), observed == [true; 3]);
        }
    }
}
