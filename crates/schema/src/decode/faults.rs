//! What is wrong with a body, and which of it the real server tells.

use super::{DecodeError, FieldValidation};

/// Kubernetes: the decoder remembers no more strict errors than these.
const MAX_STRICT_ERRORS: usize = 100;

/// A walk goes on after a fault, because only the first of the gravest sort is told, and it may come later.
#[derive(Debug, Default)]
pub(super) struct Faults {
    /// A value refused itself: Go's decoder stops there, so nothing else counts.
    fatal: Option<String>,
    /// The first value that its type does not take: Go's decoder goes on and tells it in the end.
    first: Option<String>,
    /// Unknown members and those that came twice. `None` where the caller does not want them.
    strict: Option<Vec<String>>,
}

impl Faults {
    pub(super) fn new(validation: FieldValidation) -> Self {
        let strict = (validation != FieldValidation::Ignore).then(Vec::new);
        Self { strict, ..Self::default() }
    }

    pub(super) fn refuse(&mut self, text: String) {
        self.fatal.get_or_insert(text);
    }

    pub(super) fn mismatch(&mut self, text: impl FnOnce() -> String) {
        self.first.get_or_insert_with(text);
    }

    /// Notes a strict error, unless it is known, too many are, or the caller does not want them.
    pub(super) fn strict(&mut self, text: impl FnOnce() -> String) {
        let Some(strict) = self.strict.as_mut().filter(|strict| strict.len() < MAX_STRICT_ERRORS) else {
            return;
        };
        let text = text();
        if !strict.contains(&text) {
            strict.push(text);
        }
    }

    /// Steps aside for a value that a second decoder reads, which is never strict.
    pub(super) fn set_aside(&mut self) -> Self {
        let quiet = Self { fatal: self.fatal.take(), first: None, strict: None };
        std::mem::replace(self, quiet)
    }

    /// Comes back from [`Faults::set_aside`]: to the first decoder, any error of the second is fatal.
    pub(super) fn resume(&mut self, outer: Self) {
        let inner = std::mem::replace(self, outer);
        self.fatal = inner.fatal.or(inner.first);
    }

    pub(super) fn verdict(self, validation: FieldValidation) -> Result<Vec<String>, DecodeError> {
        if let Some(told) = self.fatal.or(self.first) {
            return Err(DecodeError::Malformed(told));
        }
        let strict = self.strict.unwrap_or_default();
        match validation {
            FieldValidation::Strict if !strict.is_empty() => Err(DecodeError::Strict(strict)),
            _ => Ok(strict),
        }
    }
}
