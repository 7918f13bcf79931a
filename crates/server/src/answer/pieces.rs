//! A long response body, built piece by piece as the client reads it: a slow client holds one piece in memory, not the
//! whole body.

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

/// About how much is written at once: large enough that the parts around it cost little.
const PIECE: usize = 64 << 10;
/// Bytes that lie somewhere already are handed on instead of copied if they are at least so many.
const WORTH_SHARING: usize = 32 << 10;

/// What stands between the first and the last bytes of an answer, one after the other.
pub(super) trait Items: Send + Unpin + 'static {
    fn count(&self) -> usize;
    /// The bytes that [`Items::write`] writes for all of them.
    fn size(&self) -> u64;
    fn write(&mut self, at: usize, out: &mut Out);
}

/// Where items are written to.
#[derive(Debug, Default)]
pub(super) struct Out {
    buffer: BytesMut,
    ready: VecDeque<Bytes>,
}

impl Out {
    /// What is written is copied here.
    pub(super) fn buffer(&mut self) -> &mut BytesMut {
        &mut self.buffer
    }

    pub(super) fn put(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// Writes bytes that the store keeps in memory in any case; large ones are shared, not copied.
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
        // An item that is encoded anew has the bytes that it had before; should it not, the answer ends early.
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
