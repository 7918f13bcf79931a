//! How many watches are told of a write, counted while they live.

use super::Fair;
use crate::{Body, Inner, authorize::OnResource};
use bytes::Bytes;
use http::Response;
use http_body::{Frame, SizeHint};
use http_body_util::BodyExt;
use std::{
    collections::HashMap,
    convert::Infallible,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll},
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
        response.map(|body| Lasting { body, _watch: self }.boxed_unsync())
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

struct Lasting {
    body: Body,
    _watch: Watch,
}

impl http_body::Body for Lasting {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
