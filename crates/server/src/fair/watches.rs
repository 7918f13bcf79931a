//! How many watches are told of a write, counted while they live.

use super::Fair;
use crate::{Body, Inner, answer::Holding, authorize::OnResource};
use http::Response;
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// Watches by what they watch. There are never more entries than watches.
#[derive(Debug, Default)]
pub(super) struct Watches(Mutex<HashMap<Watched, u64>>);

/// Group, resource, namespace and name.
type Watched = [String; 4];

/// One watch, for as long as it lives.
#[derive(Debug)]
pub(super) struct Watch {
    inner: Arc<Inner>,
    watched: Watched,
}

impl Watches {
    /// Those that are told of a write.
    pub(super) fn told(&self, write: &OnResource<'_>) -> u64 {
        let counts = self.lock();
        let count = |namespace: &str, name: &str| {
            let key = [write.group, write.resource, namespace, name].map(str::to_owned);
            counts.get(&key).copied().unwrap_or_default()
        };
        if counts.is_empty() {
            return 0;
        }
        let mut told = count("", "");
        if !write.namespace.is_empty() {
            told += count(write.namespace, "");
        }
        if !write.name.is_empty() {
            told += count(write.namespace, write.name);
        }
        told
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Watched, u64>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Watch {
    /// `None` for one that is not told of most writes, because it asks for the pods of one node.
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

    /// Counts it until its answer is over.
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
