//! Why a key is to be looked at, and how soon that makes it.

/// Why a key came into the queue. Reconciles never see it: it orders the work and labels its span.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// The object was there when the watch began.
    Initial,
    /// Nothing has changed; everything is looked at again now and then.
    Resync,
    /// The object, or one that it stands for, has changed.
    Changed,
    /// The same, by a write of this very process: no reason to think that a failure has passed.
    Written,
    /// Somebody asks for it: a timer, a stream, a person.
    Asked,
    /// An earlier reconcile wanted to look again.
    Check,
    /// An earlier reconcile failed.
    Retry,
    /// An earlier reconcile met somebody faster.
    Conflict,
}

/// What is fresh goes first, though not for ever: see [`Pace::fresh_in_a_row`](super::Pace::fresh_in_a_row).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Priority {
    Background,
    Fresh,
}

impl Why {
    pub fn priority(self) -> Priority {
        match self {
            Why::Initial | Why::Resync => Priority::Background,
            Why::Changed | Why::Written | Why::Asked | Why::Check | Why::Retry | Why::Conflict => {
                Priority::Fresh
            }
        }
    }

    /// Something new is known, so what failed before may do better now.
    pub(super) fn is_news(self) -> bool {
        matches!(self, Why::Changed | Why::Asked)
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Why::Initial => "initial",
            Why::Resync => "resync",
            Why::Changed => "changed",
            Why::Written => "written",
            Why::Asked => "asked",
            Why::Check => "check",
            Why::Retry => "retry",
            Why::Conflict => "conflict",
        }
    }
}
