//! What a service between connections and the server does to watches over WebSockets.

use bytes::Bytes;
use http::Response;
use http_body_util::{BodyExt, combinators::UnsyncBoxBody};
use std::{convert::Infallible, fmt, sync::Arc};

/// The connection breaks: the client gets no response, or a part of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("connection reset by peer")]
pub struct Broken;

type SentWatch = Response<UnsyncBoxBody<Bytes, Infallible>>;
type PassedWatch = Response<UnsyncBoxBody<Bytes, Broken>>;

/// An extension of a request: the events of a watch over a WebSocket, which no response has as its body, pass through it. They
/// come as a response to the same watch without a WebSocket.
#[derive(Clone)]
pub struct WebSocketEvents(Arc<dyn Fn(SentWatch) -> PassedWatch + Send + Sync>);

impl WebSocketEvents {
    pub fn through(pass: impl Fn(SentWatch) -> PassedWatch + Send + Sync + 'static) -> WebSocketEvents {
        WebSocketEvents(Arc::new(pass))
    }

    /// The events as the client gets them.
    pub(crate) fn pass(front: Option<&WebSocketEvents>, events: SentWatch) -> UnsyncBoxBody<Bytes, Broken> {
        match front {
            Some(front) => (front.0)(events).into_body(),
            None => events.into_body().map_err(|never| match never {}).boxed_unsync(),
        }
    }
}

impl fmt::Debug for WebSocketEvents {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("WebSocketEvents")
    }
}
