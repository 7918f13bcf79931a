//! Sending a large response: its request keeps its seat until the client has read it, or its time is up.
//!
//! Otherwise a client that requests much and reads little could hold any number of responses in memory.

use super::Seat;
use crate::Body;
use bytes::Bytes;
use http::{Response, header};
use http_body::{Body as _, Frame, SizeHint};
use http_body_util::BodyExt;
use std::{
    convert::Infallible,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll},
    time::Duration,
};
use world::{Moment, Task, World};

/// Smaller responses fit in the connection's buffers.
const LARGE: u64 = 16 << 10;
/// Bytes handed over at once: the connection buffers no more than this of a response that the client does
/// not read.
const PIECE: usize = 64 << 10;
/// A response that takes longer is cut off.
// Kubernetes: --request-timeout ends the writing of an answer, too.
const TIME: Duration = Duration::from_secs(60);
/// A client that reads nothing for this long is cut off while other requests wait for the seat.
const STALL: Duration = Duration::from_secs(5);

struct Sending {
    rest: Arc<Mutex<Option<Rest>>>,
    /// Cuts the response off, unless it ends before.
    _timer: Task<()>,
    world: World,
}

/// The rest of a response and its seat.
struct Rest {
    body: Body,
    piece: Bytes,
    /// When the client last read something.
    taken: Moment,
    seat: Seat,
}

/// Sends a response; a large one holds its seat.
pub(super) fn send(seat: Seat, response: Response<Body>) -> Response<Body> {
    let is_large = match response.body().size_hint().exact() {
        Some(size) => size >= LARGE,
        // Compressed ones are large. Other bodies of unknown length (watches) last as long as their clients
        // want.
        None => response.headers().contains_key(header::CONTENT_ENCODING),
    };
    if !is_large {
        return response;
    }
    let world = seat.inner.world.clone();
    response.map(|body| {
        let rest = Rest { body, piece: Bytes::new(), taken: world.now(), seat };
        let rest = Arc::new(Mutex::new(Some(rest)));
        let _timer = world.spawn("an answer is cut off", cut_off(world.clone(), Arc::clone(&rest)));
        Sending { rest, _timer, world }.boxed_unsync()
    })
}

/// Drops a response that the client does not read, when its seat is wanted or its time is up.
async fn cut_off(world: World, rest: Arc<Mutex<Option<Rest>>>) {
    let begun = world.now();
    loop {
        world.sleep(STALL).await;
        let now = world.now();
        // Dropped after the lock is released: it releases the seat.
        let _late = {
            let mut place = lock(&rest);
            let Some(rest) = place.as_ref() else { return };
            let is_late =
                now.since(begun) >= TIME || (now.since(rest.taken) >= STALL && rest.seat.is_wanted());
            if is_late { place.take() } else { None }
        };
    }
}

fn lock(rest: &Mutex<Option<Rest>>) -> MutexGuard<'_, Option<Rest>> {
    rest.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Rest {
    fn size_hint(&self) -> SizeHint {
        let piece = self.piece.len() as u64;
        match self.body.size_hint().exact() {
            Some(size) => SizeHint::with_exact(piece + size),
            None => SizeHint::new(),
        }
    }
}

impl http_body::Body for Sending {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let mut place = lock(&self.rest);
        let Some(rest) = place.as_mut() else { return Poll::Ready(None) };
        while rest.piece.is_empty() {
            match Pin::new(&mut rest.body).poll_frame(context) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(None) => {
                    drop(place.take());
                    return Poll::Ready(None);
                }
                Poll::Ready(Some(Ok(frame))) => match frame.into_data() {
                    Ok(data) => rest.piece = data,
                    Err(trailers) => return Poll::Ready(Some(Ok(trailers))),
                },
            }
        }
        rest.taken = self.world.now();
        let size = rest.piece.len().min(PIECE);
        let data = rest.piece.split_to(size);
        if rest.piece.is_empty() && rest.body.is_end_stream() {
            drop(place.take());
        }
        Poll::Ready(Some(Ok(Frame::data(data))))
    }

    fn is_end_stream(&self) -> bool {
        lock(&self.rest).is_none()
    }

    fn size_hint(&self) -> SizeHint {
        lock(&self.rest).as_ref().map_or_else(|| SizeHint::with_exact(0), Rest::size_hint)
    }
}
