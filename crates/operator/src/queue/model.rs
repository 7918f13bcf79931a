//! A model of the queue that is simple enough to be obviously right, and generated histories in which
//! the real queue does the same.

use super::{
    Pace, Priority, Rate, Reason, Time,
    sets::{Finished, QueueItem, Requeue, Sets},
};
use crate::Key;
use proptest::prelude::*;
use std::{collections::BTreeMap, time::Duration};

/// A key that is due since or at a time.
#[derive(Clone, Debug)]
struct Entry {
    key: Key,
    priority: Priority,
    reason: Reason,
    at: Time,
}

/// Plain lists, in order of arrival.
struct Model {
    pace: Pace,
    waiting: Vec<Entry>,
    /// Added again while in progress.
    dirty: Vec<Entry>,
    later: Vec<Entry>,
    in_progress: Vec<Key>,
    failures: BTreeMap<Key, u32>,
    fresh_in_a_row: u32,
    /// The tokens in the bucket, as the time it takes to fill them in.
    filled: Duration,
    filled_at: Time,
    owes_refill: bool,
}

impl Model {
    fn new(pace: Pace) -> Model {
        Model {
            filled: Duration::MAX,
            pace,
            waiting: vec![],
            dirty: vec![],
            later: vec![],
            in_progress: vec![],
            failures: BTreeMap::new(),
            fresh_in_a_row: 0,
            filled_at: Time::ZERO,
            owes_refill: false,
        }
    }

    fn keys(&self) -> usize {
        let entries = [&self.waiting, &self.dirty, &self.later].into_iter().flatten();
        let mut all: Vec<_> = entries.map(|entry| &entry.key).chain(&self.in_progress).collect();
        all.sort();
        all.dedup();
        all.len()
    }

    fn knows(&self, key: &Key) -> bool {
        let mut entries = [&self.waiting, &self.dirty, &self.later].into_iter().flatten();
        entries.any(|entry| entry.key == *key) || self.in_progress.contains(key)
    }

    fn refuses(&mut self, key: &Key) -> bool {
        let refuses = !self.knows(key) && self.keys() >= self.pace.limit;
        self.owes_refill |= refuses;
        refuses
    }

    fn add(&mut self, key: &Key, reason: Reason, now: Time) -> bool {
        if self.refuses(key) {
            return false;
        }
        self.want(key, reason.priority(), reason, now);
        if matches!(reason, Reason::Changed | Reason::Asked) && self.failed(key) >= self.pace.dead_after {
            self.failures.remove(key);
        }
        true
    }

    fn add_after(&mut self, key: &Key, reason: Reason, delay: Duration, now: Time) -> bool {
        if self.refuses(key) {
            return false;
        }
        self.want_later(key, reason.priority(), reason, now + delay);
        true
    }

    fn want(&mut self, key: &Key, mut priority: Priority, reason: Reason, now: Time) {
        if let Some(at) = self.later.iter().position(|entry| entry.key == *key) {
            priority = priority.max(self.later.remove(at).priority);
        }
        let list = if self.in_progress.contains(key) { &mut self.dirty } else { &mut self.waiting };
        let mut entry = Entry { key: key.clone(), priority, reason, at: now };
        if let Some(at) = list.iter().position(|entry| entry.key == *key) {
            if list[at].priority >= priority {
                return;
            }
            entry.at = list.remove(at).at;
        }
        list.push(entry);
    }

    fn want_later(&mut self, key: &Key, mut priority: Priority, reason: Reason, at: Time) {
        if self.waiting.iter().chain(&self.dirty).any(|entry| entry.key == *key) {
            return;
        }
        if let Some(other) = self.later.iter().position(|entry| entry.key == *key) {
            if self.later[other].at <= at {
                return;
            }
            priority = priority.max(self.later.remove(other).priority);
        }
        self.later.push(Entry { key: key.clone(), priority, reason, at });
    }

