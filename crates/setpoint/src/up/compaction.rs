//! Compacts the store from time to time, as API servers do with etcd.

use std::{sync::Arc, time::Duration};
use store::Store;
use world::World;

/// Reads and continued lists from before the last interval but one get 410; the etcd store compacts by
/// itself.
pub(crate) async fn compact_from_time_to_time(world: World, store: Arc<dyn Store>, interval: Duration) {
    let mut floor = None;
    loop {
        if let Some(floor) = floor
            && let Err(error) = store.compact(floor).await
        {
            tracing::warn!(error = &error as &dyn std::error::Error, "compaction of the store failed");
        }
        floor = store.revision().await.ok();
        world.sleep(interval).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use store::{Batch, Error, Memory};

    #[test]
    fn versions_older_than_two_intervals_are_dropped() {
        world::simulate(1, |world| async move {
            let store: Arc<dyn Store> = Arc::new(Memory::new());
            let interval = Duration::from_secs(300);
            let forget = compact_from_time_to_time(world.clone(), Arc::clone(&store), interval);
            let _task = world.spawn("forgets", forget);
            let first = store.commit(Batch::new().put("/a", "1")).await.unwrap();
            let second = store.commit(Batch::new().put("/a", "2")).await.unwrap();
            world.sleep(interval / 2).await;
            store.get("/a".into(), Some(first)).await.unwrap();
            world.sleep(interval * 2).await;
            let read = store.get("/a".into(), Some(first)).await;
            assert!(matches!(read, Err(Error::Compacted { .. })), "{read:?}");
            store.get("/a".into(), Some(second)).await.unwrap();
        })
        .unwrap();
    }
}
