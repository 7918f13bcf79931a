//! The queue without a clock, a lock or a task: which keys wait, rest and are in work.
//!
//! A key is here once. It is wanted now, wanted later, or not wanted; and apart from that it may be
//! in work. What is wanted while in work (elsewhere called dirty) waits until that work is done, so
//! that one key is never worked on twice at a time and no wish is lost.

use super::{
    Census, InWork, Pace, Priority, Time, Why,
    pace::{Bucket, moment_after},
    slots::{Due, Line, SlotId, Slots, Wanted},
};
use crate::Key;
use std::{collections::BTreeSet, time::Duration};

/// How the work on a key ended, for the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing to do until somebody adds the key again.
    Settled,
    /// Well, and to be looked at again after this time.
    CheckAfter(Duration),
    /// Failed: once more after a pause that grows.
    Retry,
    /// Somebody else was faster: once more at once, a few times.
    Conflict,
    /// Not worked on to the end, by no fault of its own: once more, as if it had not been taken.
    Unfinished,
}

/// A key handed out. Nobody else gets it before it is given back.
#[derive(Debug)]
pub(super) struct Turn {
    pub(super) slot: SlotId,
    pub(super) key: Key,
    pub(super) why: Why,
    pub(super) priority: Priority,
    /// Failures before this turn, in a row.
    pub(super) failures: u32,
    /// From when it was wanted until now.
    pub(super) waited: Duration,
}

/// What became of a key given back.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Finished {
    /// In a row, this one included.
    pub(super) failures: u32,
    pub(super) is_dead: bool,
    /// Keys were refused before, and now there is room.
    pub(super) has_room: bool,
}

#[derive(Debug)]
pub(super) struct Sets {
    pace: Pace,
    slots: Slots,
    background: Line,
    fresh: Line,
    in_work: Line,
    due: BTreeSet<(Due, SlotId)>,
    due_by_health: [usize; 3],
    fresh_in_a_row: u32,
    bucket: Option<Bucket>,
    arrivals: u64,
    adds: u64,
    retries: u64,
    refused: u64,
    /// Keys were refused, and nobody has been told yet that there is room.
    owes: bool,
    last_take: Time,
}

impl Sets {
    pub(super) fn new(pace: Pace) -> Sets {
        Sets {
            slots: Slots::default(),
            background: Line::default(),
            fresh: Line::default(),
            in_work: Line::default(),
            due: BTreeSet::new(),
            due_by_health: [0; 3],
            fresh_in_a_row: 0,
            bucket: pace.rate.map(Bucket::new),
            arrivals: 0,
            adds: 0,
            retries: 0,
            refused: 0,
            owes: false,
            last_take: Time::ZERO,
            pace,
        }
    }

    /// Wants the key now. False if there is no room for it.
    pub(super) fn add(&mut self, key: &Key, why: Why, now: Time) -> bool {
        let Some(id) = self.slot(key, why) else { return false };
        let is_dead = self.slots[id].failures >= self.pace.dead_after;
        self.want_now(id, why.priority(), why, now);
        if is_dead && why.is_news() {
            self.set_failures(id, 0);
        }
        true
    }

    /// Wants the key after `delay`, unless it is wanted sooner already. False if there is no room.
    pub(super) fn add_after(&mut self, key: &Key, why: Why, delay: Duration, now: Time) -> bool {
        let Some(id) = self.slot(key, why) else { return false };
        self.want_after(id, why.priority(), why, delay, now);
        true
    }

    /// Hands out the next key, if one is wanted, nobody works on it, and the rate allows.
    pub(super) fn take(&mut self, now: Time) -> Option<Turn> {
        self.wake_due(now);
        if self.tokens(now) == 0 {
            return None;
        }
        let turn_of_others = self.fresh.len() == 0 || self.fresh_in_a_row >= self.pace.fresh_in_a_row;
        let line = match self.background.first() {
            Some(_) if turn_of_others => &mut self.background,
            _ => &mut self.fresh,
        };
        let id = line.first()?;
        line.leave(&mut self.slots, id);
        if let Some(bucket) = &mut self.bucket {
            bucket.spend(now);
        }
        let slot = &mut self.slots[id];
        self.fresh_in_a_row = match slot.priority {
            Priority::Fresh if self.background.len() > 0 => self.fresh_in_a_row + 1,
            _ => 0,
        };
        (slot.in_work, slot.wanted) = (true, Wanted::Not);
        let (why, priority, failures) = (slot.why, slot.priority, slot.failures);
        let turn = Turn {
            slot: id,
            key: slot.key.clone(),
            why,
            priority,
            failures,
            waited: now.saturating_sub(slot.since),
        };
        self.in_work.join(&mut self.slots, id, now);
        self.last_take = now;
        Some(turn)
    }

