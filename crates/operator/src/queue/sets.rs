//! The state of a queue, without a clock, a lock or a task: which keys wait, are delayed and are in progress.
//!
//! A key is scheduled for now, scheduled for later, or not scheduled; independently of that it may be
//! in progress. A key that is scheduled while in progress (client-go: dirty) waits until that is
//! finished, so that a key is never in progress twice, and no change goes without a reconcile.

use super::{
    InProgress, Pace, Priority, Reason, Stats, Time,
    pace::{Bucket, time_after},
    slots::{Due, Fifo, Scheduled, SlotId, Slots},
};
use crate::Key;
use std::{collections::BTreeSet, time::Duration};

/// Whether and when a key comes back into the queue after a reconcile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Requeue {
    /// Not before it is added again.
    No,
    /// After this time; the reconcile succeeded.
    After(Duration),
    /// After a pause that grows with each failure in a row.
    WithBackoff,
    /// At once for the first few conflicts in a row, then with back-off.
    AfterConflict,
    /// At once, as if it had not been taken: the reconcile was interrupted.
    Unfinished,
}

/// A key that a worker has taken. No other worker gets it before it is finished.
#[derive(Debug)]
pub(super) struct QueueItem {
    pub(super) slot: SlotId,
    pub(super) key: Key,
    pub(super) reason: Reason,
    pub(super) priority: Priority,
    /// Failures in a row before this reconcile.
    pub(super) failures: u32,
    /// From when it was due until it was taken.
    pub(super) waited: Duration,
}

/// The state of a key after its reconcile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Finished {
    /// Failures in a row, this one included.
    pub failures: u32,
    /// There were so many that it is retried rarely now.
    pub is_dead: bool,
    /// The queue was full and refused keys before, and now it has room.
    pub(super) has_room: bool,
}

#[derive(Debug)]
pub(super) struct Sets {
    pace: Pace,
    slots: Slots,
    background: Fifo,
    fresh: Fifo,
    in_progress: Fifo,
    due: BTreeSet<(Due, SlotId)>,
    due_by_health: [usize; 3],
    fresh_in_a_row: u32,
    bucket: Option<Bucket>,
    arrivals: u64,
    adds: u64,
    retries: u64,
    refused: u64,
    /// Keys were refused since the last refill.
    owes_refill: bool,
    last_take: Time,
}

impl Sets {
    pub(super) fn new(pace: Pace) -> Sets {
        Sets {
            slots: Slots::default(),
            background: Fifo::default(),
            fresh: Fifo::default(),
            in_progress: Fifo::default(),
            due: BTreeSet::new(),
            due_by_health: [0; 3],
            fresh_in_a_row: 0,
            bucket: pace.rate.map(Bucket::new),
            arrivals: 0,
            adds: 0,
            retries: 0,
            refused: 0,
            owes_refill: false,
            last_take: Time::ZERO,
            pace,
        }
    }

    /// Schedules the key for now. False if there is no room for it.
    pub(super) fn add(&mut self, key: &Key, reason: Reason, now: Time) -> bool {
        let Some(id) = self.slot(key, reason) else { return false };
        let is_dead = self.slots[id].failures >= self.pace.dead_after;
        self.schedule_now(id, reason.priority(), reason, now);
        if is_dead && reason.ends_back_off() {
            self.set_failures(id, 0);
        }
        true
    }

    /// Schedules the key after `delay`, unless it is due sooner already. False if there is no room for it.
    pub(super) fn add_after(&mut self, key: &Key, reason: Reason, delay: Duration, now: Time) -> bool {
        let Some(id) = self.slot(key, reason) else { return false };
        self.schedule_after(id, reason.priority(), reason, delay, now);
        true
    }

