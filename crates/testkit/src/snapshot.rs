//! Snapshots of a cluster, and clusters that start from one.

use crate::{Cluster, Setup, webhooks::WebhookHandlers};
use std::sync::Arc;
use store::Memory;
use world::World;

/// The state of a cluster at one moment. Objects are shared with the cluster, not copied.
///
/// ```
/// use k8s_openapi::api::core::v1::ConfigMap;
///
/// testkit::run(|cluster| async move {
///     cluster.apply("{apiVersion: v1, kind: ConfigMap, metadata: {name: web}}").await;
///     let fork = cluster.snapshot().await.fork(cluster.world()).await;
///     fork.delete::<ConfigMap>("default", "web").await;
///     assert!(cluster.find::<ConfigMap>("default", "web").await.is_some(), "each goes its own way");
/// });
/// ```
#[derive(Clone, Debug)]
pub struct Snapshot {
    store: Arc<Memory>,
    webhooks: Arc<WebhookHandlers>,
    setup: Setup,
}

impl Cluster {
    /// Takes a snapshot.
    pub async fn snapshot(&self) -> Snapshot {
        Snapshot {
            store: Arc::new(self.inner.store.fork()),
            webhooks: Arc::clone(&self.inner.webhooks),
            setup: self.inner.setup.clone(),
        }
    }
}

impl Snapshot {
    /// Starts another cluster with the same objects, UIDs and resourceVersions. Changes in one are not in the
    /// other. Its history is the same, so watches can start before the snapshot. Settings and webhooks are the
    /// same; there are no faults, and the trace is empty.
    pub async fn fork(&self, world: &World) -> Cluster {
        let store = Arc::new(self.store.fork());
        Cluster::on(world, store, self.setup.clone(), Arc::clone(&self.webhooks)).await
    }
}