    /// Takes a key back.
    pub(super) fn finish(&mut self, turn: &Turn, verdict: Verdict, now: Time) -> Finished {
        let id = turn.slot;
        self.in_work.leave(&mut self.slots, id);
        let slot = &mut self.slots[id];
        slot.in_work = false;
        let failures = match verdict {
            Verdict::Settled | Verdict::CheckAfter(_) => 0,
            Verdict::Retry | Verdict::Conflict => slot.failures.saturating_add(1),
            Verdict::Unfinished => slot.failures,
        };
        self.set_failures(id, failures);
        if self.slots[id].wanted == Wanted::Now {
            self.stand(id, now);
        }
        match verdict {
            Verdict::Settled => {}
            Verdict::CheckAfter(delay) => self.want_after(id, turn.priority, Why::Check, delay, now),
            Verdict::Retry => {
                self.want_after(id, turn.priority, Why::Retry, self.pace.pause(failures), now);
            }
            Verdict::Conflict => match self.pace.pause_of_conflict(failures) {
                Duration::ZERO => self.want_now(id, turn.priority, Why::Conflict, now),
                pause => self.want_after(id, turn.priority, Why::Conflict, pause, now),
            },
            Verdict::Unfinished => self.want_now(id, turn.priority, turn.why, now),
        }
        if self.slots[id].wanted == Wanted::Not {
            self.slots.remove(id);
        }
        Finished { failures, is_dead: failures >= self.pace.dead_after, has_room: self.has_room() }
    }

    /// How many keys could be taken at this moment.
    pub(super) fn available(&mut self, now: Time) -> usize {
        self.wake_due(now);
        self.waiting().min(self.tokens(now))
    }

    /// When to look again, if nothing is available.
    pub(super) fn next_moment(&self) -> Option<Time> {
        match (&self.bucket, self.waiting()) {
            (Some(bucket), 1..) => Some(bucket.next()),
            _ => self.next_due(),
        }
    }

    pub(super) fn census(&mut self, now: Time) -> Census {
        self.wake_due(now);
        let lines = [&self.background, &self.fresh];
        let oldest = lines.iter().filter_map(|line| line.first()).map(|id| self.slots[id].since).min();
        let waiting_since = oldest.map(|since| since.max(self.last_take));
        let [delayed, in_back_off, dead] = self.due_by_health;
        Census {
            background: self.background.len(),
            fresh: self.fresh.len(),
            in_work: self.in_work.len(),
            delayed,
            in_back_off,
            dead,
            next_due: self.next_due().map(|due| due.saturating_sub(now)),
            adds: self.adds,
            retries: self.retries,
            refused: self.refused,
            untaken: waiting_since
                .filter(|_| self.tokens(now) > 0)
                .map_or(Duration::ZERO, |since| now.saturating_sub(since)),
        }
    }

    /// Longest first.
    pub(super) fn work_under_way(&self, now: Time) -> impl Iterator<Item = InWork> {
        let in_work = self.in_work.each(&self.slots);
        in_work.map(move |slot| InWork { key: slot.key.clone(), age: now.saturating_sub(slot.since) })
    }

    /// How many keys found no room, since the beginning.
    pub(super) fn refused(&self) -> u64 {
        self.refused
    }

    fn waiting(&self) -> usize {
        self.background.len() + self.fresh.len()
    }

    fn tokens(&self, now: Time) -> usize {
        self.bucket.as_ref().map_or(usize::MAX, |bucket| bucket.tokens(now))
    }

