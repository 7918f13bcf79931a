//! The body of a request, lent to whoever answers it: what was not read comes back.
//!
//! Many clients send everything before they look at the answer. Hung up on in the middle, they see a broken
//! connection instead of the refusal; so what is left is read and thrown away, within limits.

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

/// What is thrown away at most: several times the largest body that is taken.
const MAX_WASTE: usize = 16 * 1024 * 1024;
/// And for how long.
const PATIENCE: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(super) struct Lent {
    body: Option<Incoming>,
    is_over: bool,
    lender: Lender,
}

/// Where the rest of a body comes back to; nowhere where there is no body.
#[derive(Clone, Debug)]
pub(super) struct Lender(Option<Arc<Mutex<Option<Incoming>>>>);

impl Lender {
    pub(super) fn lend(body: Incoming) -> (Lender, Lent) {
        let is_over = body.is_end_stream();
        let lender = Lender((!is_over).then(Arc::default));
        (lender.clone(), Lent { body: Some(body), is_over, lender })
    }

    /// Reads what nobody wanted to read.
    pub(super) async fn finish(&self, world: &World) {
        let Some(place) = &self.0 else { return };
        let rest = place.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(mut rest) = rest else { return };
        let waste = async {
            let mut wasted = 0;
            while let Some(Ok(frame)) = rest.frame().await {
                wasted += frame.data_ref().map_or(0, Bytes::len);
                if wasted > MAX_WASTE {
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
