//! A body that breaks its connection, or its stream, where what it passes on has broken off.

use super::{Broken, FrontBody};
use crate::{Body, answer::BrokenOff};
use bytes::Bytes;
use http::Response;
use http_body::{Frame, SizeHint};
use http_body_util::{BodyExt, Either};
use std::{
    pin::Pin,
    task::{Context, Poll, ready},
};

/// The response with a body that can break, if there is a reason why it might.
pub(super) fn breakable(mut response: Response<Body>) -> Response<Either<Body, FrontBody>> {
    match response.extensions_mut().remove::<BrokenOff>() {
        None => response.map(Either::Left),
        Some(broken_off) => response.map(|body| Either::Right(Breakable { body, broken_off }.boxed_unsync())),
    }
}

struct Breakable {
    body: Body,
    broken_off: BrokenOff,
}

impl http_body::Body for Breakable {
    type Data = Bytes;
    type Error = Broken;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Broken>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(context));
        Poll::Ready(match frame {
            None if self.broken_off.is_noted() => Some(Err(Broken)),
            frame => frame.map(|frame| frame.map_err(|never| match never {})),
        })
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream() && !self.broken_off.is_noted()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
