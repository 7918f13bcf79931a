//! The events of a watch as the server sends them, each so much later.

use super::{
    super::{Transport, pending::InFlight},
    WatchProgress,
};
use bytes::Bytes;
use futures::future::{Either, pending, select};
use http_body::Body as _;
use std::{
    collections::VecDeque,
    future::poll_fn,
    pin::{Pin, pin},
    sync::{Arc, atomic::Ordering::SeqCst},
    task::Poll,
    time::Duration,
};
use world::Moment;

/// As many events are late at the same time; the server keeps the others.
const MAX_LATE: usize = 10_000;

pub(super) struct Events {
    server: FromServer,
    lag: Duration,
    late: VecDeque<LateEvent>,
}

struct FromServer {
    body: server::Body,
    progress: Arc<WatchProgress>,
    is_over: bool,
}

/// An event that the client gets later.
struct LateEvent {
    due: Moment,
    event: Bytes,
    _in_flight: InFlight,
}

impl Events {
    pub(super) fn new(body: server::Body, lag: Duration, progress: &Arc<WatchProgress>) -> Events {
        let server = FromServer { body, progress: Arc::clone(progress), is_over: false };
        Events { server, lag, late: VecDeque::new() }
    }

    /// The next event that is due.
    pub(super) async fn next(&mut self, transport: &Transport, resource: &str) -> Option<Bytes> {
        if self.lag.is_zero() {
            return self.server.next().await;
        }
        loop {
            let (first, is_full) = (self.late.front().map(|late| late.due), self.late.len() >= MAX_LATE);
            if first.is_none() && self.server.is_over {
                return None;
            }
            let due = pin!(async {
                match first {
                    Some(due) => transport.world.sleep_until(due).await,
                    None => pending().await,
                }
            });
            let server = &mut self.server;
            let more =
                pin!(async { if is_full || server.is_over { pending().await } else { server.next().await } });
            match select(due, more).await {
                Either::Left(_) => return self.late.pop_front().map(|late| late.event),
                Either::Right((None, _)) => {}
                Either::Right((Some(event), _)) => {
                    let in_flight = transport.pending.add(format!("an event of {resource} that comes late"));
                    in_flight.wait_for_clock(true);
                    let due = transport.world.now() + self.lag;
                    self.late.push_back(LateEvent { due, event, _in_flight: in_flight });
                }
            }
        }
    }
}

impl FromServer {
    async fn next(&mut self) -> Option<Bytes> {
        let frame = poll_fn(|context| {
            let polled = Pin::new(&mut self.body).poll_frame(context);
            let has_event = matches!(polled, Poll::Ready(Some(_)));
            self.progress.is_up_to_date.store(!has_event, SeqCst);
            polled
        });
        let frame = frame.await;
        self.is_over = frame.is_none();
        match frame? {
            Ok(frame) => Some(frame.into_data().unwrap_or_default()),
            Err(never) => match never {},
        }
    }
}
