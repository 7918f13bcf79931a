//! From the change of an object to the keys to reconcile. The change itself goes no further.

use crate::{
    Key,
    cache::{Delta, Memo, Origin, View},
    predicate::Predicate,
    queue::{Queue, Reason},
    source::Cacheable,
};
use std::sync::Arc;

/// The keys to reconcile after a change.
pub(crate) type Mapping = Arc<dyn Fn(&Delta) -> Vec<Key> + Send + Sync>;

/// Adds the keys of every change in `view` to `queue`.
pub(crate) fn connect<K>(view: &View<K>, predicate: Option<Predicate>, mapping: Mapping, queue: &Queue) {
    let queue = queue.clone();
    view.subscribe(Arc::new(move |delta: &Delta| {
        // A resync reconciles every object, whatever the predicates say.
        let is_resync = delta.origin == Origin::Resync;
        if is_resync || predicate.as_ref().is_none_or(|predicate| predicate.pass(delta)) {
            for key in mapping(delta) {
                queue.add(&key, reason(delta.origin));
            }
        }
    }));
}

fn reason(origin: Origin) -> Reason {
    match origin {
        Origin::InitialList => Reason::Initial,
        Origin::Resync => Reason::Resync,
        Origin::Watch => Reason::Changed,
        Origin::OwnWrite => Reason::Written,
    }
}

/// The object itself.
pub(crate) fn itself() -> Mapping {
    Arc::new(|delta| delta.item().map(|item| item.key().clone()).into_iter().collect())
}

/// The object of `primary` that controls it. It is found by UID: another object with the name of a
/// deleted owner does not match.
pub(crate) fn owner<P: 'static>(primary: View<P>) -> Mapping {
    Arc::new(move |delta| {
        let mut owners: Vec<Key> =
            delta.items().filter_map(|item| primary.key_of_uid(&item.controller_uid()?)).collect();
        owners.dedup();
        owners
    })
}

/// The keys that `keys` returns for the object before and after the change.
pub(crate) fn mapped<K: Cacheable>(
    memo: Arc<Memo>,
    keys: impl Fn(&K) -> Vec<Key> + Send + Sync + 'static,
) -> Mapping {
    Arc::new(move |delta| {
        let mut all: Vec<Key> = Vec::new();
        for item in delta.items() {
            match memo.get::<K>(item) {
                Ok(object) => all.extend(keys(&object)),
                Err(problem) => {
                    tracing::warn!(object = %item.key(), %problem, "an object does not fit its type");
                }
            }
        }
        all.sort();
        all.dedup();
        all
    })
}
