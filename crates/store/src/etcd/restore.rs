//! Fills an empty cluster from a backup. The cluster counts its own revisions.

use super::Etcd;
use crate::{Batch, Error, MAX_BATCH_BYTES, MAX_BATCH_WRITES, Range, Revision, snapshot};
use std::path::Path;

impl Etcd {
    /// Writes the entries of a backup, whichever store made it, to a cluster that holds none.
    /// Revisions are the cluster's own; it ends at the one that is answered.
    pub async fn restore(&self, backup: &Path) -> Result<Revision, Error> {
        let path = backup.to_owned();
        // Once through to see that it is whole, and only then again to use it.
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
