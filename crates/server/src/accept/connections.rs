//! Limits the number of connections; at the limit one is closed for a new one, an idle one if there is any.

use super::Limits;
use crate::shared_places::{PlaceEnd, PlaceUse, SharedPlace, SharedPlaces};
use std::{
    pin::pin,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::Duration,
};
use world::World;

#[derive(Debug)]
pub(super) struct Connections {
    world: World,
    shares: SharedPlaces,
    first_request: Duration,
    idle: Duration,
}

/// The slot of a connection; freed when dropped.
#[derive(Debug)]
pub(super) struct ConnectionSlot {
    world: World,
    place: Arc<SharedPlace>,
    /// How long it may be quiet before its first request.
    first_request: Duration,
    state: Mutex<ConnectionState>,
}

#[derive(Clone, Copy, Debug)]
struct ConnectionState {
    under_way: usize,
    /// Those of them that last as long as the client wants.
    lasting: usize,
    /// How long it may be quiet after a request.
    patience: Duration,
}

impl Connections {
    pub(super) fn new(world: &World, limits: &Limits) -> Connections {
        Connections {
            world: world.clone(),
            shares: SharedPlaces::new(world, limits.connections),
            first_request: limits.handshake + limits.headers,
            idle: limits.idle,
        }
    }

    /// A slot for a new connection, if need be that of another; `None` where all are busy.
    pub(super) fn admit(&self) -> Option<Arc<ConnectionSlot>> {
        let (place, world) = (Arc::new(self.shares.take()?), self.world.clone());
        let state = Mutex::new(ConnectionState { under_way: 0, lasting: 0, patience: self.idle });
        Some(Arc::new(ConnectionSlot { world, place, first_request: self.first_request, state }))
    }

    /// Closes a connection that can go.
    pub(super) fn make_room(&self) {
        self.shares.make_room();
    }
}

impl ConnectionSlot {
    /// A request begins; it ends with the last byte of its response.
    pub(super) fn begin(self: &Arc<ConnectionSlot>) -> UnderWay {
        self.change(|state| state.under_way += 1);
        UnderWay { slot: Arc::clone(self), lasts: AtomicBool::new(false) }
    }

    /// Limits the quiet time between requests.
    pub(super) fn limit_quiet(&self, limit: Duration) {
        let mut state = lock(&self.state);
        state.patience = state.patience.min(limit);
    }

    /// The place of the connection, for what learns whose it is.
    pub(super) fn place(&self) -> Arc<SharedPlace> {
        Arc::clone(&self.place)
    }

    /// When the slot is needed for another connection.
    pub(super) fn end(&self) -> PlaceEnd {
        self.place.end()
    }

    /// Resolves when this connection must close: it was quiet for too long, or its slot is needed.
    ///
    /// Requests do not wake it: it checks again when the limit would be reached without them.
    pub(super) async fn closed(&self) {
        let end = self.place.end();
        let quiet = async {
            loop {
                let (now, patience) = (self.world.now(), lock(&self.state).patience);
                let until = match self.place.used_for() {
                    (PlaceUse::New, since) => since + self.first_request,
                    (PlaceUse::Idle, since) => since + patience,
                    (PlaceUse::Busy | PlaceUse::Lasting, _) => now + patience,
                };
                if now >= until {
                    return;
                }
                self.world.sleep_until(until).await;
            }
        };
        futures::future::select(pin!(end.wait()), pin!(quiet)).await;
    }

    fn change(&self, change: impl FnOnce(&mut ConnectionState)) {
        let mut state = lock(&self.state);
        change(&mut state);
        self.place.set(match *state {
            ConnectionState { lasting: 1.., .. } => PlaceUse::Lasting,
            ConnectionState { under_way: 1.., .. } => PlaceUse::Busy,
            _ => PlaceUse::Idle,
        });
    }
}

/// A request from its headers to the last byte of its response.
#[derive(Debug)]
pub(super) struct UnderWay {
    slot: Arc<ConnectionSlot>,
    lasts: AtomicBool,
}

impl UnderWay {
    /// Its response lasts as long as its user wants.
    pub(super) fn lasts(&self) {
        if !self.lasts.swap(true, Relaxed) {
            self.slot.place.lasts();
            self.slot.change(|state| state.lasting += 1);
        }
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        let lasting = usize::from(*self.lasts.get_mut());
        self.slot.change(|state| {
            state.under_way -= 1;
            state.lasting -= lasting;
        });
    }
}

/// No code panics while it holds the lock, so poisoning means nothing.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
