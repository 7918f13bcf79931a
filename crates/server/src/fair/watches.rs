//! The number of watches that get an event for a write.

use super::Fair;
use crate::{Body, Inner, answer::Holding, authorize::OnResource};
use http::Response;
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// Watch counts by what they watch. There are never more entries than watches.
#[derive(Debug, Default)]
pub(super) struct Watches(Mutex<HashMap<WatchTarget, u64>>);

/// Group, resource, namespace and name.
type WatchTarget = [String; 4];

/// One open watch.
#[derive(Debug)]
pub(super) struct Watch {
    inner: Arc<Inner>,
    watched: WatchTarget,
}

impl Watches {
    /// The number of watches that get an event for a write.
    pub(super) fn events_for(&self, write: &OnResource<'_>) -> u64 {
        let counts = self.lock();
        let count = |namespace: &str, name: &str| {
            let key = [write.group, write.resource, namespace, name].map(str::to_owned);
            counts.get(&key).copied().unwrap_or_default()
        };
        if counts.is_empty() {
            return 0;
        }
        let mut events_for = count("", "");
        if !write.namespace.is_empty() {
            events_for += count(write.namespace, "");
        }
        if !write.name.is_empty() {
            events_for += count(write.namespace, write.name);
        }
        events_for
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<WatchTarget, u64>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Watch {
    /// `None` for a watch of one node's pods, which gets no event for most writes.
    pub(super) fn begin(inner: &Arc<Inner>, wanted: &OnResource<'_>) -> Option<Watch> {
        let node = wanted.fields.and_then(|fields| fields.required_value("spec.nodeName"));
        if wanted.resource == "pods" && node.is_some_and(|node| !node.is_empty()) {
            return None;
        }
        let watched = [wanted.group, wanted.resource, wanted.namespace, wanted.name].map(str::to_owned);
        let Fair { watches, .. } = &inner.fair;
        *watches.lock().entry(watched.clone()).or_default() += 1;
        Some(Watch { inner: Arc::clone(inner), watched })
    }

    /// Counts the watch until its response ends.
    pub(super) fn during(self, response: Response<Body>) -> Response<Body> {
        response.map(|body| Holding::boxed(body, self))
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let mut counts = self.inner.fair.watches.lock();
        if let Some(count) = counts.get_mut(&self.watched) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.watched);
            }
        }
    }
}
