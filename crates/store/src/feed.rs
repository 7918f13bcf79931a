//! Follows the commits under a prefix, in order, without gaps or duplicates.

use crate::{
    Commit, Error, Revision,
    window::{Reader, Taken, Window},
};
use bytes::Bytes;
use std::{
    collections::VecDeque,
    future::poll_fn,
    sync::Arc,
    task::{Context, Poll},
};

/// A position in the stream of commits. Dropping it ends the feed.
#[derive(Debug)]
pub struct Feed {
    window: Arc<Window>,
    reader: Arc<Reader>,
    inbox: VecDeque<Arc<Commit>>,
    mark: Option<Revision>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The changes under the prefix that one commit made; never a part of them.
    Commit(Arc<Commit>),
    /// The feed has delivered everything up to this revision.
    Progress(Revision),
}

impl Feed {
    pub(crate) fn join(window: &Arc<Window>, prefix: Bytes, since: Option<Revision>) -> Result<Feed, Error> {
        let reader = window.join(prefix, since)?;
        Ok(Feed { window: Arc::clone(window), reader, inbox: VecDeque::new(), mark: None })
    }

    /// Requests one [`Event::Progress`] as soon as everything up to `revision` has been delivered.
    pub fn mark(&mut self, revision: Revision) {
        self.mark = self.mark.max(Some(revision));
        self.window.expect(&self.reader, revision);
    }

    /// The next event. After an error the feed is over.
    pub async fn next(&mut self) -> Result<Event, Error> {
        poll_fn(|context| self.poll_next(context)).await
    }

    /// [`Feed::next`] as a poll function.
    pub fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Result<Event, Error>> {
        loop {
            if let Some(commit) = self.inbox.pop_front() {
                return Poll::Ready(Ok(Event::Commit(commit)));
            }
            match self.window.take(&self.reader, &mut self.inbox, context.waker())? {
                Taken::Some => {}
                Taken::Nothing { seen } if self.mark.is_some_and(|mark| mark <= seen) => {
                    self.mark = None;
                    return Poll::Ready(Ok(Event::Progress(seen)));
                }
                Taken::Nothing { .. } => return Poll::Pending,
            }
        }
    }
}

impl Drop for Feed {
    fn drop(&mut self) {
        self.window.leave(&self.reader);
    }
}
