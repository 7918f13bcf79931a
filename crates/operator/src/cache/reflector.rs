//! Starts the lists and watches that fill a store.

use crate::{
    cache::store::Store,
    watch::{self, Target},
};
use kube::Client;
use std::sync::Arc;
use world::{Task, World};

/// One reflector for each namespace of the scope, or one for all.
pub(crate) fn start(world: &World, client: &Client, store: &Arc<Store>) -> Vec<Task<()>> {
    let kind = store.kind();
    let namespaces = kind.scope.namespaces().into_iter().enumerate();
    let watches = namespaces.map(|(id, namespace)| {
        let target = Target {
            path: kind.path(namespace.as_deref()),
            label_selector: kind.scope.label_selector().to_owned(),
            field_selector: kind.scope.field_selector().to_owned(),
            metadata_only: kind.metadata_only,
        };
        let (reader, store) = (store.reader(), Arc::clone(store));
        let apply = move |update| store.apply(id, update);
        world.spawn("watch", watch::follow(world.clone(), client.clone(), target, reader, apply))
    });
    watches.collect()
}
