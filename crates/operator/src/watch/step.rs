//! What a watch does next: a function of where it stands and of what has just happened.

use std::time::Duration;

/// Where a watch stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct State {
    phase: Phase,
    /// Whether the server can send a list as events. Believed until it says no.
    streams_lists: bool,
    /// Whether this answer has brought anything.
    has_heard: bool,
    /// How often in a row nothing came of it.
    failures: u32,
    /// How often in a row a list of pages expired before its end.
    expired_lists: u32,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Phase {
    /// A list comes as events.
    Streaming,
    /// A list comes in pages.
    Paging { next: Option<String> },
    /// Everything up to `version` was told.
    Following { version: u64 },
}

/// What to ask the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Ask {
    Stream,
    Page { next: Option<String>, is_whole: bool },
    Follow { version: u64 },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Happening {
    Object {
        version: u64,
        is_removed: bool,
    },
    Bookmark {
        version: u64,
        ends_list: bool,
    },
    /// A page was read, and its objects told.
    Page {
        version: u64,
        next: Option<String>,
    },
    /// The server said no, at once or in the middle.
    Refused(Refusal),
    /// The server ended its answer as it should.
    Ended,
    /// The connection broke, or the answer makes no sense.
    Lost,
    /// The connection is there, but nothing comes.
    Silent,
    /// The list was complete, but older than what was told before it.
    Backwards,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) code: u16,
    pub(crate) message: String,
    pub(crate) retry_after: Duration,
}

/// What the listener should hear of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tell {
    Listed,
    Changed,
    Removed,
    Complete(u64),
    Reached(u64),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Then {
    /// Read on.
    Read,
    /// Ask anew, after a pause that grows with the failures and is no shorter than this.
    Ask { least: Duration },
}

/// After so many lists of pages that expired half-way, the list is asked for in one piece.
const MOST_EXPIRED_LISTS: u32 = 2;

/// What a server that lags behind gets to catch up.
const LAG: Duration = Duration::from_secs(1);

/// A server may ask for patience, but not for more than this.
const MOST_PATIENCE: Duration = Duration::from_secs(60);

impl Ask {
    /// Whether the listener must hear that a list begins.
    pub(crate) fn begins_list(&self) -> bool {
        matches!(self, Ask::Stream | Ask::Page { next: None, .. })
    }
}

impl State {
    pub(crate) fn new() -> State {
        State {
            phase: Phase::Streaming,
            streams_lists: true,
            has_heard: false,
            failures: 0,
            expired_lists: 0,
        }
    }

    pub(crate) fn failures(&self) -> u32 {
        self.failures
    }

    /// What to ask now. Whoever asks has heard nothing yet.
    pub(crate) fn ask(&mut self) -> Ask {
        self.has_heard = false;
        match &self.phase {
            Phase::Streaming => Ask::Stream,
            Phase::Paging { next } => {
                Ask::Page { next: next.clone(), is_whole: self.expired_lists >= MOST_EXPIRED_LISTS }
            }
            Phase::Following { version } => Ask::Follow { version: *version },
        }
    }

    pub(crate) fn step(&mut self, happening: Happening) -> (Option<Tell>, Then) {
        match happening {
            Happening::Object { version, is_removed } => (self.object(version, is_removed), Then::Read),
            Happening::Bookmark { version, ends_list } => self.bookmark(version, ends_list),
            Happening::Page { version, next } => self.page(version, next),
            Happening::Refused(refusal) => (None, self.refused(&refusal)),
            Happening::Ended if self.has_heard && !self.is_listing() => (None, AT_ONCE),
            Happening::Ended | Happening::Lost => (None, self.failed()),
            Happening::Silent => (None, self.silent()),
            Happening::Backwards => {
                self.list_again();
                (None, Then::Ask { least: LAG })
            }
        }
    }

    fn object(&mut self, version: u64, is_removed: bool) -> Option<Tell> {
        self.hear();
        match &mut self.phase {
            // A list as events may already tell of changes that came while it was sent.
            Phase::Streaming if is_removed => Some(Tell::Removed),
            Phase::Streaming => Some(Tell::Listed),
            Phase::Following { version: known } => {
                *known = version.max(*known);
                Some(if is_removed { Tell::Removed } else { Tell::Changed })
            }
            Phase::Paging { .. } => None,
        }
    }

    fn bookmark(&mut self, version: u64, ends_list: bool) -> (Option<Tell>, Then) {
        self.hear();
        match &mut self.phase {
            Phase::Following { version: known } => {
                *known = version.max(*known);
                (Some(Tell::Reached(version)), Then::Read)
            }
            Phase::Streaming if ends_list => {
                self.phase = Phase::Following { version };
                (Some(Tell::Complete(version)), Then::Read)
            }
            // A server that has never heard of lists as events only follows what is new.
            Phase::Streaming | Phase::Paging { .. } => (None, self.list_in_pages()),
        }
    }

    fn page(&mut self, version: u64, next: Option<String>) -> (Option<Tell>, Then) {
        self.hear();
        match next {
            Some(next) => {
                self.phase = Phase::Paging { next: Some(next) };
                (None, AT_ONCE)
            }
            None => {
                self.expired_lists = 0;
                self.phase = Phase::Following { version };
                (Some(Tell::Complete(version)), AT_ONCE)
            }
        }
    }

    fn refused(&mut self, refusal: &Refusal) -> Then {
        // Kubernetes: a version that is too new is told as a timeout with this text.
        let is_ahead = refusal.code == 504 && refusal.message.starts_with("Too large resource version");
        match (&self.phase, refusal.code) {
            // Kubernetes: 422 where the feature is off, 400 where the parameters are unknown.
            (Phase::Streaming, 400 | 422) => return self.list_in_pages(),
            (Phase::Paging { next: Some(_) }, 410) => {
                self.expired_lists += 1;
                return self.list_again();
            }
            (Phase::Following { .. }, 410) => return self.list_again(),
            (Phase::Following { .. }, _) if is_ahead => drop(self.list_again()),
            _ => {}
        }
        self.failures += 1;
        Then::Ask { least: refusal.retry_after.min(MOST_PATIENCE) }
    }

    fn silent(&mut self) -> Then {
        // Perhaps it is a server that follows what is new without having listed.
        if self.phase == Phase::Streaming {
            return self.list_in_pages();
        }
        self.failed()
    }

    fn failed(&mut self) -> Then {
        self.failures += 1;
        AT_ONCE
    }

    /// At once, or after a short pause if the last answer has brought nothing either: a server that
    /// knows that a version is too old is well.
    fn list_again(&mut self) -> Then {
        self.failures = u32::from(!self.has_heard);
        self.phase = if self.streams_lists { Phase::Streaming } else { Phase::Paging { next: None } };
        AT_ONCE
    }

    fn list_in_pages(&mut self) -> Then {
        self.streams_lists = false;
        self.phase = Phase::Paging { next: None };
        AT_ONCE
    }

    fn hear(&mut self) {
        self.has_heard = true;
        self.failures = 0;
    }

    fn is_listing(&self) -> bool {
        matches!(self.phase, Phase::Streaming | Phase::Paging { .. })
    }
}

const AT_ONCE: Then = Then::Ask { least: Duration::ZERO };

#[cfg(test)]
mod tests;