    /// The next key that is due and not in progress, if the rate allows.
    pub(super) fn take(&mut self, now: Time) -> Option<QueueItem> {
        self.enqueue_due(now);
        if self.tokens(now) == 0 {
            return None;
        }
        let background_goes_first = self.fresh.len() == 0 || self.fresh_in_a_row >= self.pace.fresh_in_a_row;
        let list = match self.background.first() {
            Some(_) if background_goes_first => &mut self.background,
            _ => &mut self.fresh,
        };
        let id = list.first()?;
        list.remove(&mut self.slots, id);
        if let Some(bucket) = &mut self.bucket {
            bucket.spend(now);
        }
        let slot = &mut self.slots[id];
        self.fresh_in_a_row = match slot.priority {
            Priority::Fresh if self.background.len() > 0 => self.fresh_in_a_row + 1,
            _ => 0,
        };
        (slot.in_progress, slot.scheduled) = (true, Scheduled::No);
        let (reason, priority, failures) = (slot.reason, slot.priority, slot.failures);
        let item = QueueItem {
            slot: id,
            key: slot.key.clone(),
            reason,
            priority,
            failures,
            waited: now.saturating_sub(slot.since),
        };
        self.in_progress.push(&mut self.slots, id, now);
        self.last_take = now;
        Some(item)
    }

    pub(super) fn finish(&mut self, item: &QueueItem, requeue: Requeue, now: Time) -> Finished {
        let id = item.slot;
        self.in_progress.remove(&mut self.slots, id);
        let slot = &mut self.slots[id];
        slot.in_progress = false;
        let failures = match requeue {
            Requeue::No | Requeue::After(_) => 0,
            Requeue::WithBackoff | Requeue::AfterConflict => slot.failures.saturating_add(1),
            Requeue::Unfinished => slot.failures,
        };
        self.set_failures(id, failures);
        if self.slots[id].scheduled == Scheduled::Now {
            self.enqueue(id, now);
        }
        match requeue {
            Requeue::No => {}
            Requeue::After(delay) => self.schedule_after(id, item.priority, Reason::Check, delay, now),
            Requeue::WithBackoff => {
                self.schedule_after(
                    id,
                    item.priority,
                    Reason::Retry,
                    self.pace.pause(&item.key, failures),
                    now,
                );
            }
            Requeue::AfterConflict => match self.pace.pause_of_conflict(&item.key, failures) {
                Duration::ZERO => self.schedule_now(id, item.priority, Reason::Conflict, now),
                pause => self.schedule_after(id, item.priority, Reason::Conflict, pause, now),
            },
            Requeue::Unfinished => self.schedule_now(id, item.priority, item.reason, now),
        }
        if self.slots[id].scheduled == Scheduled::No {
            self.slots.remove(id);
        }
        Finished { failures, is_dead: failures >= self.pace.dead_after, has_room: self.has_room() }
    }

    /// How many keys could be taken now.
    pub(super) fn available(&mut self, now: Time) -> usize {
        self.enqueue_due(now);
        self.waiting().min(self.tokens(now))
    }

    /// When a key can be taken, if none can be now.
    pub(super) fn next_time(&self) -> Option<Time> {
        match (&self.bucket, self.waiting()) {
            (Some(bucket), 1..) => Some(bucket.next()),
            _ => self.next_due(),
        }
    }

