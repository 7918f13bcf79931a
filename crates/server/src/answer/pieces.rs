//! A long response body, built in pieces as the client reads it: a slow client holds one piece in memory,
//! not the whole body.

use super::Body;
use bytes::{Bytes, BytesMut};
use http_body::{Frame, SizeHint};
use http_body_util::BodyExt;
use std::{
    collections::VecDeque,
    convert::Infallible,
    pin::Pin,
    task::{Context, Poll},
};

/// Bytes per frame: large enough that its overhead is small.
const PIECE: usize = 64 << 10;
/// Shared bytes of at least this length are passed on instead of copied.
const WORTH_SHARING: usize = 32 << 10;

/// The items between the first and the last bytes of a response.
pub(super) trait Items: Send + Unpin + 'static {
    fn count(&self) -> usize;
    /// The total size that [`Items::write`] writes.
    fn size(&self) -> u64;
    fn write(&mut self, at: usize, out: &mut Out);
}

/// The output of items.
#[derive(Debug, Default)]
pub(super) struct Out {
    buffer: BytesMut,
    ready: VecDeque<Bytes>,
}

impl Out {
    /// For bytes that are copied.
    pub(super) fn buffer(&mut self) -> &mut BytesMut {
        &mut self.buffer
    }

    pub(super) fn put(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// Writes bytes that the store holds in memory anyway; long ones are shared, not copied.
    pub(super) fn put_shared(&mut self, bytes: Bytes) {
        if bytes.len() < WORTH_SHARING {
            return self.put(&bytes);
        }
        self.flush();
        self.ready.push_back(bytes);
    }

    fn flush(&mut self) {
        if !self.buffer.is_empty() {
            self.ready.push_back(std::mem::take(&mut self.buffer).freeze());
        }
    }
}

/// The first bytes, the items, the last bytes.
#[derive(Debug)]
pub(super) struct Pieces<I> {
    head: Bytes,
    items: I,
    separator: &'static [u8],
    tail: Bytes,
    next: usize,
    left: u64,
    out: Out,
}

impl<I: Items> Pieces<I> {
    pub(super) fn body(
        head: impl Into<Bytes>,
        items: I,
        separator: &'static [u8],
        tail: impl Into<Bytes>,
    ) -> Body {
        let (head, tail) = (head.into(), tail.into());
        let separators = items.count().saturating_sub(1) * separator.len();
        let left = (head.len() + tail.len() + separators) as u64 + items.size();
        Pieces { head, items, separator, tail, next: 0, left, out: Out::default() }.boxed_unsync()
    }

    fn write_piece(&mut self) {
        let out = &mut self.out;
        let room = usize::try_from(self.left).unwrap_or(usize::MAX).min(PIECE + PIECE / 8);
        out.buffer.reserve(room);
        if self.next == 0 {
            out.put(&std::mem::take(&mut self.head));
        }
        while self.next < self.items.count() && out.ready.is_empty() && out.buffer.len() < PIECE {
            if self.next > 0 {
                out.put(self.separator);
            }
            self.items.write(self.next, out);
            self.next += 1;
        }
        if self.next >= self.items.count() {
            out.put(&std::mem::take(&mut self.tail));
        }
        out.flush();
    }
}

impl<I: Items> http_body::Body for Pieces<I> {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if self.left == 0 {
            return Poll::Ready(None);
        }
        if self.out.ready.is_empty() {
            self.write_piece();
        }
        let piece = self.out.ready.pop_front();
        // Should an item's second encoding be longer than the first, the response ends early.
        self.left = piece.as_ref().map_or(0, |piece| self.left.saturating_sub(piece.len() as u64));
        Poll::Ready(piece.map(|piece| Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.left == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }
}
