//! The state machine of a list and watch, without network or clock: what was received in, what the
//! cache does and what to request next out.

use super::{CacheUpdate, wire::WatchEvent};
use crate::cache::Item;
use std::{ops::ControlFlow, time::Duration};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WatchState {
    phase: Phase,
    /// Whether the server can send a list as watch events. Assumed until it refuses.
    streams_lists: bool,
    /// Whether the current request has received anything.
    has_received: bool,
    /// How many requests in a row have failed.
    failures: u32,
    /// How many paged lists in a row have expired before their last page.
    expired_lists: u32,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Phase {
    /// A list comes as watch events.
    Streaming,
    /// A list comes in pages.
    Paging { continue_token: Option<String> },
    /// The list is complete, and the cache has seen everything up to `version`.
    Watching { version: u64 },
}

/// What to request from the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Query {
    /// A watch with `sendInitialEvents=true`.
    StreamList,
    /// `is_whole` asks for all objects in one page.
    ListPage {
        continue_token: Option<String>,
        is_whole: bool,
    },
    Watch {
        from: u64,
    },
}

/// What a request has received, or how it ended.
#[derive(Debug)]
pub(crate) enum Input {
    /// [`WatchEvent::Error`] also stands for an error response to the request itself.
    Event(WatchEvent<Item>),
    /// A page was read, and its objects are in the cache.
    Page { version: u64, continue_token: Option<String> },
    /// The server closed the watch properly.
    Ended,
    /// The connection broke, or the answer cannot be read.
    ConnectionLost,
    /// The connection is open, but the server sends nothing.
    Silence,
    /// The list was complete, but older than what the cache had seen.
    StaleList,
    /// The cache asks for a new list.
    Refresh,
}

/// An error response of the API server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ApiError {
    pub(crate) code: u16,
    pub(crate) message: String,
    pub(crate) retry_after: Duration,
}

/// What the cache does, and whether the request goes on or is over. If it is over, the next one
/// comes after a pause that grows with the failures and is no shorter than this.
pub(crate) type Transition = (Option<CacheUpdate>, ControlFlow<Duration>);

const READ_ON: ControlFlow<Duration> = ControlFlow::Continue(());
const REQUEST_AGAIN: ControlFlow<Duration> = ControlFlow::Break(Duration::ZERO);

/// After so many paged lists that expired half-way, the list is requested in one page.
const MOST_EXPIRED_LISTS: u32 = 2;

/// How long a server that lags behind others gets to catch up.
const LAG: Duration = Duration::from_secs(1);

/// The longest `Retry-After` that is obeyed.
const LONGEST_RETRY_AFTER: Duration = Duration::from_secs(60);

impl Query {
    /// Whether the answer starts a list from its beginning.
    pub(crate) fn starts_list(&self) -> bool {
        matches!(self, Query::StreamList | Query::ListPage { continue_token: None, .. })
    }
}

impl WatchState {
    pub(crate) fn new() -> WatchState {
        WatchState {
            phase: Phase::Streaming,
            streams_lists: true,
            has_received: false,
            failures: 0,
            expired_lists: 0,
        }
    }

    pub(crate) fn failures(&self) -> u32 {
        self.failures
    }

    /// The next request.
    pub(crate) fn query(&mut self) -> Query {
        self.has_received = false;
        match &self.phase {
            Phase::Streaming => Query::StreamList,
            Phase::Paging { continue_token } => Query::ListPage {
                continue_token: continue_token.clone(),
                is_whole: self.expired_lists >= MOST_EXPIRED_LISTS,
            },
            Phase::Watching { version } => Query::Watch { from: *version },
        }
    }

    pub(crate) fn step(&mut self, input: Input) -> Transition {
        match input {
            Input::Event(WatchEvent::Applied(item)) => (self.object(item, false), READ_ON),
            Input::Event(WatchEvent::Deleted(item)) => (self.object(item, true), READ_ON),
            Input::Event(WatchEvent::Bookmark { version, ends_list }) => self.bookmark(version, ends_list),
            Input::Event(WatchEvent::Error(error)) => (None, self.refused(&error)),
            Input::Page { version, continue_token } => self.page(version, continue_token),
            Input::Ended if self.has_received && !self.is_listing() => (None, REQUEST_AGAIN),
            Input::Ended | Input::ConnectionLost => (None, self.failed()),
            Input::Silence => (None, self.silence()),
            Input::Refresh => (None, self.list_again()),
            Input::StaleList => {
                _ = self.list_again();
                (None, ControlFlow::Break(LAG))
            }
        }
    }

