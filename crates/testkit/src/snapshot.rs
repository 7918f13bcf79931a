//! The whole state of a cluster at one moment, and other clusters that go on from there.

use crate::{Cluster, Setup, doors::Doors};
use std::sync::Arc;
use store::Memory;
use world::World;

/// A moment to go back to. Objects are shared with the cluster, not copied.
#[derive(Clone, Debug)]
pub struct Snapshot {
    store: Arc<Memory>,
    doors: Arc<Doors>,
    signing_key: String,
}

impl Cluster {
    /// Keeps everything as it is now.
    pub async fn snapshot(&self) -> Snapshot {
        Snapshot {
            store: Arc::new(self.inner.wire.store.fork()),
            doors: Arc::clone(&self.inner.doors),
            signing_key: self.inner.signing_key.clone(),
        }
    }
}

impl Snapshot {
    /// Another cluster with the same objects, UIDs and resourceVersions. What happens in one is not
    /// seen in the other; watches begin at the moment of the snapshot, not before. Webhooks are the
    /// same, faults and trace are new.
    pub async fn fork(&self, world: &World) -> Cluster {
        let store = Arc::new(self.store.fork());
        Cluster::on(world, store, Setup::default(), Arc::clone(&self.doors), self.signing_key.clone()).await
    }
}
