//! What the simulation of a container may cost: every command and every byte that it copies is counted.

use std::cell::Cell;

/// What the containers of a pod may cost together, each time that they are simulated: about 20 ms of a processor. What
/// is held in memory has been paid for, too, so that it is never more bytes than this.
pub(crate) const FULL: usize = 16 << 20;
/// Most pods cost less. What costs more is done beside the threads that serve sockets.
pub(crate) const SHORT: usize = 256 << 10;

/// A command, an allocation, a file that is looked up.
pub(crate) const STEP: usize = 64;
/// A byte that is read as part of a script or of an expansion.
pub(crate) const READ: usize = 8;

/// The exit code of a command that has used up its budget: that of a shell without memory.
pub(crate) const EXIT_CODE: i32 = 2;
/// The last line of the log of such a command.
pub(crate) const MESSAGE: &str = "out of memory: a simulated container computes no more than this; simplify its \
                                  command, or say in the annotation setpoint.dev/script how it ends";

/// What may still be used.
#[derive(Debug)]
pub(crate) struct Budget {
    left: Cell<usize>,
    is_exceeded: Cell<bool>,
}

/// More was asked for than is left. Whatever was being computed has no result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OverBudget;

impl Budget {
    pub(crate) fn new(units: usize) -> Budget {
        Budget { left: Cell::new(units), is_exceeded: Cell::new(false) }
    }

    /// Pays for work that is about to be done.
    pub(crate) fn charge(&self, units: usize) -> Result<(), OverBudget> {
        match self.left.get().checked_sub(units) {
            Some(left) if !self.is_exceeded.get() => {
                self.left.set(left);
                Ok(())
            }
            _ => {
                self.is_exceeded.set(true);
                Err(OverBudget)
            }
        }
    }

    /// Whether something could not be paid for. Nothing can be from then on.
    pub(crate) fn is_exceeded(&self) -> bool {
        self.is_exceeded.get()
    }
}

/// The beginning of a text, of so many bytes at most.
pub(crate) fn beginning(text: &str, most: usize) -> &str {
    let end = (0..=most.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
    &text[..end.unwrap_or_default()]
}

/// The end of a text, of so many bytes at most.
pub(crate) fn ending(text: &str, most: usize) -> &str {
    let start = (text.len().saturating_sub(most)..text.len()).find(|start| text.is_char_boundary(*start));
    &text[start.unwrap_or(text.len())..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_that_was_exceeded_pays_for_nothing() {
        let budget = Budget::new(10);
        assert_eq!((budget.charge(4), budget.charge(6), budget.is_exceeded()), (Ok(()), Ok(()), false));
        assert_eq!((budget.charge(1), budget.charge(0)), (Err(OverBudget), Err(OverBudget)));
        assert!(budget.is_exceeded());
    }

    #[test]
    fn texts_are_cut_between_letters() {
        assert_eq!((beginning("aßb", 2), beginning("aßb", 9)), ("a", "aßb"));
        assert_eq!((ending("aßb", 2), ending("aßb", 9)), ("b", "aßb"));
    }
}
