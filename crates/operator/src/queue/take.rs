//! The future that waits for a key; the one that is the timekeeper also waits for the time at which one is due.

use super::{
    Queue, QueueInner, TakenKey, Time,
    locked::{TakeResult, WaiterId},
};
use futures::{FutureExt, future::BoxFuture};
use std::{
    fmt,
    pin::Pin,
    task::{Context, Poll},
};

/// Waits for a key.
#[must_use = "futures do nothing unless polled"]
pub struct Take<'a> {
    queue: &'a Queue,
    waiter: Option<WaiterId>,
    /// Set for the timekeeper.
    alarm: Option<(Time, BoxFuture<'static, ()>)>,
}

impl<'a> Take<'a> {
    pub(super) fn new(queue: &'a Queue) -> Take<'a> {
        Take { queue, waiter: None, alarm: None }
    }
}

impl<'a> Future for Take<'a> {
    type Output = Option<TakenKey<'a>>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<TakenKey<'a>>> {
        let this = &mut *self;
        loop {
            let time = match this.queue.0.state.take(this.waiter.take(), this.queue.now(), context.waker()) {
                TakeResult::Item(item) => {
                    return Poll::Ready(Some(TakenKey { queue: this.queue, item: Some(item) }));
                }
                TakeResult::Closed => return Poll::Ready(None),
                TakeResult::Wait(waiter, time) => {
                    this.waiter = Some(waiter);
                    time
                }
            };
            let Some(time) = time else { return Poll::Pending };
            if this.alarm.as_ref().is_none_or(|(set_for, _)| *set_for != time) {
                this.alarm = Some((time, this.queue.0.alarm(time)));
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
        if let Some(waiter) = self.waiter.take() {
            self.queue.0.state.cancel(waiter, self.queue.now());
        }
    }
}

impl fmt::Debug for Take<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Take").field("waiter", &self.waiter).finish_non_exhaustive()
    }
}

impl QueueInner {
    fn alarm(&self, time: Time) -> BoxFuture<'static, ()> {
        let (world, moment) = (self.world.clone(), self.begun + time);
        Box::pin(async move { world.sleep_until(moment).await })
    }
}