    fn object(&mut self, item: Item, is_deleted: bool) -> Option<CacheUpdate> {
        self.received();
        if let Phase::Watching { version } = &mut self.phase {
            *version = item.resource_version().max(*version);
        }
        match &self.phase {
            Phase::Paging { .. } => None,
            // A list that comes as events may include changes made while it is sent.
            Phase::Streaming | Phase::Watching { .. } if is_deleted => Some(CacheUpdate::Deleted(item)),
            Phase::Streaming => Some(CacheUpdate::Listed(item)),
            Phase::Watching { .. } => Some(CacheUpdate::Applied(item)),
        }
    }

    fn bookmark(&mut self, version: u64, ends_list: bool) -> Transition {
        self.received();
        match &mut self.phase {
            Phase::Watching { version: known } => {
                *known = version.max(*known);
                (Some(CacheUpdate::CaughtUpTo(version)), READ_ON)
            }
            Phase::Streaming if ends_list => {
                self.phase = Phase::Watching { version };
                (Some(CacheUpdate::ListComplete(version)), READ_ON)
            }
            // A server that does not know `sendInitialEvents` sends new changes only.
            Phase::Streaming | Phase::Paging { .. } => (None, self.list_in_pages()),
        }
    }

    fn page(&mut self, version: u64, continue_token: Option<String>) -> Transition {
        self.received();
        if continue_token.is_some() {
            self.phase = Phase::Paging { continue_token };
            return (None, REQUEST_AGAIN);
        }
        self.expired_lists = 0;
        self.phase = Phase::Watching { version };
        (Some(CacheUpdate::ListComplete(version)), REQUEST_AGAIN)
    }

    fn refused(&mut self, error: &ApiError) -> ControlFlow<Duration> {
        // Kubernetes: a resourceVersion from the future is refused as a timeout with this text.
        let is_ahead = error.code == 504 && error.message.starts_with("Too large resource version");
        match (&self.phase, error.code) {
            // Kubernetes: 422 where the feature is off, 400 where the parameters are unknown.
            (Phase::Streaming, 400 | 422) => return self.list_in_pages(),
            (Phase::Paging { continue_token: Some(_) }, 410) => {
                self.expired_lists += 1;
                return self.list_again();
            }
            (Phase::Watching { .. }, 410) => return self.list_again(),
            (Phase::Watching { .. }, _) if is_ahead => _ = self.list_again(),
            _ => {}
        }
        self.failures += 1;
        ControlFlow::Break(error.retry_after.min(LONGEST_RETRY_AFTER))
    }

    fn silence(&mut self) -> ControlFlow<Duration> {
        // Perhaps the server does not know `sendInitialEvents`, and nothing has changed since.
        if self.phase == Phase::Streaming {
            return self.list_in_pages();
        }
        self.failed()
    }

    fn failed(&mut self) -> ControlFlow<Duration> {
        self.failures += 1;
        REQUEST_AGAIN
    }

    /// Lists at once, or after the first pause if the last request received nothing. Earlier failures
    /// no longer count: a server that knows that a version is too old works.
    fn list_again(&mut self) -> ControlFlow<Duration> {
        self.failures = u32::from(!self.has_received);
        self.phase =
            if self.streams_lists { Phase::Streaming } else { Phase::Paging { continue_token: None } };
        REQUEST_AGAIN
    }

    fn list_in_pages(&mut self) -> ControlFlow<Duration> {
        self.streams_lists = false;
        self.phase = Phase::Paging { continue_token: None };
        REQUEST_AGAIN
    }

    fn received(&mut self) {
        self.has_received = true;
        self.failures = 0;
    }

    fn is_listing(&self) -> bool {
        matches!(self.phase, Phase::Streaming | Phase::Paging { .. })
    }
}

#[cfg(test)]
mod tests;
