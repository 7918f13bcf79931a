//! Waiting for a key, and for who minds the clock, for the moment at which one is due.

use super::{
    Queue, Shared, Time, Work,
    door::{Answer, Ticket},
};
use futures::{FutureExt, future::BoxFuture};
use std::{
    fmt,
    pin::Pin,
    task::{Context, Poll},
};

/// Somebody who waits for a key.
#[must_use = "futures do nothing unless polled"]
pub struct Take<'a> {
    queue: &'a Queue,
    ticket: Option<Ticket>,
    /// For who minds the clock.
    alarm: Option<(Time, BoxFuture<'static, ()>)>,
}

impl<'a> Take<'a> {
    pub(super) fn new(queue: &'a Queue) -> Take<'a> {
        Take { queue, ticket: None, alarm: None }
    }
}

impl<'a> Future for Take<'a> {
    type Output = Option<Work<'a>>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Work<'a>>> {
        let this = &mut *self;
        loop {
            let moment = match this.queue.0.door.ask(this.ticket.take(), this.queue.now(), context.waker()) {
                Answer::Turn(turn) => return Poll::Ready(Some(Work { queue: this.queue, turn: Some(turn) })),
                Answer::Closed => return Poll::Ready(None),
                Answer::Wait(ticket, moment) => {
                    this.ticket = Some(ticket);
                    moment
                }
            };
            let Some(moment) = moment else { return Poll::Pending };
            if this.alarm.as_ref().is_none_or(|(set_for, _)| *set_for != moment) {
                this.alarm = Some((moment, this.queue.0.alarm(moment)));
            }
            let alarm = this.alarm.as_mut().map(|(_, alarm)| alarm.poll_unpin(context));
            if alarm.is_some_and(|rung| rung.is_pending()) {
                return Poll::Pending;
            }
            this.alarm = None;
        }
    }
}

impl Drop for Take<'_> {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket.take() {
            self.queue.0.door.leave(ticket, self.queue.now());
        }
    }
}

impl fmt::Debug for Take<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Take").field("ticket", &self.ticket).finish_non_exhaustive()
    }
}

impl Shared {
    fn alarm(&self, moment: Time) -> BoxFuture<'static, ()> {
        let (world, moment) = (self.world.clone(), self.begun + moment);
        Box::pin(async move { world.sleep_until(moment).await })
    }
}
