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
    open: Mutex<OpenConnections>,
}

#[derive(Debug, Default)]
struct OpenConnections {
    next: u64,
    slots: BTreeMap<u64, Weak<ConnectionSlot>>,
}

/// The slot of a connection; freed when dropped.
#[derive(Debug)]
pub(super) struct ConnectionSlot {
    shared: Arc<Shared>,
    number: u64,
    state: Mutex<ConnectionState>,
    /// Notified when the connection must close.
    close_signal: Notify,
}

#[derive(Clone, Copy, Debug)]
struct ConnectionState {
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
            open: Mutex::default(),
        }))
    }

    /// A slot for a new connection, if need be that of an idle one; `None` where all are busy.
    pub(super) fn admit(&self) -> Option<Arc<ConnectionSlot>> {
        let is_full = lock(&self.0.open).slots.len() >= self.0.limit;
        if is_full && !self.make_room() {
            return None;
        }
        let state = ConnectionState {
            under_way: 0,
            has_sent_request: false,
            patience: self.0.idle,
            quiet_since: self.0.world.now(),
            must_close: false,
        };
        let mut open = lock(&self.0.open);
        open.next += 1;
        let number = open.next;
        let shared = Arc::clone(&self.0);
        let slot = Arc::new(ConnectionSlot {
            shared,
            number,
            state: Mutex::new(state),
            close_signal: Notify::new(),
        });
        open.slots.insert(number, Arc::downgrade(&slot));
        Some(slot)
    }

    /// Closes the connection that is idle longest; those that never sent a request first.
    pub(super) fn make_room(&self) -> bool {
        let slots: Vec<Arc<ConnectionSlot>> =
            lock(&self.0.open).slots.values().filter_map(Weak::upgrade).collect();
        let idle = slots.iter().map(|slot| (slot, *lock(&slot.state)));
        let idle = idle.filter(|(_, state)| state.under_way == 0);
        let Some((least, _)) = idle.min_by_key(|(_, state)| (state.has_sent_request, state.quiet_since))
        else {
            return false;
        };
        lock(&self.0.open).slots.remove(&least.number);
        lock(&least.state).must_close = true;
        least.close_signal.notify_one();
        true
    }
}

impl ConnectionSlot {
    /// A request begins; it ends with the last byte of its response.
    pub(super) fn begin(self: &Arc<ConnectionSlot>) -> UnderWay {
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

    /// Resolves when this connection must close: it was quiet for too long, or its slot is needed.
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

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        lock(&self.shared.open).slots.remove(&self.number);
    }
}

/// A request from its headers to the last byte of its response.
#[derive(Debug)]
pub(super) struct UnderWay(Arc<ConnectionSlot>);

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
