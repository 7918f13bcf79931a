//! Waiting for seats, and giving them back: what `queues` decides, carried out.

use super::{
    State,
    queues::{Arrival, Seats, Ticket},
    width::Width,
};
use crate::Inner;
use std::{sync::Arc, time::Duration};
use tokio::sync::oneshot;

/// Somebody in a queue, who leaves it when this is dropped.
struct Waiter<'a> {
    inner: &'a Arc<Inner>,
    level: &'a str,
    ticket: Ticket,
    seats: oneshot::Receiver<Seats>,
    is_over: bool,
}

/// Takes seats, now or after a while.
pub(super) async fn take(
    inner: &Arc<Inner>,
    level: &str,
    flow: u64,
    width: Width,
    patience: Duration,
) -> Option<Seats> {
    let (sender, seats) = oneshot::channel();
    let ticket = {
        let fair = &inner.fair;
        let mut state = fair.lock();
        let (arrival, dispatched) = state.levels.arrive(fair.now(&inner.world), level, flow, width, sender);
        state.tell(dispatched);
        arm(inner, &mut state, level);
        match arrival {
            Arrival::Seated(seats) => return Some(seats),
            Arrival::Refused => return None,
            Arrival::Waits(ticket) => ticket,
        }
    };
    let mut waiter = Waiter { inner, level, ticket, seats, is_over: false };
    match inner.world.timeout(patience, &mut waiter.seats).await {
        Ok(seats) => {
            waiter.is_over = true;
            seats.ok()
        }
        Err(_) => waiter.give_up(true),
    }
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
    fn give_up(&mut self, timed_out: bool) -> Option<Seats> {
        self.is_over = true;
        let fair = &self.inner.fair;
        let mut state = fair.lock();
        let (left, dispatched) =
            state.levels.leave(fair.now(&self.inner.world), self.level, self.ticket, timed_out);
        state.tell(dispatched);
        arm(self.inner, &mut state, self.level);
        if left { None } else { self.seats.try_recv().ok() }
    }
}

impl Drop for Waiter<'_> {
    fn drop(&mut self) {
        if !self.is_over
            && let Some(seats) = self.give_up(false)
        {
            give_back(self.inner, self.level, seats);
        }
    }
}