    fn next_due(&self) -> Option<Time> {
        self.due.first().map(|(Due(due, _), _)| *due)
    }

    fn slot(&mut self, key: &Key, why: Why) -> Option<SlotId> {
        if let Some(id) = self.slots.find(key) {
            return Some(id);
        }
        if self.slots.len() >= self.pace.limit {
            self.refused += 1;
            self.owes = true;
            return None;
        }
        Some(self.slots.insert(key, why))
    }

    /// True once after keys were refused: when so many have left that it is worth while.
    fn has_room(&mut self) -> bool {
        let (len, limit) = (self.slots.len(), self.pace.limit);
        let has_room = self.owes && (len <= limit / 2 || (len < limit && self.waiting() == 0));
        self.owes &= !has_room;
        has_room
    }

    fn want_now(&mut self, id: SlotId, priority: Priority, why: Why, now: Time) {
        let slot = &self.slots[id];
        match slot.wanted {
            Wanted::Now if priority <= slot.priority => {}
            // It overtakes, and goes behind those of its new priority.
            Wanted::Now => {
                let since = slot.since;
                if !slot.in_work {
                    self.background.leave(&mut self.slots, id);
                }
                self.stand_as(id, priority, why, since);
            }
            Wanted::At(due) => {
                let priority = priority.max(slot.priority);
                self.forget_due(due, id);
                self.stand_as(id, priority, why, now);
                self.adds += 1;
            }
            Wanted::Not => {
                self.stand_as(id, priority, why, now);
                self.adds += 1;
            }
        }
    }

    fn want_after(&mut self, id: SlotId, priority: Priority, why: Why, delay: Duration, now: Time) {
        self.retries += u64::from(!delay.is_zero());
        let moment = moment_after(now, delay);
        let slot = &self.slots[id];
        let priority = match slot.wanted {
            Wanted::Now => return,
            Wanted::At(Due(sooner, _)) if sooner <= moment => return,
            Wanted::At(later) => {
                let priority = priority.max(slot.priority);
                self.forget_due(later, id);
                priority
            }
            Wanted::Not => priority,
        };
        self.arrivals += 1;
        let due = Due(moment, self.arrivals);
        let slot = &mut self.slots[id];
        (slot.wanted, slot.priority, slot.why) = (Wanted::At(due), priority, why);
        self.due.insert((due, id));
        self.due_by_health[self.health(id)] += 1;
    }

    /// Everything whose time has come stands in its line now, in the order of those times.
    fn wake_due(&mut self, now: Time) {
        while let Some((due, id)) = self.due.first().copied() {
            if due.0 > now {
                return;
            }
            self.forget_due(due, id);
            let slot = &self.slots[id];
            let (priority, why) = (slot.priority, slot.why);
            self.stand_as(id, priority, why, now);
            self.adds += 1;
        }
    }

    fn forget_due(&mut self, due: Due, id: SlotId) {
        self.due.remove(&(due, id));
        self.due_by_health[self.health(id)] -= 1;
    }

    fn set_failures(&mut self, id: SlotId, failures: u32) {
        let is_due = usize::from(matches!(self.slots[id].wanted, Wanted::At(_)));
        self.due_by_health[self.health(id)] -= is_due;
        self.slots[id].failures = failures;
        self.due_by_health[self.health(id)] += is_due;
    }

    /// The place in `due_by_health`: well, failed before, or dead.
    fn health(&self, id: SlotId) -> usize {
        match self.slots[id].failures {
            0 => 0,
            failures if failures < self.pace.dead_after => 1,
            _ => 2,
        }
    }

    fn stand_as(&mut self, id: SlotId, priority: Priority, why: Why, since: Time) {
        let slot = &mut self.slots[id];
        (slot.wanted, slot.priority, slot.why) = (Wanted::Now, priority, why);
        if !slot.in_work {
            self.stand(id, since);
        }
    }

    fn stand(&mut self, id: SlotId, since: Time) {
        let line = match self.slots[id].priority {
            Priority::Background => &mut self.background,
            Priority::Fresh => &mut self.fresh,
        };
        line.join(&mut self.slots, id, since);
    }
}
