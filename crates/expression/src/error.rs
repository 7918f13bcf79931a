//! Errors of an evaluation.

use std::borrow::Cow;

/// A failed evaluation. `&&`, `||` and comprehensions may absorb it, unless it is a cancellation.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    message: Cow<'static, str>,
    cancelled: bool,
}

impl Error {
    pub fn new(message: impl Into<Cow<'static, str>>) -> Error {
        Error { message: message.into(), cancelled: false }
    }

    /// No overload takes these arguments.
    pub fn no_such_overload() -> Error {
        Error::new("no such overload")
    }

    pub fn no_such_key(key: &str) -> Error {
        Error::new(format!("no such key: {key}"))
    }

    /// The budget is spent: no operator absorbs this.
    pub fn cost_limit_exceeded() -> Error {
        Error { message: "operation cancelled: actual cost limit exceeded".into(), cancelled: true }
    }

    /// The run took too long, independent of its cost.
    pub(crate) fn interrupted() -> Error {
        Error { message: "operation interrupted".into(), cancelled: true }
    }

    pub fn message(&self) -> &str {
        &self.message
    }

    /// Whether the run was stopped from outside rather than failing by itself.
    pub fn is_cancelled(&self) -> bool {
        self.cancelled
    }
}
