//! Waiting for seats, and giving them back: what `queues` decides, carried out.

use super::{
    State,
    meters::{Counted, Meter},
    queues::{Arrival, Seats, Ticket},
    rejection::Rejection,
    width::Width,
};
use crate::Inner;
use std::{sync::Arc, time::Duration};
use tokio::sync::oneshot;
use world::Moment;

/// Somebody in a queue, who leaves it when this is dropped.
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

/// Somebody who wants seats.
pub(super) struct Wish<'a> {
    pub(super) level: &'a str,
    pub(super) flow: u64,
    pub(super) width: Width,
    pub(super) patience: Duration,
    pub(super) meter: &'a Arc<Meter>,
}

/// Takes seats, now or after a while.
pub(super) async fn take(inner: &Arc<Inner>, wish: Wish<'_>) -> Result<Seats, Rejection> {
    let Wish { level, flow, width, patience, meter } = wish;
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
        state.tell(dispatched);
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
    let seats = promised.expect("whoever waits was promised seats");
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

/// Somebody else may have them.
pub(super) fn give_back(inner: &Arc<Inner>, level: &str, seats: Seats) {
    let fair = &inner.fair;
    let mut state = fair.lock();
    let dispatched = state.levels.finish(fair.now(&inner.world), level, seats);
    state.tell(dispatched);
    arm(inner, &mut state, level);
}

/// Where seats are freed by time alone, somebody must be there to notice: one task, while there are such seats and
/// somebody waits for them.
fn arm(inner: &Arc<Inner>, state: &mut State, level: &str) {
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
        state.tell(dispatched);
        arm(&inner, &mut state, &level);
    });
    task.detach();
}

impl Waiter<'_> {
    /// Leaves the queue, with seats if there were some just now.
    fn give_up(&mut self, why: Rejection) -> Option<Seats> {
        self.is_over = true;
        let timed_out = why == Rejection::TimedOut;
        let fair = &self.inner.fair;
        let mut state = fair.lock();
        let (left, dispatched) =
            state.levels.leave(fair.now(&self.inner.world), self.level, self.ticket, timed_out);
        state.tell(dispatched);
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
