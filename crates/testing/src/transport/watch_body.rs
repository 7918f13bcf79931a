//! The body of a watch response, with faults: its events are late, held back, or cut off.

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
use http::Response;
use http_body::{Body as _, Frame};
use http_body_util::{BodyExt, StreamBody};
use server::accept::Broken;
use std::{
    future::poll_fn,
    pin::Pin,
    sync::{Arc, atomic::Ordering::SeqCst},
    time::Duration,
};
use tokio::sync::oneshot;

struct WatchBody {
    transport: Arc<Transport>,
    resource: String,
    source: WatchSource,
    body: server::Body,
    lag: Duration,
    /// How many more events come before the watch ends, and how it ends.
    ends: Option<(usize, WatchEnd)>,
    broken: oneshot::Receiver<()>,
    progress: Arc<WatchProgress>,
    _in_flight: InFlight,
    is_over: bool,
    /// Whether an event was handed to the connection.
    has_sent: bool,
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
    // Boxed: it is large, and every event moves it.
    let events = Box::new(WatchBody {
        transport,
        resource,
        source,
        body,
        lag,
        ends,
        broken,
        progress,
        _in_flight: in_flight,
        is_over: false,
        has_sent: false,
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
            Some((0, end)) => return self.end(end),
            Some((left, _)) => self.ends = self.ends.map(|(_, end)| (left - 1, end)),
            None => {}
        }
        self.progress.delivered.fetch_add(u64::from(self.has_sent), SeqCst);
        self.has_sent = true;
        let received = {
            let (body, progress) = (&mut self.body, &self.progress);
            let event = std::pin::pin!(async {
                let frame = poll_fn(|context| {
                    let polled = Pin::new(&mut *body).poll_frame(context);
                    progress.is_up_to_date.store(polled.is_pending(), SeqCst);
                    polled
                });
                let frame = frame.await?;
                if !self.lag.is_zero() {
                    let late = format!("an event of {} that comes late", self.resource);
                    let _in_flight = self.transport.pending.add(late);
                    self.transport.world.sleep(self.lag).await;
                }
                self.transport.pending.released(&self.resource).await;
                Some(frame)
            });
            match select(event, &mut self.broken).await {
                Either::Left((frame, _)) => Some(frame?),
                Either::Right(_) => None,
            }
        };
        match received {
            Some(Ok(frame)) => Some(Ok(frame.into_data().unwrap_or_default())),
            Some(Err(never)) => match never {},
            None => self.end(WatchEnd::Broken),
        }
    }

    fn end(&mut self, end: WatchEnd) -> Option<Result<Bytes, Broken>> {
        self.is_over = true;
        self.transport.pending.expect_back(&self.transport.world, &self.source);
        end.last_event()
    }
}