    pub(super) fn stats(&mut self, now: Time) -> Stats {
        self.enqueue_due(now);
        let lists = [&self.background, &self.fresh];
        let oldest = lists.iter().filter_map(|list| list.first()).map(|id| self.slots[id].since).min();
        let waiting_since = oldest.map(|since| since.max(self.last_take));
        let [delayed, in_back_off, dead] = self.due_by_health;
        Stats {
            background: self.background.len(),
            fresh: self.fresh.len(),
            in_progress: self.in_progress.len(),
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

    /// The longest-running first.
    pub(super) fn in_progress(&self, now: Time) -> impl Iterator<Item = InProgress> {
        let in_progress = self.in_progress.iter(&self.slots);
        in_progress.map(move |slot| InProgress { key: slot.key.clone(), age: now.saturating_sub(slot.since) })
    }

    /// How many keys were refused so far because there was no room.
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

    fn slot(&mut self, key: &Key, reason: Reason) -> Option<SlotId> {
        if let Some(id) = self.slots.find(key) {
            return Some(id);
        }
        if self.slots.len() >= self.pace.limit {
            self.refused += 1;
            self.owes_refill = true;
            return None;
        }
        Some(self.slots.insert(key, reason))
    }

    /// True once after keys were refused, when half of the queue is free or nothing waits.
    fn has_room(&mut self) -> bool {
        let (len, limit) = (self.slots.len(), self.pace.limit);
        let has_room = self.owes_refill && (len <= limit / 2 || (len < limit && self.waiting() == 0));
        self.owes_refill &= !has_room;
        has_room
    }

    fn schedule_now(&mut self, id: SlotId, priority: Priority, reason: Reason, now: Time) {
        let slot = &self.slots[id];
        match slot.scheduled {
            Scheduled::Now if priority <= slot.priority => {}
            // It moves to the end of the list of its new priority.
            Scheduled::Now => {
                let since = slot.since;
                if !slot.in_progress {
                    self.background.remove(&mut self.slots, id);
                }
                self.enqueue_as(id, priority, reason, since);
            }
            Scheduled::At(due) => {
                let priority = priority.max(slot.priority);
                self.unschedule(due, id);
                self.enqueue_as(id, priority, reason, now);
                self.adds += 1;
            }
            Scheduled::No => {
                self.enqueue_as(id, priority, reason, now);
                self.adds += 1;
            }
        }
    }

    fn schedule_after(&mut self, id: SlotId, priority: Priority, reason: Reason, delay: Duration, now: Time) {
        self.retries += u64::from(!delay.is_zero());
        let time = time_after(now, delay);
        let slot = &self.slots[id];
        let priority = match slot.scheduled {
            Scheduled::Now => return,
            Scheduled::At(Due(sooner, _)) if sooner <= time => return,
            Scheduled::At(later) => {
                let priority = priority.max(slot.priority);
                self.unschedule(later, id);
                priority
            }
            Scheduled::No => priority,
        };
        self.arrivals += 1;
        let due = Due(time, self.arrivals);
        let slot = &mut self.slots[id];
        (slot.scheduled, slot.priority, slot.reason) = (Scheduled::At(due), priority, reason);
        self.due.insert((due, id));
        self.due_by_health[self.health(id)] += 1;
    }

    /// Moves the keys that are due now into their lists, in the order of their times.
    fn enqueue_due(&mut self, now: Time) {
        while let Some((due, id)) = self.due.first().copied() {
            if due.0 > now {
                return;
            }
            self.unschedule(due, id);
            let slot = &self.slots[id];
            let (priority, reason) = (slot.priority, slot.reason);
            self.enqueue_as(id, priority, reason, now);
            self.adds += 1;
        }
    }

    fn unschedule(&mut self, due: Due, id: SlotId) {
        self.due.remove(&(due, id));
        self.due_by_health[self.health(id)] -= 1;
    }

    fn set_failures(&mut self, id: SlotId, failures: u32) {
        let is_due = usize::from(matches!(self.slots[id].scheduled, Scheduled::At(_)));
        self.due_by_health[self.health(id)] -= is_due;
        self.slots[id].failures = failures;
        self.due_by_health[self.health(id)] += is_due;
    }

    /// The index into `due_by_health`: 0 without failures, 1 in back-off, 2 dead.
    fn health(&self, id: SlotId) -> usize {
        match self.slots[id].failures {
            0 => 0,
            failures if failures < self.pace.dead_after => 1,
            _ => 2,
        }
    }

    fn enqueue_as(&mut self, id: SlotId, priority: Priority, reason: Reason, since: Time) {
        let slot = &mut self.slots[id];
        (slot.scheduled, slot.priority, slot.reason) = (Scheduled::Now, priority, reason);
        if !slot.in_progress {
            self.enqueue(id, since);
        }
    }

    fn enqueue(&mut self, id: SlotId, since: Time) {
        let list = match self.slots[id].priority {
            Priority::Background => &mut self.background,
            Priority::Fresh => &mut self.fresh,
        };
        list.push(&mut self.slots, id, since);
    }
}
