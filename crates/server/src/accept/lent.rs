//! The body of a request, lent to its handler, which returns the unread rest.
//!
//! Many clients send the whole body before they read the response. If the connection were closed first,
//! they would see a broken connection instead of the error; so the rest is read and discarded, within
//! limits.

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use std::{
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll},
    time::Duration,
};
use world::World;

/// Limit on the discarded bytes: several times the largest accepted body.
const MAX_DISCARDED: usize = 16 * 1024 * 1024;
/// Limit on the time for that.
const PATIENCE: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(super) struct Lent {
    body: Option<Incoming>,
    is_over: bool,
    lender: Lender,
}

/// Gets the rest of a body back; `None` where there is no body.
#[derive(Clone, Debug)]
pub(super) struct Lender(Option<Arc<Mutex<Option<Incoming>>>>);

impl Lender {
    pub(super) fn lend(body: Incoming) -> (Lender, Lent) {
        let is_over = body.is_end_stream();
        let lender = Lender((!is_over).then(Arc::default));
        (lender.clone(), Lent { body: Some(body), is_over, lender })
    }

    /// Reads and discards the unread rest.
    pub(super) async fn finish(&self, world: &World) {
        let Some(place) = &self.0 else { return };
        let rest = place.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(mut rest) = rest else { return };
        let waste = async {
            let mut discarded = 0;
            while let Some(Ok(frame)) = rest.frame().await {
                discarded += frame.data_ref().map_or(0, Bytes::len);
                if discarded > MAX_DISCARDED {
                    return;
                }
            }
        };
        let _ = world.timeout(PATIENCE, waste).await;
    }
}

impl Body for Lent {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let Some(body) = &mut self.body else { return Poll::Ready(None) };
        let frame = Pin::new(body).poll_frame(context);
        if let Poll::Ready(None | Some(Err(_))) = frame {
            self.is_over = true;
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.is_over
    }

    fn size_hint(&self) -> SizeHint {
        self.body.as_ref().map_or_else(|| SizeHint::with_exact(0), Incoming::size_hint)
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        if let Some(place) = self.lender.0.as_ref().filter(|_| !self.is_over) {
            *place.lock().unwrap_or_else(PoisonError::into_inner) = self.body.take();
        }
    }
}