    fn pass(&mut self, now: Time) {
        while let Some(earliest) = self.later.iter().map(|entry| entry.at).min().filter(|at| *at <= now) {
            let at = self.later.iter().position(|entry| entry.at == earliest).expect("just found");
            let entry = self.later.remove(at);
            self.want(&entry.key, entry.priority, entry.reason, now);
        }
        if let Some(rate) = self.pace.rate {
            let interval = Duration::from_secs_f64(1.0 / rate.per_second);
            let filled = self.filled.saturating_add(now - self.filled_at);
            (self.filled, self.filled_at) = (filled.min(interval * rate.burst), now);
        }
    }

    fn take(&mut self, now: Time) -> Option<(Key, Reason, u32, Duration)> {
        self.pass(now);
        let interval = self.pace.rate.map(|rate| Duration::from_secs_f64(1.0 / rate.per_second));
        if interval.is_some_and(|interval| self.filled < interval) {
            return None;
        }
        let of = |priority| self.waiting.iter().position(|entry| entry.priority == priority);
        let at = match (of(Priority::Fresh), of(Priority::Background)) {
            (Some(_), Some(other)) if self.fresh_in_a_row >= self.pace.fresh_in_a_row => other,
            (fresh, other) => fresh.or(other)?,
        };
        let entry = self.waiting.remove(at);
        let others_wait = self.waiting.iter().any(|entry| entry.priority == Priority::Background);
        let counts = entry.priority == Priority::Fresh && others_wait;
        self.fresh_in_a_row = if counts { self.fresh_in_a_row + 1 } else { 0 };
        self.filled = self.filled.saturating_sub(interval.unwrap_or_default());
        self.in_progress.push(entry.key.clone());
        let failures = self.failed(&entry.key);
        Some((entry.key, entry.reason, failures, now - entry.at))
    }

    fn finish(&mut self, item: &QueueItem, requeue: Requeue, now: Time) -> Finished {
        let key = &item.key;
        self.in_progress.retain(|other| other != key);
        let failures = match requeue {
            Requeue::No | Requeue::After(_) => 0,
            Requeue::WithBackoff | Requeue::AfterConflict => self.failed(key) + 1,
            Requeue::Unfinished => self.failed(key),
        };
        self.failures.insert(key.clone(), failures);
        if let Some(at) = self.dirty.iter().position(|entry| entry.key == *key) {
            let entry = self.dirty.remove(at);
            self.waiting.push(Entry { at: now, ..entry });
        }
        let pause = self.pace.pause(key, failures);
        match requeue {
            Requeue::No => {}
            Requeue::After(delay) => self.want_later(key, item.priority, Reason::Check, now + delay),
            Requeue::WithBackoff => self.want_later(key, item.priority, Reason::Retry, now + pause),
            Requeue::AfterConflict if failures <= 3 => self.want(key, item.priority, Reason::Conflict, now),
            Requeue::AfterConflict => self.want_later(key, item.priority, Reason::Conflict, now + pause),
            Requeue::Unfinished => self.want(key, item.priority, item.reason, now),
        }
        if !self.knows(key) {
            self.failures.remove(key);
        }
        let (keys, limit) = (self.keys(), self.pace.limit);
        let has_room = self.owes_refill && (keys <= limit / 2 || (keys < limit && self.waiting.is_empty()));
        self.owes_refill &= !has_room;
        Finished { failures, is_dead: failures >= self.pace.dead_after, has_room }
    }

    fn failed(&self, key: &Key) -> u32 {
        self.failures.get(key).copied().unwrap_or(0)
    }

    /// Background, fresh, in progress; and of the scheduled keys: delayed, in back-off, dead.
    fn counts(&self) -> [usize; 6] {
        let waiting = |priority| self.waiting.iter().filter(|entry| entry.priority == priority).count();
        let resting = |test: &dyn Fn(u32) -> bool| {
            self.later.iter().filter(|entry| test(self.failed(&entry.key))).count()
        };
        let dead_after = self.pace.dead_after;
        [
            waiting(Priority::Background),
            waiting(Priority::Fresh),
            self.in_progress.len(),
            resting(&|failures| failures == 0),
            resting(&|failures| failures > 0 && failures < dead_after),
            resting(&|failures| failures > 0 && failures >= dead_after),
        ]
    }
}

