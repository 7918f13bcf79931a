//! Starts the lists and watches that fill a store.

use crate::{
    cache::store::Store,
    watch::{self, Target},
};
use kube::Client;
use std::sync::Arc;
use world::watch::Receiver;
use world::{Task, World};

/// One reflector for each namespace of the scope, or one for all. They wait until `may_start` is true.
pub(crate) fn start(
    world: &World,
    client: &Client,
    store: &Arc<Store>,
    may_start: &Receiver<bool>,
) -> Vec<Task<()>> {
    let kind = store.kind();
    let namespaces = kind.scope.namespaces().into_iter().enumerate();
    let watches = namespaces.map(|(id, namespace)| {
        let target = Target {
            path: kind.path(namespace.as_deref()),
            label_selector: kind.scope.label_selector().to_owned(),
            field_selector: kind.scope.field_selector().to_owned(),
            metadata_only: kind.metadata_only,
        };
        let (reader, refreshes, store) = (store.reader(), store.refreshes(), Arc::clone(store));
        let apply = move |update| store.apply(id, update);
        let watch = watch::follow(world.clone(), client.clone(), target, reader, refreshes, apply);
        let mut may_start = may_start.clone();
        world.spawn("watch", async move {
            if may_start.wait_for(|may_start| *may_start).await.is_ok() {
                watch.await;
            }
        })
    });
    watches.collect()
}
