//! Why a key is in the queue, and with which priority.

/// Why a key was added. It decides the priority and labels the span; a reconcile may ask for it, and must make the
/// same of the object whatever it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The object existed when the cache started.
    Initial,
    /// Nothing has changed: every object is reconciled again from time to time.
    Resync,
    /// The object has changed, or one that maps to it.
    Changed,
    /// The same, by a write of this process: no reason to expect that a failure has passed.
    Written,
    /// A timer, a stream or a person asks for it.
    Asked,
    /// The last reconcile returned `Next::CheckAfter`.
    Check,
    /// The last reconcile failed.
    Retry,
    /// The last reconcile failed because the object had changed meanwhile.
    Conflict,
}

/// Fresh keys go first, but not always: see [`Pace::fresh_in_a_row`](super::Pace::fresh_in_a_row).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Priority {
    /// Nothing has happened to the object.
    Background,
    /// Something has changed, or someone asks.
    Fresh,
}

impl Reason {
    /// Changes go before what was there already.
    pub fn priority(self) -> Priority {
        match self {
            Reason::Initial | Reason::Resync => Priority::Background,
            Reason::Changed
            | Reason::Written
            | Reason::Asked
            | Reason::Check
            | Reason::Retry
            | Reason::Conflict => Priority::Fresh,
        }
    }

    /// Whether something has changed, so that a key that failed before may succeed now.
    pub(super) fn ends_back_off(self) -> bool {
        matches!(self, Reason::Changed | Reason::Asked)
    }

    /// As spans name it.
    pub fn as_str(self) -> &'static str {
        match self {
            Reason::Initial => "initial",
            Reason::Resync => "resync",
            Reason::Changed => "changed",
            Reason::Written => "written",
            Reason::Asked => "asked",
            Reason::Check => "check",
            Reason::Retry => "retry",
            Reason::Conflict => "conflict",
        }
    }
}
