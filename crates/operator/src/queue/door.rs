//! The sets behind one lock, and those who wait at it for a key.
//!
//! It wakes as many as there are keys for, and beside them only one: who minds the clock, so that
//! the moment at which a resting key is due, or the rate allows another, is not missed. There is no
//! clock in here: whoever calls says what time it is.

use super::{
    Pace, Time, Why,
    sets::{Finished, Sets, Turn, Verdict},
};
use crate::Key;
use std::{collections::VecDeque, sync::Mutex, task::Waker, time::Duration};

/// What keeps two threads from touching the same thing. Tests bring one that tries every order.
pub(super) trait Lock<T> {
    fn new(content: T) -> Self;
    fn with<R>(&self, act: impl FnOnce(&mut T) -> R) -> R;
}

impl<T> Lock<T> for Mutex<T> {
    fn new(content: T) -> Mutex<T> {
        Mutex::new(content)
    }

    fn with<R>(&self, act: impl FnOnce(&mut T) -> R) -> R {
        // Nothing in here calls foreign code, so a panic under the lock is a bug that may show.
        act(&mut self.lock().expect("no panic under the queue's lock"))
    }
}

#[derive(Debug)]
pub(super) struct Door<L>(L);

#[derive(Debug)]
pub(super) struct Inside {
    sets: Sets,
    asleep: VecDeque<(Ticket, Waker)>,
    minds_clock: Option<(Ticket, Waker, Time)>,
    /// Woken, and not back yet.
    coming: usize,
    last_ticket: u64,
    is_closed: bool,
}

/// Whoever waits holds one. It must come back, by [`Door::ask`] or [`Door::leave`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ticket(u64);

/// What somebody gets who asks for a key.
#[derive(Debug)]
pub(super) enum Answer {
    Turn(Turn),
    /// Wait until woken; and if there is a moment, ask again at it.
    Wait(Ticket, Option<Time>),
    Closed,
}

impl<L: Lock<Inside>> Door<L> {
    pub(super) fn new(pace: Pace) -> Door<L> {
        Door(L::new(Inside {
            sets: Sets::new(pace),
            asleep: VecDeque::new(),
            minds_clock: None,
            coming: 0,
            last_ticket: 0,
            is_closed: false,
        }))
    }

    pub(super) fn add(&self, key: &Key, why: Why, now: Time) -> bool {
        self.act(now, |inside| inside.is_closed || inside.sets.add(key, why, now))
    }

    pub(super) fn add_after(&self, key: &Key, why: Why, delay: Duration, now: Time) -> bool {
        self.act(now, |inside| inside.is_closed || inside.sets.add_after(key, why, delay, now))
    }

    /// Asks for a key, with the ticket of the last time if there was one.
    pub(super) fn ask(&self, ticket: Option<Ticket>, now: Time, waker: &Waker) -> Answer {
        self.act(now, |inside| inside.ask(ticket, now, waker))
    }

    pub(super) fn leave(&self, ticket: Ticket, now: Time) {
        self.act(now, |inside| inside.cross_off(ticket));
    }

    pub(super) fn finish(&self, turn: &Turn, verdict: Verdict, now: Time) -> Finished {
        self.act(now, |inside| inside.sets.finish(turn, verdict, now))
    }

    /// Hands out nothing any more.
    pub(super) fn close(&self, now: Time) {
        self.act(now, |inside| inside.is_closed = true);
    }

    pub(super) fn look<R>(&self, at: impl FnOnce(&mut Sets) -> R) -> R {
        self.0.with(|inside| at(&mut inside.sets))
    }

    /// Wakers are called outside of the lock: they are foreign code.
    fn act<R>(&self, now: Time, act: impl FnOnce(&mut Inside) -> R) -> R {
        let (result, mut next) = self.0.with(|inside| {
            let result = act(inside);
            (result, inside.wake_one(now))
        });
        while let Some(waker) = next {
            waker.wake();
            next = self.0.with(|inside| inside.wake_one(now));
        }
        result
    }
}

impl Inside {
    fn ask(&mut self, ticket: Option<Ticket>, now: Time, waker: &Waker) -> Answer {
        if let Some(ticket) = ticket {
            self.cross_off(ticket);
        }
        if self.is_closed {
            return Answer::Closed;
        }
        if let Some(turn) = self.sets.take(now) {
            return Answer::Turn(turn);
        }
        self.last_ticket += 1;
        let ticket = Ticket(self.last_ticket);
        match self.sets.next_moment() {
            Some(moment) if self.minds_clock.is_none() => {
                self.minds_clock = Some((ticket, waker.clone(), moment));
                Answer::Wait(ticket, Some(moment))
            }
            _ => {
                self.asleep.push_back((ticket, waker.clone()));
                Answer::Wait(ticket, None)
            }
        }
    }

    fn cross_off(&mut self, ticket: Ticket) {
        if self.minds_clock.as_ref().is_some_and(|(other, ..)| *other == ticket) {
            self.minds_clock = None;
        } else if let Some(at) = self.asleep.iter().position(|(other, _)| *other == ticket) {
            self.asleep.remove(at);
        } else {
            self.coming -= 1;
        }
    }

    /// Whom to wake next, if anybody.
    fn wake_one(&mut self, now: Time) -> Option<Waker> {
        if self.asleep.is_empty() && self.minds_clock.is_none() {
            return None;
        }
        if self.is_closed || self.coming < self.sets.available(now) {
            return self.wake_sleeper().or_else(|| self.wake_clock());
        }
        let next = self.sets.next_moment()?;
        match &self.minds_clock {
            Some((.., moment)) if *moment <= next => None,
            Some(_) => self.wake_clock(),
            // Whoever comes and finds nothing minds the clock from then on.
            None if self.coming == 0 => self.wake_sleeper(),
            None => None,
        }
    }

    fn wake_sleeper(&mut self) -> Option<Waker> {
        let (_, waker) = self.asleep.pop_front()?;
        self.coming += 1;
        Some(waker)
    }

    fn wake_clock(&mut self) -> Option<Waker> {
        let (_, waker, _) = self.minds_clock.take()?;
        self.coming += 1;
        Some(waker)
    }
}

#[cfg(test)]
mod tests;
