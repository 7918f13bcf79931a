//! Limits the number of connections; at the limit an idle one is closed for a new one.

use super::Limits;
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::Duration,
};
use tokio::sync::Notify;
use world::{Moment, World};

#[derive(Debug)]
pub(super) struct Connections(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    world: World,
    limit: usize,
    first_request: Duration,
    idle: Duration,
    seats: Mutex<Seats>,
}

#[derive(Debug, Default)]
struct Seats {
    next: u64,
    taken: BTreeMap<u64, Weak<Seat>>,
}

/// A connection's place; freed when dropped.
#[derive(Debug)]
pub(super) struct Seat {
    shared: Arc<Shared>,
    number: u64,
    state: Mutex<State>,
    /// Notified when the connection must close.
    close_signal: Notify,
}

#[derive(Clone, Copy, Debug)]
struct State {
    under_way: usize,
    /// Whether it has sent any request.
    has_sent_request: bool,
    /// How long it may be quiet from then on.
    patience: Duration,
    /// Since when it has no request.
    quiet_since: Moment,
    must_close: bool,
}

impl Connections {
    pub(super) fn new(world: &World, limits: &Limits) -> Connections {
        Connections(Arc::new(Shared {
            world: world.clone(),
            limit: limits.connections,
            first_request: limits.handshake + limits.headers,
            idle: limits.idle,
            seats: Mutex::default(),
        }))
    }

    /// A seat for a new connection, if need be that of an idle one; `None` where all are busy.
    pub(super) fn admit(&self) -> Option<Arc<Seat>> {
        let is_full = lock(&self.0.seats).taken.len() >= self.0.limit;
        if is_full && !self.make_room() {
            return None;
        }
        let state = State {
            under_way: 0,
            has_sent_request: false,
            patience: self.0.idle,
            quiet_since: self.0.world.now(),
            must_close: false,
        };
        let mut seats = lock(&self.0.seats);
        seats.next += 1;
        let number = seats.next;
        let shared = Arc::clone(&self.0);
        let seat = Arc::new(Seat { shared, number, state: Mutex::new(state), close_signal: Notify::new() });
        seats.taken.insert(number, Arc::downgrade(&seat));
        Some(seat)
    }

    /// Closes the connection that is idle longest; those that never sent a request first.
    pub(super) fn make_room(&self) -> bool {
        let seats: Vec<Arc<Seat>> = lock(&self.0.seats).taken.values().filter_map(Weak::upgrade).collect();
        let idle = seats.iter().map(|seat| (seat, *lock(&seat.state)));
        let idle = idle.filter(|(_, state)| state.under_way == 0);
        let Some((least, _)) = idle.min_by_key(|(_, state)| (state.has_sent_request, state.quiet_since))
        else {
            return false;
        };
        lock(&self.0.seats).taken.remove(&least.number);
        lock(&least.state).must_close = true;
        least.close_signal.notify_one();
        true
    }
}

impl Seat {
    /// A request begins; it ends with the last byte of its response.
    pub(super) fn begin(self: &Arc<Seat>) -> UnderWay {
        let mut state = lock(&self.state);
        state.under_way += 1;
        state.has_sent_request = true;
        UnderWay(Arc::clone(self))
    }

    /// Limits the quiet time between requests.
    pub(super) fn limit_quiet(&self, limit: Duration) {
        let mut state = lock(&self.state);
        state.patience = state.patience.min(limit);
    }

    /// Resolves when this connection must close: it was quiet for too long, or its seat is needed.
    ///
    /// Requests do not wake it: it checks again when the limit would be reached without them.
    pub(super) async fn closed(&self) {
        loop {
            let (state, now) = (*lock(&self.state), self.shared.world.now());
            let patience = if state.has_sent_request { state.patience } else { self.shared.first_request };
            let since = if state.under_way > 0 { now } else { state.quiet_since };
            if state.must_close || now >= since + patience {
                return;
            }
            let (close_signal, time) =
                (self.close_signal.notified(), self.shared.world.sleep_until(since + patience));
            futures::pin_mut!(close_signal, time);
            futures::future::select(close_signal, time).await;
        }
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        lock(&self.shared.seats).taken.remove(&self.number);
    }
}

/// A request from its headers to the last byte of its response.
#[derive(Debug)]
pub(super) struct UnderWay(Arc<Seat>);

impl Drop for UnderWay {
    fn drop(&mut self) {
        let mut state = lock(&self.0.state);
        state.under_way -= 1;
        if state.under_way == 0 {
            state.quiet_since = self.0.shared.world.now();
        }
    }
}

/// No code panics while it holds the lock, so poisoning means nothing.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
