//! Who is connected: never more than so many, and whoever does nothing makes room for whoever comes.

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

/// The right to be connected; given back when it is dropped.
#[derive(Debug)]
pub(super) struct Seat {
    shared: Arc<Shared>,
    number: u64,
    state: Mutex<State>,
    /// Told when it shall leave.
    news: Notify,
}

#[derive(Clone, Copy, Debug)]
struct State {
    under_way: usize,
    /// Whether it has ever asked for anything.
    has_asked: bool,
    /// How long it may be quiet from then on.
    patience: Duration,
    /// Since when nothing is under way.
    quiet_since: Moment,
    must_leave: bool,
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

    /// A seat for one more, if need be that of somebody idle; `None` where nobody is.
    pub(super) fn admit(&self) -> Option<Arc<Seat>> {
        let is_full = lock(&self.0.seats).taken.len() >= self.0.limit;
        if is_full && !self.make_room() {
            return None;
        }
        let state = State {
            under_way: 0,
            has_asked: false,
            patience: self.0.idle,
            quiet_since: self.0.world.now(),
            must_leave: false,
        };
        let mut seats = lock(&self.0.seats);
        seats.next += 1;
        let number = seats.next;
        let shared = Arc::clone(&self.0);
        let seat = Arc::new(Seat { shared, number, state: Mutex::new(state), news: Notify::new() });
        seats.taken.insert(number, Arc::downgrade(&seat));
        Some(seat)
    }

    /// Sends away who has been idle longest, first of all those who never asked for anything.
    pub(super) fn make_room(&self) -> bool {
        let seats: Vec<Arc<Seat>> = lock(&self.0.seats).taken.values().filter_map(Weak::upgrade).collect();
        let idle = seats.iter().map(|seat| (seat, *lock(&seat.state)));
        let idle = idle.filter(|(_, state)| state.under_way == 0);
        let Some((least, _)) = idle.min_by_key(|(_, state)| (state.has_asked, state.quiet_since)) else {
            return false;
        };
        lock(&self.0.seats).taken.remove(&least.number);
        lock(&least.state).must_leave = true;
        least.news.notify_one();
        true
    }
}

impl Seat {
    /// A request begins; it is under way until the answer's last byte is out.
    pub(super) fn begin(self: &Arc<Seat>) -> UnderWay {
        let mut state = lock(&self.state);
        state.under_way += 1;
        state.has_asked = true;
        UnderWay(Arc::clone(self))
    }

    /// Between its requests it may be quiet no longer than this.
    pub(super) fn limit_quiet(&self, limit: Duration) {
        let mut state = lock(&self.state);
        state.patience = state.patience.min(limit);
    }

    /// Ends when this connection should: it was quiet for too long, or others need its place.
    ///
    /// Requests come and go without waking it: it looks again when its patience would be over, had there been none.
    pub(super) async fn sent_away(&self) {
        loop {
            let (state, now) = (*lock(&self.state), self.shared.world.now());
            let patience = if state.has_asked { state.patience } else { self.shared.first_request };
            let since = if state.under_way > 0 { now } else { state.quiet_since };
            if state.must_leave || now >= since + patience {
                return;
            }
            let (news, time) = (self.news.notified(), self.shared.world.sleep_until(since + patience));
            futures::pin_mut!(news, time);
            futures::future::select(news, time).await;
        }
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        lock(&self.shared.seats).taken.remove(&self.number);
    }
}

/// A request between its headers and the last byte of its answer.
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

/// No code between lock and unlock can panic halfway through a change, so poison tells nothing.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
