//! The body of a watch: counts its events, and the request when it ends.

use super::{Histogram, Measured};
use crate::{Body, Inner};
use bytes::Bytes;
use http_body::{Frame, SizeHint};
use http_body_util::BodyExt;
use std::{
    convert::Infallible,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    task::{Context, Poll},
};
use world::Moment;

// Kubernetes: the bounds of its histogram.
const SIZES: [f64; 8] = [1024.0, 2048.0, 4096.0, 8192.0, 16384.0, 32768.0, 65536.0, 131072.0];

/// The events of all watches of a resource.
#[derive(Debug)]
pub(super) struct Events {
    pub(super) count: AtomicU64,
    pub(super) sizes: Histogram,
}

impl Default for Events {
    fn default() -> Events {
        Events { count: AtomicU64::new(0), sizes: Histogram::new(&SIZES) }
    }
}

pub(super) struct WatchedBody {
    body: Body,
    inner: Arc<Inner>,
    measured: Arc<Measured>,
    events: Arc<Events>,
    since: Moment,
}

impl WatchedBody {
    pub(super) fn body(
        body: Body,
        inner: &Arc<Inner>,
        measured: Arc<Measured>,
        events: Arc<Events>,
        since: Moment,
    ) -> Body {
        measured.long_running.fetch_add(1, Relaxed);
        WatchedBody { body, inner: Arc::clone(inner), measured, events, since }.boxed_unsync()
    }
}

impl http_body::Body for WatchedBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let frame = Pin::new(&mut self.body).poll_frame(context);
        // Each event is one frame.
        if let Poll::Ready(Some(Ok(frame))) = &frame
            && let Some(event) = frame.data_ref()
        {
            self.events.count.fetch_add(1, Relaxed);
            self.events.sizes.observe(event.len() as f64);
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for WatchedBody {
    fn drop(&mut self) {
        self.measured.long_running.fetch_sub(1, Relaxed);
        self.measured.count(200, self.inner.world.now().since(self.since).as_secs_f64());
    }
}
