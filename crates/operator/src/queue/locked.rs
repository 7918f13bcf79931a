//! The state of a queue behind a lock, and the tasks that wait for a key.
//!
//! It wakes as many waiters as there are keys. One further waiter is the timekeeper: it sleeps until the
//! next delayed key is due or the rate allows another key, whichever the queue waits for. There is no
//! clock in here: callers pass the time.

use super::{
    Pace, Reason, Time,
    sets::{Finished, QueueItem, Requeue, Sets},
};
use crate::Key;
use std::{collections::VecDeque, sync::Mutex, task::Waker, time::Duration};

/// A mutex. Tests use one that explores the orders in which threads can take it.
pub(super) trait Lock<T> {
    fn new(content: T) -> Self;
    fn with<R>(&self, action: impl FnOnce(&mut T) -> R) -> R;
}

impl<T> Lock<T> for Mutex<T> {
    fn new(content: T) -> Mutex<T> {
        Mutex::new(content)
    }

    fn with<R>(&self, action: impl FnOnce(&mut T) -> R) -> R {
        // No code of users runs under the lock, so a panic there is a bug of the queue.
        action(&mut self.lock().expect("no panic under the queue's lock"))
    }
}

#[derive(Debug)]
pub(super) struct Locked<L>(L);

#[derive(Debug)]
pub(super) struct WaitQueue {
    sets: Sets,
    sleepers: VecDeque<(WaiterId, Waker)>,
    /// The waiter that asks again at this time.
    timekeeper: Option<(WaiterId, Waker, Time)>,
    /// How many waiters were woken and have not asked again yet.
    woken: usize,
    last_waiter: u64,
    is_closed: bool,
}

/// A task that waits for a key. It must be passed to [`Locked::take`] or [`Locked::cancel`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct WaiterId(u64);

/// The answer to a waiter that asks for a key.
#[derive(Debug)]
pub(super) enum TakeResult {
    Item(QueueItem),
    /// Wait until woken; if there is a time, ask again then.
    Wait(WaiterId, Option<Time>),
    Closed,
}

impl<L: Lock<WaitQueue>> Locked<L> {
    pub(super) fn new(pace: Pace) -> Locked<L> {
        Locked(L::new(WaitQueue {
            sets: Sets::new(pace),
            sleepers: VecDeque::new(),
            timekeeper: None,
            woken: 0,
            last_waiter: 0,
            is_closed: false,
        }))
    }

    pub(super) fn add(&self, key: &Key, reason: Reason, now: Time) -> bool {
        self.change(now, |queue| queue.is_closed || queue.sets.add(key, reason, now))
    }

    pub(super) fn add_after(&self, key: &Key, reason: Reason, delay: Duration, now: Time) -> bool {
        self.change(now, |queue| queue.is_closed || queue.sets.add_after(key, reason, delay, now))
    }

    /// Asks for a key; `waiter` is from the last time, if this task waits already.
    pub(super) fn take(&self, waiter: Option<WaiterId>, now: Time, waker: &Waker) -> TakeResult {
        self.change(now, |queue| queue.take(waiter, now, waker))
    }

    pub(super) fn cancel(&self, waiter: WaiterId, now: Time) {
        self.change(now, |queue| queue.remove_waiter(waiter));
    }

    pub(super) fn finish(&self, item: &QueueItem, requeue: Requeue, now: Time) -> Finished {
        self.change(now, |queue| queue.sets.finish(item, requeue, now))
    }

    /// No key can be taken any more.
    pub(super) fn close(&self, now: Time) {
        self.change(now, |queue| queue.is_closed = true);
    }

    pub(super) fn read<R>(&self, read: impl FnOnce(&mut Sets) -> R) -> R {
        self.0.with(|queue| read(&mut queue.sets))
    }

    /// Changes the queue, then wakes waiters: outside of the lock, because wakers run code of users.
    fn change<R>(&self, now: Time, change: impl FnOnce(&mut WaitQueue) -> R) -> R {
        let (result, mut next) = self.0.with(|queue| {
            let result = change(queue);
            (result, queue.wake_one(now))
        });
        while let Some(waker) = next {
            waker.wake();
            next = self.0.with(|queue| queue.wake_one(now));
        }
        result
    }
}

impl WaitQueue {
    fn take(&mut self, waiter: Option<WaiterId>, now: Time, waker: &Waker) -> TakeResult {
        if let Some(waiter) = waiter {
            self.remove_waiter(waiter);
        }
        if self.is_closed {
            return TakeResult::Closed;
        }
        if let Some(item) = self.sets.take(now) {
            return TakeResult::Item(item);
        }
        self.last_waiter += 1;
        let waiter = WaiterId(self.last_waiter);
        match self.sets.next_time() {
            Some(time) if self.timekeeper.is_none() => {
                self.timekeeper = Some((waiter, waker.clone(), time));
                TakeResult::Wait(waiter, Some(time))
            }
            _ => {
                self.sleepers.push_back((waiter, waker.clone()));
                TakeResult::Wait(waiter, None)
            }
        }
    }

    fn remove_waiter(&mut self, waiter: WaiterId) {
        if self.timekeeper.as_ref().is_some_and(|(other, ..)| *other == waiter) {
            self.timekeeper = None;
        } else if let Some(at) = self.sleepers.iter().position(|(other, _)| *other == waiter) {
            self.sleepers.remove(at);
        } else {
            self.woken -= 1;
        }
    }

    /// The next waiter to wake, if any.
    fn wake_one(&mut self, now: Time) -> Option<Waker> {
        if self.sleepers.is_empty() && self.timekeeper.is_none() {
            return None;
        }
        if self.is_closed || self.woken < self.sets.available(now) {
            return self.wake_sleeper().or_else(|| self.wake_timekeeper());
        }
        let next = self.sets.next_time()?;
        match &self.timekeeper {
            Some((.., time)) if *time <= next => None,
            Some(_) => self.wake_timekeeper(),
            // It finds no key, and becomes the timekeeper.
            None if self.woken == 0 => self.wake_sleeper(),
            None => None,
        }
    }

    fn wake_sleeper(&mut self) -> Option<Waker> {
        let (_, waker) = self.sleepers.pop_front()?;
        self.woken += 1;
        Some(waker)
    }

    fn wake_timekeeper(&mut self) -> Option<Waker> {
        let (_, waker, _) = self.timekeeper.take()?;
        self.woken += 1;
        Some(waker)
    }
}

#[cfg(test)]
mod tests;
