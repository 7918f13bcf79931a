//! Delete of a collection: all objects that a list shows.
//!
//! As in Kubernetes, they are deleted in the order of the list, and none after the first that is refused. What each delete
//! waits for is its commit on disk: so the next one goes ahead as soon as the one before is admitted, and many commits
//! share a sync.

use super::{DeleteOptions, Origin, delete_with, warn_of_orphans};
use crate::{
    answer::{self, Body},
    call::Call,
    refusal::Refusal,
    request::Match,
    selection::Selection,
    stored::Stored,
    verbs::read,
};
use bytes::Bytes;
use futures::{StreamExt, stream};
use http::Response;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use tokio::sync::oneshot;

/// How many deletes are under way at once.
const PARALLEL: usize = 64;

pub(crate) async fn delete_collection(call: &Call, body: Bytes) -> Result<Response<Body>, Refusal> {
    let mut call = call.clone();
    read::check_options(&call)?;
    let selection = Selection::new(&call)?;
    let options = DeleteOptions::read(&mut call, &body)?;
    warn_of_orphans(&call, &options);
    // Kubernetes: it lists in pages, and a list with a limit is of exactly the given resourceVersion.
    call.options.version_match.get_or_insert(Match::Exact);
    let (meta, objects) = read::collect(&call, &selection).await?;
    let mut turn = DeleteTurn::default();
    let turns: Vec<DeleteTurn> = objects.iter().map(|_| turn.followed()).collect();
    let is_refused = AtomicBool::new(false);
    let delete = async |(stored, turn): (&Stored, DeleteTurn)| {
        if is_refused.load(Relaxed) {
            return Ok(());
        }
        // An object that is gone by now counts as deleted.
        let one = call.for_object(&stored.value()?);
        delete_with(&one, &options, Origin::Delete, turn).await.map(drop)
    };
    let mut deletes = stream::iter(objects.iter().zip(turns)).map(delete).buffered(PARALLEL);
    let mut outcome = Ok(());
    // What has begun ends, also after a refusal.
    while let Some(deleted) = deletes.next().await {
        is_refused.fetch_or(deleted.is_err(), Relaxed);
        outcome = outcome.and(deleted);
    }
    drop(deletes);
    outcome?;
    answer::list(&call, &meta, objects).await
}

/// When a delete may be admitted: after those before it. The default needs not wait.
#[derive(Debug, Default)]
pub(in crate::verbs) struct DeleteTurn {
    before: Option<oneshot::Receiver<()>>,
    after: Option<oneshot::Sender<()>>,
}

impl DeleteTurn {
    /// This turn, with another after it, which takes its place.
    fn followed(&mut self) -> DeleteTurn {
        let (after, before) = oneshot::channel();
        let first = DeleteTurn { before: self.before.take(), after: Some(after) };
        self.before = Some(before);
        first
    }

    /// Waits until all before it are admitted.
    pub(super) async fn come(&mut self) -> Result<(), Refusal> {
        match self.before.take() {
            // The client gets the refusal before this one.
            Some(before) => {
                before.await.map_err(|_| Refusal::internal_error("a delete before this one was refused"))
            }
            None => Ok(()),
        }
    }

    /// Lets the next one come.
    pub(super) fn pass(&mut self) {
        if let Some(after) = self.after.take() {
            // None waits after the last one.
            after.send(()).ok();
        }
    }
}
