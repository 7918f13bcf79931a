//! The body of a watch response, with faults: its events are late, held back, or cut off.

mod events;

use super::{
    ResponseBody, Transport,
    pending::{InFlight, WatchProgress, WatchSource},
};
use crate::{
    fault::{Effect, WatchEnd},
    request_info::RequestInfo,
};
use bytes::Bytes;
use futures::{
    future::{Either, select},
    stream,
};
use http::{Response, header};
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use server::accept::Broken;
use std::{
    sync::{Arc, atomic::Ordering::SeqCst},
    time::Duration,
};
use tokio::sync::oneshot;

const PROTOBUF: &[u8] = b"application/vnd.kubernetes.protobuf";

struct WatchBody {
    transport: Arc<Transport>,
    resource: String,
    source: WatchSource,
    events: events::Events,
    /// How many more events come before the watch ends, and how it ends.
    ends: Option<(usize, WatchEnd)>,
    is_protobuf: bool,
    broken: oneshot::Receiver<()>,
    progress: Arc<WatchProgress>,
    _in_flight: InFlight,
    is_over: bool,
    /// Whether an event was handed to the connection.
    has_sent: bool,
    /// Ends when the connection has sent the last event before it breaks.
    last_sent: Option<oneshot::Receiver<()>>,
}

/// An event that the connection drops when it has sent it.
struct LastEvent {
    event: Bytes,
    _sent: oneshot::Sender<()>,
}

impl AsRef<[u8]> for LastEvent {
    fn as_ref(&self) -> &[u8] {
        &self.event
    }
}

/// The response, with the effects applied to its events.
pub(super) fn wrap(
    transport: &Arc<Transport>,
    info: &RequestInfo,
    source: WatchSource,
    effects: &[Effect],
    response: Response<server::Body>,
) -> Response<ResponseBody> {
    let (mut lag, mut ends) = (Duration::ZERO, None);
    for effect in effects {
        match effect {
            Effect::Lag(duration) => lag += *duration,
            Effect::Watch { after, end } => ends = Some((*after, *end)),
            _ => {}
        }
    }
    let (in_flight, broken, progress) = transport.pending.add_watch(&info.resource, &source);
    let (transport, resource) = (Arc::clone(transport), info.resource.clone());
    let (head, body) = response.into_parts();
    let content_type = head.headers.get(header::CONTENT_TYPE);
    let is_protobuf = content_type.is_some_and(|it| it.as_bytes().starts_with(PROTOBUF));
    // Boxed: it is large, and every event moves it.
    let events = Box::new(WatchBody {
        transport,
        resource,
        source,
        events: events::Events::new(body, lag, &progress),
        ends,
        is_protobuf,
        broken,
        progress,
        _in_flight: in_flight,
        is_over: false,
        has_sent: false,
        last_sent: None,
    });
    let frames = stream::unfold(events, |mut events| async move {
        let event = events.next().await?;
        Some((event.map(Frame::data), events))
    });
    Response::from_parts(head, StreamBody::new(frames).boxed_unsync())
}

impl WatchBody {
    async fn next(&mut self) -> Option<Result<Bytes, Broken>> {
        if self.is_over {
            return None;
        }
        match self.ends {
            Some((0, end)) => return self.end(end).await,
            Some((left, _)) => self.ends = self.ends.map(|(_, end)| (left - 1, end)),
            None => {}
        }
        self.progress.delivered.fetch_add(u64::from(self.has_sent), SeqCst);
        self.has_sent = true;
        let (transport, resource) = (Arc::clone(&self.transport), self.resource.clone());
        let received = {
            let event = std::pin::pin!(async {
                let event = self.events.next(&transport, &resource).await?;
                transport.pending.released(&resource).await;
                Some(event)
            });
            match select(event, &mut self.broken).await {
                Either::Left((event, _)) => Some(event?),
                Either::Right(_) => None,
            }
        };
        match received {
            Some(event) => Some(Ok(self.tracked(event))),
            None => self.end(WatchEnd::Broken).await,
        }
    }

    /// Notices when the last event is sent: a connection that breaks drops what it has not sent.
    fn tracked(&mut self, event: Bytes) -> Bytes {
        if !self.source.is_outside() || self.ends != Some((0, WatchEnd::Broken)) {
            return event;
        }
        let (sent, is_sent) = oneshot::channel();
        self.last_sent = Some(is_sent);
        Bytes::from_owner(LastEvent { event, _sent: sent })
    }

    async fn end(&mut self, end: WatchEnd) -> Option<Result<Bytes, Broken>> {
        if let Some(is_sent) = self.last_sent.take() {
            drop(is_sent.await);
            // A connection that has copied the event sends its copy now.
            tokio::task::yield_now().await;
        }
        self.is_over = true;
        self.transport.pending.expect_back(&self.transport.world, &self.source);
        end.last_event(self.is_protobuf)
    }
}
