//! Turns groups of batches into durable commits, one sync for each group.

use super::{
    disk::Disk,
    frame::FrameBuilder,
    log::{Catalog, Log},
    recover::Recovered,
};
use crate::{
    Batch, Commit, Error, Revision,
    tree::{Overlay, Tree},
    versions::Version,
};
use std::sync::Arc;

#[derive(Debug)]
pub(crate) struct Engine {
    tree: Arc<Tree>,
    log: Log,
    catalog: Arc<Catalog>,
    buffer: Vec<u8>,
}

impl Engine {
    pub(crate) fn new(disk: Arc<dyn Disk>, recovered: Recovered, segment_bytes: u64, seed: u64) -> Engine {
        let Recovered { tree, catalog, current, .. } = recovered;
        let log = Log::new(disk, Arc::clone(&catalog), current, segment_bytes, seed);
        Engine { tree, log, catalog, buffer: Vec::new() }
    }

    pub(crate) fn tree(&self) -> &Arc<Tree> {
        &self.tree
    }

    pub(crate) fn catalog(&self) -> &Arc<Catalog> {
        &self.catalog
    }

    /// Whether a checkpoint would free at least as much as it must write, and more than a segment. So the
    /// disk holds a small multiple of the live data, and each byte is rewritten once on average.
    pub(crate) fn is_checkpoint_due(&self) -> bool {
        let dead = self.catalog.dead_bytes(self.tree.window().floor());
        dead >= self.log.segment_bytes().max(self.tree.live_bytes())
    }

    /// Commits each batch on its own, in order, and makes all of them durable at once. No reader
    /// sees any of them before that.
    pub(crate) fn commit<'a>(
        &mut self,
        batches: impl Iterator<Item = &'a Batch>,
    ) -> Vec<Result<Revision, Error>> {
        let mut latest = self.tree.revision();
        let mut frame = FrameBuilder::new(std::mem::take(&mut self.buffer), latest.next());
        let mut overlay = Overlay::new();
        let mut commits = Vec::new();
        let mut answers = Vec::new();
        let mut live = self.tree.live_bytes();
        for batch in batches {
            let changes = self.tree.changes_of(batch, &overlay).map_err(Error::from);
            let changes = changes.and_then(|changes| {
                live = self.tree.limits().check_growth(live, &changes)?;
                Ok(changes)
            });
            let changes = match changes {
                Ok(changes) => changes,
                Err(refusal) => {
                    answers.push(Err(refusal));
                    continue;
                }
            };
            if !changes.is_empty() {
                latest = latest.next();
                frame.push(&changes);
                for change in &changes {
                    let version = Version { revision: latest, value: change.value.clone() };
                    overlay.insert(change.key.clone(), version);
                }
                commits.push(Commit { revision: latest, changes });
            }
            answers.push(Ok(latest));
        }
        if !frame.is_empty() {
            match self.log.append(&mut frame) {
                Ok(()) => self.tree.apply(commits),
                // Conflicts too: they may be with a batch that has just been lost.
                Err(failure) => answers.iter_mut().for_each(|answer| *answer = Err(failure.clone().into())),
            }
        }
        self.buffer = frame.into_buffer();
        answers
    }

    /// Marks the end of the log, so that damage to its last commit can be told from a torn write.
    pub(crate) fn close(&mut self) {
        if self.log.is_begun() {
            let mut end = FrameBuilder::new(std::mem::take(&mut self.buffer), self.tree.revision().next());
            // Without the mark the log is as after a crash, which recovery handles.
            drop(self.log.append(&mut end));
        }
    }
}
