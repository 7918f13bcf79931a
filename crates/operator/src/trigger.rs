//! From a changed object to the keys that deserve a look. The event stops here.

use crate::{
    Key,
    cache::{Cause, Change, View},
    predicate::Predicate,
    queue::{Queue, Why},
};
use kube::Resource;
use serde::de::DeserializeOwned;
use std::sync::Arc;

/// Which keys a change concerns.
pub(crate) type Mapping = Arc<dyn Fn(&Change<'_>) -> Vec<Key> + Send + Sync>;

/// Carries what changes in `view` into `queue`.
pub(crate) fn connect<K>(view: &View<K>, predicate: Option<Predicate>, mapping: Mapping, queue: &Queue) {
    let queue = queue.clone();
    view.subscribe(Arc::new(move |change: &Change<'_>| {
        // A resync is a second look at everything: no predicate may hide from it.
        let counts = change.cause == Cause::Resync || predicate.as_ref().is_none_or(|lets| lets.pass(change));
        if counts {
            for key in mapping(change) {
                queue.add(&key, why(change.cause));
            }
        }
    }));
}

fn why(cause: Cause) -> Why {
    match cause {
        Cause::Initial => Why::Initial,
        Cause::Resync => Why::Resync,
        Cause::Watched => Why::Changed,
        Cause::OwnWrite => Why::Written,
    }
}

/// The object itself.
pub(crate) fn itself() -> Mapping {
    Arc::new(|change| change.item().map(|item| item.key().clone()).into_iter().collect())
}

/// The object of `primary` that controls it, found by UID: a namesake of a deleted owner is not it.
pub(crate) fn owner<P: 'static>(primary: View<P>) -> Mapping {
    Arc::new(move |change| {
        let owners = [change.before, change.after].map(|item| item.and_then(|item| item.controller_uid()));
        let [before, after] = owners.map(|uid| uid.and_then(|uid| primary.key_of_uid(&uid)));
        both(before, after)
    })
}

/// What `keys` says of the object before and after the change.
pub(crate) fn mapped<K>(keys: impl Fn(&K) -> Vec<Key> + Send + Sync + 'static) -> Mapping
where
    K: Resource<DynamicType = ()> + DeserializeOwned + 'static,
{
    Arc::new(move |change| {
        let mut all: Vec<Key> = Vec::new();
        for item in [change.before, change.after].into_iter().flatten() {
            match item.decode::<K>() {
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

fn both(before: Option<Key>, after: Option<Key>) -> Vec<Key> {
    let again = before == after;
    before.into_iter().chain(after.filter(|_| !again)).collect()
}
