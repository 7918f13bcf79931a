//! A view of the objects under a prefix that is current at each look: it includes every earlier commit.
//!
//! Roles, definitions and webhook configurations are read by every request and seldom change. A view
//! follows the store's feed, and catches up at each look instead of in its own task: a look costs a lock
//! and a check of an empty queue, and nothing runs without requests.

use crate::stored::Stored;
use bytes::Bytes;
use futures::task::noop_waker;
use std::{
    sync::{Mutex, PoisonError},
    task::{Context, Poll},
};
use store::{Change, Event, Feed, Range, ReadStore};

/// Limit on the reloads within one look, each because so much was written meanwhile that the feed was cut
/// off.
const RELOADS: usize = 8;

/// Folds changes into a view. Keys are those of the store.
pub(crate) trait Fold {
    fn clear(&mut self);
    fn put(&mut self, key: &str, object: Stored);
    fn remove(&mut self, key: &str);
}

#[derive(Debug)]
pub(crate) struct Live<T> {
    prefix: Bytes,
    state: Mutex<Followed<T>>,
}

#[derive(Debug)]
struct Followed<T> {
    /// `None` before the first look, and after the feed was cut off.
    feed: Option<Feed>,
    view: T,
}

impl<T: Fold> Live<T> {
    /// A view of all objects under `prefix`, empty until the first look.
    pub(crate) fn new(prefix: impl Into<Bytes>, view: T) -> Live<T> {
        Live { prefix: prefix.into(), state: Mutex::new(Followed { feed: None, view }) }
    }

    /// Reads the current view.
    pub(crate) async fn look<R>(
        &self,
        store: &dyn ReadStore,
        read: impl Fn(&T) -> R,
    ) -> Result<R, store::Error> {
        for _ in 0..RELOADS {
            {
                let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
                if state.catch_up() {
                    return Ok(read(&state.view));
                }
            }
            Box::pin(self.reload(store)).await?;
        }
        Err(store::Error::Unavailable("changes come faster than they can be followed".to_owned()))
    }

    async fn reload(&self, store: &dyn ReadStore) -> Result<(), store::Error> {
        let page = store.range(Range::prefix(self.prefix.clone())).await?;
        let feed = store.feed(self.prefix.clone(), Some(page.revision)).await?;
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.view.clear();
        for entry in page.entries {
            state.view.put(&String::from_utf8_lossy(&entry.key), Stored::new(entry.value, entry.revision));
        }
        state.feed = Some(feed);
        Ok(())
    }
}

impl<T: Fold> Followed<T> {
    /// Applies the changes since the last look; `false` where the feed was cut off.
    fn catch_up(&mut self) -> bool {
        let waker = noop_waker();
        let mut context = Context::from_waker(&waker);
        loop {
            let Some(feed) = &mut self.feed else { return false };
            match feed.poll_next(&mut context) {
                Poll::Pending => return true,
                Poll::Ready(Ok(Event::Progress(_))) => {}
                Poll::Ready(Ok(Event::Commit(commit))) => {
                    commit.changes.iter().for_each(|change| self.take(change, commit.revision));
                }
                Poll::Ready(Err(_)) => self.feed = None,
            }
        }
    }

    fn take(&mut self, change: &Change, revision: store::Revision) {
        let key = String::from_utf8_lossy(&change.key);
        match &change.value {
            Some(value) => self.view.put(&key, Stored::new(value.clone(), revision)),
            None => self.view.remove(&key),
        }
    }
}
