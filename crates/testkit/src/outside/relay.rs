//! Carries a request from the socket's thread into the simulation, and its response back.

use bytes::Bytes;
use futures::{
    future::{Either, select},
    stream,
};
use http::{Request, Response};
use http_body::Frame;
use http_body_util::{BodyExt, Full, StreamBody, combinators::UnsyncBoxBody};
use server::accept::Broken;
use std::{
    pin::pin,
    sync::{Arc, mpsc::SyncSender},
};
use testing::{Credentials, Transport};
use tokio::sync::{mpsc, oneshot};

/// Parts of a response that wait for the socket: enough that a list never waits for the simulation.
const MAX_PARTS: usize = 64;

type Part = Result<Bytes, Broken>;

/// A request that has come over the socket.
pub(super) struct Arrived {
    request: Request<Full<Bytes>>,
    credentials: Credentials,
    /// Dropping it breaks the connection.
    answer: oneshot::Sender<Response<mpsc::Receiver<Part>>>,
}

/// On the socket's thread: hands a request over, and waits for the response.
pub(super) async fn hand_over(
    arrivals: &SyncSender<Arrived>,
    credentials: Credentials,
    request: Request<Full<Bytes>>,
) -> Result<Response<UnsyncBoxBody<Bytes, Broken>>, Broken> {
    let (answer, answered) = oneshot::channel();
    arrivals.try_send(Arrived { request, credentials, answer }).map_err(|_| Broken)?;
    let response = answered.await.map_err(|_| Broken)?;
    Ok(response.map(|parts| {
        let frames = stream::unfold(parts, |mut parts| async move {
            let part = parts.recv().await?;
            Some((part.map(Frame::data), parts))
        });
        StreamBody::new(frames).boxed_unsync()
    }))
}

impl Arrived {
    /// In the simulation: sends it to the server, and the response back part by part.
    pub(super) async fn carry_out(self, transport: Arc<Transport>) {
        let Ok(response) = transport.send(self.credentials, self.request).await else { return };
        let (head, mut body) = response.into_parts();
        let (parts, received) = mpsc::channel(MAX_PARTS);
        if self.answer.send(Response::from_parts(head, received)).is_err() {
            return;
        }
        loop {
            // A client that hangs up ends its watch.
            let next = match select(pin!(body.frame()), pin!(parts.closed())).await {
                Either::Left((Some(next), _)) => next,
                _ => return,
            };
            let part = next.map(|frame| frame.into_data().unwrap_or_default());
            if parts.send(part).await.is_err() {
                return;
            }
        }
    }
}
