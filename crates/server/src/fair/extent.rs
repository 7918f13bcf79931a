//! Number and size of a resource's objects: counted on demand, at most once a minute.

use super::width::ListExtent;
use crate::{Inner, request::Target};
use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use store::Range;

/// How long a count is used.
// Kubernetes: as often as it counts.
const GOOD_FOR: Duration = Duration::from_secs(60);
/// Objects whose average size is taken for that of all.
const SAMPLE: usize = 16;
/// Limit on the cached resources; only definitions created and deleted endlessly reach it.
const MAX_KNOWN: usize = 5000;

/// By the prefix of the resource's keys.
#[derive(Debug, Default)]
pub(super) struct Extents(Mutex<HashMap<String, CachedExtent>>);

#[derive(Clone, Copy, Debug)]
struct CachedExtent {
    extent: ListExtent,
    until: Duration,
}

impl Extents {
    /// `None` if the resource is not served or cannot be counted.
    pub(super) async fn of(&self, inner: &Inner, target: &Target, now: Duration) -> Option<ListExtent> {
        let store = inner.store.as_ref();
        let served = inner.registry.served(store, &target.group, &target.version, &target.resource).await;
        let prefix = served.ok().flatten().filter(|served| served.stored.is_some())?.prefix("");
        let known = self.lock().get(&prefix).copied();
        if let Some(known) = known.filter(|known| known.until > now) {
            return Some(known.extent);
        }
        // Concurrent requests use the old count: one count at a time is enough.
        let old = known.map(|known| known.extent).unwrap_or_default();
        self.put(&prefix, old, now);
        let objects = store.count(Range::prefix(prefix.clone())).await.ok()?;
        let page = store.range(Range::prefix(prefix.clone()).limit(SAMPLE)).await.ok()?;
        let bytes: u64 = page.entries.iter().map(|entry| entry.value.len() as u64).sum();
        let extent = ListExtent { objects, size: bytes / page.entries.len().max(1) as u64 };
        self.put(&prefix, extent, now);
        Some(extent)
    }

    fn put(&self, prefix: &str, extent: ListExtent, now: Duration) {
        let mut known = self.lock();
        if known.len() >= MAX_KNOWN {
            known.clear();
        }
        known.insert(prefix.to_owned(), CachedExtent { extent, until: now + GOOD_FOR });
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, CachedExtent>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
