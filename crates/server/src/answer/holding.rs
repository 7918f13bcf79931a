//! A body that keeps a value alive until the body ends or is dropped.

use super::Body;
use bytes::Bytes;
use http_body::{Frame, SizeHint};
use http_body_util::BodyExt;
use std::{
    pin::Pin,
    task::{Context, Poll},
};

/// `held` is dropped with the body.
#[derive(Debug)]
pub(crate) struct Holding<T, B = Body> {
    body: B,
    _held: T,
}

impl<T, B> Holding<T, B> {
    pub(crate) fn new(body: B, held: T) -> Holding<T, B> {
        Holding { body, _held: held }
    }
}

impl<T: Send + Unpin + 'static> Holding<T> {
    pub(crate) fn boxed(body: Body, held: T) -> Body {
        Holding::new(body, held).boxed_unsync()
    }
}

impl<T: Unpin, B: http_body::Body<Data = Bytes> + Unpin> http_body::Body for Holding<T, B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
