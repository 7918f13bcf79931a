//! Restore and reset: take the cluster back to an earlier state.
//!
//! What differs is deleted and written again in new commits, so that resourceVersions rise and every client that watches
//! hears of it like of any change. No request is carried out meanwhile.

use super::find_snapshot;
use crate::{Cluster, problem::Problem};
use serde_json::{Value, json};
use std::{collections::BTreeMap, sync::Arc};
use store::{
    Batch, Bytes, Condition, MAX_BATCH_BYTES, MAX_BATCH_WRITES, Memory, Range, ReadStore, Store, Write,
};
use tokio::sync::oneshot;

/// The server itself may write meanwhile; then the difference is looked at again.
const MAX_ROUNDS: usize = 5;

/// How many objects a restore has changed.
#[derive(Debug, Default)]
struct Changed {
    created: usize,
    updated: usize,
    deleted: usize,
}

pub(crate) async fn restore(cluster: &Arc<Cluster>, snapshot: &str) -> Result<Value, Problem> {
    let state = find_snapshot(cluster, snapshot)?;
    go_back(cluster, state).await
}

pub(crate) async fn reset(cluster: &Arc<Cluster>) -> Result<Value, Problem> {
    let first = cluster.first().ok_or_else(|| Problem::internal("the first state was not kept"))?;
    go_back(cluster, first).await
}

/// In a task of its own: a client that leaves in the middle leaves no state in between.
async fn go_back(cluster: &Arc<Cluster>, state: Arc<Memory>) -> Result<Value, Problem> {
    let (done, is_done) = oneshot::channel();
    let task_cluster = Arc::clone(cluster);
    let work = async move { drop(done.send(write_back(&task_cluster, &state).await)) };
    cluster.real.spawn("restore", work).detach();
    is_done.await.unwrap_or_else(|_| Err(Problem::internal("the restore was interrupted")))
}

async fn write_back(cluster: &Cluster, state: &Memory) -> Result<Value, Problem> {
    let _steering = cluster.steering.lock().await;
    let _closed = cluster.transport.close().await;
    let mut changed = Changed::default();
    for _ in 0..MAX_ROUNDS {
        let difference = Difference::between(&*cluster.store, state).await?;
        if difference.is_empty() {
            break;
        }
        changed.created += difference.created.len() - difference.replaced;
        changed.updated += difference.updated.len() + difference.replaced;
        changed.deleted += difference.deleted.len() - difference.replaced;
        for writes in [difference.deleted, difference.updated, difference.created] {
            commit(&*cluster.store, writes).await?;
        }
    }
    let revision = cluster.store.revision().await.map_err(Problem::of_store)?;
    let Changed { created, updated, deleted } = changed;
    Ok(json!({"revision": revision.0, "created": created, "updated": updated, "deleted": deleted}))
}

/// The writes that make one state of another.
#[derive(Debug, Default)]
struct Difference {
    deleted: Vec<Write>,
    updated: Vec<Write>,
    created: Vec<Write>,
    /// Objects under the same name with another UID: deleted and created.
    replaced: usize,
}

impl Difference {
    async fn between(from: &dyn Store, to: &Memory) -> Result<Difference, Problem> {
        let now = from.range(Range::all()).await.map_err(Problem::of_store)?;
        let then = to.range(Range::all()).await.map_err(Problem::of_store)?;
        let mut then: BTreeMap<Bytes, Bytes> =
            then.entries.into_iter().map(|entry| (entry.key, entry.value)).collect();
        let mut found = Difference::default();
        for entry in now.entries {
            match then.remove(&entry.key) {
                Some(value) if value == entry.value => {}
                Some(value) if uid(&value) == uid(&entry.value) => found.updated.push(put(entry.key, value)),
                Some(value) => {
                    found.replaced += 1;
                    found.deleted.push(remove(entry.key.clone()));
                    found.created.push(put(entry.key, value));
                }
                None => found.deleted.push(remove(entry.key)),
            }
        }
        found.created.extend(then.into_iter().map(|(key, value)| put(key, value)));
        Ok(found)
    }

    fn is_empty(&self) -> bool {
        self.deleted.is_empty() && self.updated.is_empty() && self.created.is_empty()
    }
}

fn put(key: Bytes, value: Bytes) -> Write {
    Write { key, value: Some(value), condition: Condition::Anything }
}

fn remove(key: Bytes) -> Write {
    Write { key, value: None, condition: Condition::Anything }
}

/// The UID of an object at rest. Not all values are objects.
fn uid(value: &[u8]) -> Option<String> {
    #[derive(serde::Deserialize)]
    struct AtRest {
        metadata: MetadataAtRest,
    }
    #[derive(serde::Deserialize)]
    struct MetadataAtRest {
        uid: String,
    }
    serde_json::from_slice::<AtRest>(value).ok().map(|object| object.metadata.uid)
}

/// Commits writes in as few batches as the store accepts.
async fn commit(store: &dyn Store, writes: Vec<Write>) -> Result<(), Problem> {
    let (mut batch, mut size) = (Batch::new(), 0);
    for write in writes {
        let bytes = write.key.len() + write.value.as_ref().map_or(0, Bytes::len);
        if batch.writes().len() == MAX_BATCH_WRITES || size + bytes > MAX_BATCH_BYTES {
            store.commit(std::mem::take(&mut batch)).await.map_err(Problem::of_store)?;
            size = 0;
        }
        size += bytes;
        batch = batch.with(write);
    }
    if !batch.writes().is_empty() {
        store.commit(batch).await.map_err(Problem::of_store)?;
    }
    Ok(())
}
