//! Fills an empty cluster from a backup. The cluster assigns its own revisions.

use super::Etcd;
use crate::{Batch, Error, MAX_BATCH_BYTES, MAX_BATCH_WRITES, Range, Revision, snapshot};
use std::path::Path;

impl Etcd {
    /// Writes the entries of a backup of any store to an empty cluster. Revisions are the cluster's own;
    /// returns the last.
    pub async fn restore(&self, backup: &Path) -> Result<Revision, Error> {
        let path = backup.to_owned();
        // A first pass verifies the backup, a second one loads it.
        let verified = self.world.blocking({
            let path = path.clone();
            move || snapshot::read_file(&path)?.1.try_for_each(|entry| entry.map(drop))
        });
        verified.await?;
        if !self.range(Range::all().limit(1)).await?.entries.is_empty() {
            return Err(Error::Invalid("a backup is restored into an empty cluster only"));
        }
        let (_, entries) = snapshot::read_file(&path)?;
        let mut batch = Batch::new();
        for entry in entries {
            let entry = entry?;
            let size = batch.size() + entry.key.len() + entry.value.len();
            if size > MAX_BATCH_BYTES || batch.writes().len() == MAX_BATCH_WRITES {
                self.commit(std::mem::take(&mut batch)).await?;
            }
            batch = batch.create(entry.key, entry.value);
        }
        self.commit(batch).await
    }
}
