//! Forgets the past from time to time, as API servers have their etcd do.

use std::{sync::Arc, time::Duration};
use store::Store;
use world::World;

/// Reads and continued lists from before the last interval but one get 410; a store on etcd sees to that itself.
pub(crate) async fn forget_from_time_to_time(world: World, store: Arc<dyn Store>, interval: Duration) {
    let mut floor = None;
    loop {
        if let Some(floor) = floor
            && let Err(error) = store.compact(floor).await
        {
            tracing::warn!(error = &error as &dyn std::error::Error, "the past cannot be forgotten");
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
    fn what_is_older_than_two_intervals_is_forgotten() {
        world::simulate(1, |world| async move {
            let store: Arc<dyn Store> = Arc::new(Memory::new());
            let interval = Duration::from_secs(300);
            let forget = forget_from_time_to_time(world.clone(), Arc::clone(&store), interval);
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
