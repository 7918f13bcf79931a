//! Waits for seats and returns them, as `queues` decides.

use super::{
    FairState,
    meters::{Counted, Meter},
    queues::{Arrival, Seats, Ticket},
    rejection::Rejection,
    width::Width,
};
use crate::Inner;
use std::{sync::Arc, time::Duration};
use tokio::sync::oneshot;
use world::Moment;

/// A queued request. Dropping it leaves the queue.
struct Waiter<'a> {
    inner: &'a Arc<Inner>,
    level: &'a str,
    ticket: Ticket,
    seats: oneshot::Receiver<Seats>,
    is_over: bool,
    meter: &'a Meter,
    since: Moment,
    _waiting: Counted,
}

/// A request for seats.
pub(super) struct SeatRequest<'a> {
    pub(super) level: &'a str,
    pub(super) flow: u64,
    pub(super) width: Width,
    pub(super) patience: Duration,
    pub(super) meter: &'a Arc<Meter>,
}

/// Takes seats, at once or after waiting.
pub(super) async fn take(inner: &Arc<Inner>, request: SeatRequest<'_>) -> Result<Seats, Rejection> {
    let SeatRequest { level, flow, width, patience, meter } = request;
    let since = inner.world.now();
    let mut promised = None;
    let ticket = {
        let fair = &inner.fair;
        let mut state = fair.lock();
        let promise = || {
            let (sender, seats) = oneshot::channel();
            promised = Some(seats);
            sender
        };
        let (arrival, dispatched) = state.levels.arrive(fair.now(&inner.world), level, flow, width, promise);
        state.send_seats(dispatched);
        arm(inner, &mut state, level);
        match arrival {
            Arrival::Seated(seats) => return Ok(seats),
            Arrival::Refused(why) => {
                meter.rejects(why, None);
                return Err(why);
            }
            Arrival::Waits(ticket) => ticket,
        }
    };
    let seats = promised.expect("a queued request waits for its seats");
    let _waiting = meter.waits(width);
    let mut waiter = Waiter { inner, level, ticket, seats, is_over: false, meter, since, _waiting };
    let seats = match inner.world.timeout(patience, &mut waiter.seats).await {
        Ok(seats) => {
            waiter.is_over = true;
            seats.ok()
        }
        Err(_) => waiter.give_up(Rejection::TimedOut),
    };
    seats.ok_or(Rejection::TimedOut)
}

/// Returns seats, and gives them to waiting requests.
pub(super) fn give_back(inner: &Arc<Inner>, level: &str, seats: Seats) {
    let fair = &inner.fair;
    let mut state = fair.lock();
    let dispatched = state.levels.finish(fair.now(&inner.world), level, seats);
    state.send_seats(dispatched);
    arm(inner, &mut state, level);
}

/// Spawns a task that dispatches when lingering seats are released: one per level, only while requests wait
/// for such seats.
fn arm(inner: &Arc<Inner>, state: &mut FairState, level: &str) {
    let Some(until) = state.levels.next_release(level) else { return };
    if !state.armed.insert(level.to_owned()) {
        return;
    }
    let (inner, level) = (Arc::clone(inner), level.to_owned());
    let world = inner.world.clone();
    let task = world.clone().spawn("seats are freed", async move {
        let fair = &inner.fair;
        world.sleep_until(fair.start + until).await;
        let mut state = fair.lock();
        state.armed.remove(&level);
        let dispatched = state.levels.tick(fair.now(&world), &level);
        state.send_seats(dispatched);
        arm(&inner, &mut state, &level);
    });
    task.detach();
}

impl Waiter<'_> {
    /// Leaves the queue; returns seats that were granted meanwhile.
    fn give_up(&mut self, why: Rejection) -> Option<Seats> {
        self.is_over = true;
        let timed_out = why == Rejection::TimedOut;
        let fair = &self.inner.fair;
        let mut state = fair.lock();
        let (left, dispatched) =
            state.levels.leave(fair.now(&self.inner.world), self.level, self.ticket, timed_out);
        state.send_seats(dispatched);
        arm(self.inner, &mut state, self.level);
        drop(state);
        if left {
            self.meter.rejects(why, Some(self.inner.world.now().since(self.since)));
            return None;
        }
        self.seats.try_recv().ok()
    }
}

impl Drop for Waiter<'_> {
    fn drop(&mut self) {
        if !self.is_over
            && let Some(seats) = self.give_up(Rejection::Cancelled)
        {
            give_back(self.inner, self.level, seats);
        }
    }
}
