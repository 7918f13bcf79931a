//! Collects the errors in a body, and picks those that kube-apiserver reports.

use super::{DecodeError, FieldValidation};

/// Kubernetes: the decoder keeps at most this many strict errors.
const MAX_STRICT_ERRORS: usize = 100;

/// Decoding goes on after an error: only the first of the most severe kind is reported, and it may come
/// later.
#[derive(Debug, Default)]
pub(super) struct Faults {
    /// A custom unmarshaler failed: Go's decoder stops there, so no other error counts.
    fatal: Option<String>,
    /// The first value of a wrong type: Go's decoder goes on and reports it at the end.
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

    /// Starts a separate list of errors for a value that Go decodes with a second, never strict, decoder.
    pub(super) fn set_aside(&mut self) -> Self {
        let quiet = Self { fatal: self.fatal.take(), first: None, strict: None };
        std::mem::replace(self, quiet)
    }

    /// Returns to the list before [`Faults::set_aside`]: an error of the second decoder is fatal to the
    /// first.
    pub(super) fn resume(&mut self, outer: Self) {
        let inner = std::mem::replace(self, outer);
        self.fatal = inner.fatal.or(inner.first);
    }

    pub(super) fn verdict(self, validation: FieldValidation) -> Result<Vec<String>, DecodeError> {
        if let Some(error) = self.fatal.or(self.first) {
            return Err(DecodeError::Malformed(error));
        }
        let strict = self.strict.unwrap_or_default();
        match validation {
            FieldValidation::Strict if !strict.is_empty() => Err(DecodeError::Strict(strict)),
            _ => Ok(strict),
        }
    }
}