#[derive(Clone, Debug)]
enum Step {
    Add(usize, Reason),
    AddAfter(usize, Reason, u64),
    Take,
    Finish(usize, Requeue),
    Pass(u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let reason =
        || prop::sample::select(vec![Reason::Initial, Reason::Resync, Reason::Changed, Reason::Asked]);
    let requeue = prop_oneof![
        Just(Requeue::No),
        Just(Requeue::WithBackoff),
        Just(Requeue::WithBackoff),
        Just(Requeue::AfterConflict),
        Just(Requeue::Unfinished),
        (0..60u64).prop_map(|after| Requeue::After(Duration::from_millis(after))),
    ];
    let step = prop_oneof![
        3 => (0..KEYS, reason()).prop_map(|(key, reason)| Step::Add(key, reason)),
        1 => (0..KEYS, reason(), 0..60u64).prop_map(|(key, reason, after)| Step::AddAfter(key, reason, after)),
        4 => Just(Step::Take),
        4 => (0..KEYS, requeue).prop_map(|(which, requeue)| Step::Finish(which, requeue)),
        1 => (1..40u64).prop_map(Step::Pass),
    ];
    prop::collection::vec(step, 1..250)
}

const KEYS: usize = 7;

fn paces() -> impl Strategy<Value = Pace> {
    let rate = prop::option::of((20..200u32, 1..4u32));
    (rate, 3..=KEYS, 1..4u32, 1..6u32).prop_map(|(rate, limit, fresh_in_a_row, dead_after)| Pace {
        longest_pause: Duration::from_millis(100),
        rate: rate.map(|(per_second, burst)| Rate { per_second: f64::from(per_second), burst }),
        limit,
        fresh_in_a_row,
        dead_after,
        ..Pace::default()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]
    #[test]
    fn queue_does_what_the_model_does(steps in steps(), pace in paces()) {
        let keys: Vec<_> = (0..KEYS).map(|key| Key::new(Some("n"), &key.to_string())).collect();
        let (mut sets, mut model) = (Sets::new(pace.clone()), Model::new(pace));
        let (mut now, mut taken) = (Time::ZERO, Vec::<QueueItem>::new());
        for step in steps {
            match step.clone() {
                Step::Add(key, reason) => {
                    prop_assert_eq!(sets.add(&keys[key], reason, now), model.add(&keys[key], reason, now));
                }
                Step::AddAfter(key, reason, after) => {
                    let after = Duration::from_millis(after);
                    let added = sets.add_after(&keys[key], reason, after, now);
                    prop_assert_eq!(added, model.add_after(&keys[key], reason, after, now));
                }
                Step::Take => {
                    let item = sets.take(now);
                    let found = item.as_ref().map(|item| (item.key.clone(), item.reason, item.failures, item.waited));
                    prop_assert_eq!(found, model.take(now));
                    taken.extend(item);
                }
                Step::Finish(which, requeue) if which < taken.len() => {
                    let item = taken.remove(which);
                    prop_assert_eq!(sets.finish(&item, requeue, now), model.finish(&item, requeue, now));
                }
                Step::Finish(..) => {}
                Step::Pass(time) => now += Duration::from_millis(time),
            }
            model.pass(now);
            let stats = sets.stats(now);
            let counts = [
                stats.background, stats.fresh, stats.in_progress, stats.delayed, stats.in_back_off, stats.dead,
            ];
            prop_assert_eq!(counts, model.counts(), "after {:?}", step);
            // A worker that sleeps until the time that the queue names misses no key.
            match sets.available(now) {
                0 if stats.background + stats.fresh + stats.delayed + stats.in_back_off + stats.dead > 0 => {
                    prop_assert!(sets.next_time().is_some_and(|next| next > now));
                }
                0 => prop_assert_eq!(sets.next_time(), None),
                _ => {}
            }
        }
    }
}
