//! Connects a store with the watches that fill it.

use crate::{
    cache::{contents::FeedId, store::Store},
    watch::{self, Heard, News, Wanted},
};
use kube::Client;
use std::sync::Arc;
use world::{Task, World};

/// One watch for each namespace of the scope, or one for all.
pub(crate) fn start(world: &World, client: &Client, store: &Arc<Store>) -> Vec<Task<()>> {
    let subject = store.subject();
    let namespaces = subject.scope.feeds().into_iter().enumerate();
    let watches = namespaces.map(|(feed, namespace)| {
        let wanted = Wanted {
            path: subject.path(namespace.as_deref()),
            labels: subject.scope.labels().to_owned(),
            fields: subject.scope.fields().to_owned(),
            metadata_only: subject.metadata_only,
        };
        let (reader, store) = (store.reader(), Arc::clone(store));
        let watch = watch::follow(world.clone(), client.clone(), wanted, reader, move |news| {
            hear(&store, feed, news)
        });
        world.spawn("watch", watch)
    });
    watches.collect()
}

fn hear(store: &Store, feed: FeedId, news: News) -> Heard {
    match news {
        News::Began => store.told(feed, |contents| {
            contents.begin(feed);
            Vec::new()
        }),
        News::Listed(item) => store.told(feed, |contents| contents.put(feed, item)),
        News::Changed(item) => store.told(feed, |contents| {
            let version = item.resource_version();
            let moved = contents.put(feed, item);
            contents.reach(feed, version);
            moved
        }),
        News::Removed(item) => store.told(feed, |contents| {
            let moved = contents.remove(&item);
            contents.reach(feed, item.resource_version());
            moved
        }),
        News::Reached(version) => store.told(feed, |contents| {
            contents.reach(feed, version);
            Vec::new()
        }),
        News::Complete(version) => {
            if store.complete(feed, version).is_err() {
                return Heard::Backwards;
            }
        }
    }
    Heard::Understood
}
