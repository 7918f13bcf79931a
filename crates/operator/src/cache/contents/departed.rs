//! Names that this process has sent away, and of which the watch may still tell older things.

use super::FeedId;
use foldhash::fast::FixedState;
use hashbrown::HashMap;
use std::collections::VecDeque;

/// How many are remembered. They are forgotten as the watch confirms them, so that only a watch
/// that is this many deletions behind could show one of them again for a moment.
const MOST: usize = 16_384;

/// A name is a UID or a key: there is one of this for either.
#[derive(Debug, Default)]
pub(super) struct Departed {
    by_name: HashMap<Box<str>, Departure, FixedState>,
    /// The oldest first; those that were forgotten meanwhile are skipped.
    order: VecDeque<Box<str>>,
}

#[derive(Clone, Copy, Debug)]
struct Departure {
    /// Nothing up to this version may come back; the greatest number for those that are gone for good.
    until: u64,
    feed: FeedId,
    /// The list that had begun last when it went.
    round: u64,
}

impl Departed {
    pub(super) fn add(&mut self, name: &str, until: u64, feed: FeedId, round: u64) {
        let departure = Departure { until, feed, round };
        let is_known = self.by_name.get_mut(name).map(|known| {
            known.until = known.until.max(until);
            known.round = round;
        });
        if is_known.is_some() {
            return;
        }
        while self.order.len() >= MOST {
            if let Some(oldest) = self.order.pop_front() {
                self.by_name.remove(&oldest);
            }
        }
        self.order.push_back(name.into());
        self.by_name.insert(name.into(), departure);
    }

    /// Whether this version is something older about what has departed.
    pub(super) fn hides(&self, name: &str, version: u64) -> bool {
        self.by_name.get(name).is_some_and(|departure| departure.until >= version)
    }

    /// Whether it departed before this list began.
    pub(super) fn is_before(&self, name: &str, feed: FeedId, round: u64) -> bool {
        self.by_name.get(name).is_some_and(|departure| departure.feed == feed && departure.round < round)
    }

    pub(super) fn forget(&mut self, name: &str) {
        if self.by_name.remove(name).is_some() {
            self.tidy();
        }
    }

    /// The watch has told of a removal: from here on it tells nothing older.
    pub(super) fn confirm(&mut self, name: &str, version: u64) {
        let is_told = |departure: &Departure| departure.until == u64::MAX || departure.until <= version;
        if self.by_name.get(name).is_some_and(is_told) {
            self.forget(name);
        }
    }

    /// A list that began after a departure has told all there is, so that nothing older follows.
    pub(super) fn complete(&mut self, feed: FeedId, round: u64) {
        self.by_name.retain(|_, departure| departure.feed != feed || departure.round >= round);
        self.tidy();
    }

    /// Keeps the order as short as what it orders, at a cost that is spread over many calls.
    fn tidy(&mut self) {
        if self.order.len() > 2 * self.by_name.len() + 16 {
            let by_name = &self.by_name;
            self.order.retain(|name| by_name.contains_key(name));
        }
    }
}
