//! The sources of a controller while the manager connects them to its queue.

use crate::{Key, Source, cache::View, context::Views, manager::Clusters, queue::Queue, source::Cacheable};
use futures::future::{BoxFuture, FutureExt};
use k8s_openapi::api::core::v1::ObjectReference;
use kube::core::ApiResource;
use std::{any::Any, sync::Arc};
use world::{Task, World};

/// The sources of a controller while the manager connects them.
pub(crate) struct Sources {
    pub(crate) world: World,
    pub(crate) clusters: Clusters,
    pub(crate) queue: Queue,
    pub(crate) views: Views,
    /// One for each view: ends when its list is complete, with the number of objects.
    pub(crate) syncs: Vec<(String, BoxFuture<'static, usize>)>,
    pub(crate) tasks: Vec<Task<()>>,
    /// For each source of keys, all that it knows: for a queue that had no room.
    pub(crate) known: Vec<Box<dyn Fn() -> Vec<Key> + Send + Sync>>,
    primary: Option<Box<dyn Any + Send + Sync>>,
    pub(crate) reference: Option<PrimaryReference>,
    /// One for each view.
    pub(crate) sync_checks: Vec<SyncCheck>,
}

/// The kind of a source, and whether its first list is complete.
pub(crate) type SyncCheck = (String, Arc<dyn Fn() -> bool + Send + Sync>);

/// How events refer to an object of the primary kind, and in which cluster.
pub(crate) struct PrimaryReference {
    pub(crate) cluster: Option<String>,
    pub(crate) reference: Arc<dyn Fn(&Key) -> ObjectReference + Send + Sync>,
}

impl Sources {
    pub(super) fn new(world: &World, clusters: &Clusters, queue: &Queue) -> Sources {
        Sources {
            world: world.clone(),
            clusters: clusters.clone(),
            queue: queue.clone(),
            views: Views::default(),
            syncs: Vec::new(),
            tasks: Vec::new(),
            known: Vec::new(),
            primary: None,
            reference: None,
            sync_checks: Vec::new(),
        }
    }

    pub(super) fn refill_queue(&mut self) {
        let known = std::mem::take(&mut self.known);
        self.queue.refill_from(move || known.iter().flat_map(|keys| keys()).collect());
    }

    pub(super) fn open<K: Cacheable>(&mut self, source: &Source<K>) -> View<K> {
        let caches = self.clusters.get(source.cluster()).expect("the manager has checked the cluster");
        let view = source.open(caches);
        self.views.add(source.cluster(), source.kind(), &view);
        let (waiting, checked) = (view.clone(), view.clone());
        let kind = &source.kind().kind;
        let name = source.cluster().map_or_else(|| kind.clone(), |cluster| format!("{kind}-in-{cluster}"));
        self.sync_checks.push((name.clone(), Arc::new(move || checked.is_synced())));
        let synced = async move {
            waiting.synced().await;
            waiting.len()
        };
        self.syncs.push((name, synced.boxed()));
        view
    }

    pub(super) fn open_primary<P: Cacheable>(&mut self, source: &Source<P>) -> View<P> {
        let view = self.open(source);
        self.primary = Some(Box::new(view.clone()));
        let cluster = source.cluster().map(str::to_owned);
        let reference = reference(source.kind().clone(), view.clone());
        self.reference = Some(PrimaryReference { cluster, reference: Arc::new(reference) });
        view
    }

    pub(super) fn primary<P: Cacheable>(&self) -> View<P> {
        let view = self.primary.as_ref().and_then(|view| view.downcast_ref::<View<P>>());
        view.expect("the primary source is connected first").clone()
    }
}

fn reference<K: Cacheable>(kind: ApiResource, view: View<K>) -> impl Fn(&Key) -> ObjectReference {
    move |key| ObjectReference {
        api_version: Some(kind.api_version.clone()),
        kind: Some(kind.kind.clone()),
        namespace: key.namespace().map(str::to_owned),
        name: Some(key.name().to_owned()),
        uid: view.item(key).map(|item| item.uid().to_owned()),
        ..ObjectReference::default()
    }
}
