//! What a queue must do, written so plainly that it can be seen to be right, and generated
//! histories in which the real one does the same.

use super::{
    Pace, Priority, Rate, Time, Why,
    sets::{Finished, Sets, Turn, Verdict},
};
use crate::Key;
use proptest::prelude::*;
use std::{collections::BTreeMap, time::Duration};

/// A key that somebody wants, since or at a time.
#[derive(Clone, Debug)]
struct Wish {
    key: Key,
    priority: Priority,
    why: Why,
    at: Time,
}

/// Plain lists, in order of arrival.
struct Model {
    pace: Pace,
    waiting: Vec<Wish>,
    /// Wanted again by somebody while in work.
    dirty: Vec<Wish>,
    later: Vec<Wish>,
    in_work: Vec<Key>,
    failures: BTreeMap<Key, u32>,
    fresh_in_a_row: u32,
    /// Tokens, as the time it takes to fill them in.
    filled: Duration,
    filled_at: Time,
    owes: bool,
}

impl Model {
    fn new(pace: Pace) -> Model {
        Model {
            filled: Duration::MAX,
            pace,
            waiting: vec![],
            dirty: vec![],
            later: vec![],
            in_work: vec![],
            failures: BTreeMap::new(),
            fresh_in_a_row: 0,
            filled_at: Time::ZERO,
            owes: false,
        }
    }

    fn keys(&self) -> usize {
        let wishes = [&self.waiting, &self.dirty, &self.later].into_iter().flatten();
        let mut all: Vec<_> = wishes.map(|wish| &wish.key).chain(&self.in_work).collect();
        all.sort();
        all.dedup();
        all.len()
    }

    fn knows(&self, key: &Key) -> bool {
        let mut wishes = [&self.waiting, &self.dirty, &self.later].into_iter().flatten();
        wishes.any(|wish| wish.key == *key) || self.in_work.contains(key)
    }

    fn refuses(&mut self, key: &Key) -> bool {
        let refuses = !self.knows(key) && self.keys() >= self.pace.limit;
        self.owes |= refuses;
        refuses
    }

    fn add(&mut self, key: &Key, why: Why, now: Time) -> bool {
        if self.refuses(key) {
            return false;
        }
        self.want(key, why.priority(), why, now);
        if matches!(why, Why::Changed | Why::Asked) && self.failed(key) >= self.pace.dead_after {
            self.failures.remove(key);
        }
        true
    }

    fn add_after(&mut self, key: &Key, why: Why, delay: Duration, now: Time) -> bool {
        if self.refuses(key) {
            return false;
        }
        self.want_later(key, why.priority(), why, now + delay);
        true
    }

    fn want(&mut self, key: &Key, mut priority: Priority, why: Why, now: Time) {
        if let Some(at) = self.later.iter().position(|wish| wish.key == *key) {
            priority = priority.max(self.later.remove(at).priority);
        }
        let list = if self.in_work.contains(key) { &mut self.dirty } else { &mut self.waiting };
        let mut wish = Wish { key: key.clone(), priority, why, at: now };
        if let Some(at) = list.iter().position(|wish| wish.key == *key) {
            if list[at].priority >= priority {
                return;
            }
            wish.at = list.remove(at).at;
        }
        list.push(wish);
    }

    fn want_later(&mut self, key: &Key, mut priority: Priority, why: Why, at: Time) {
        if self.waiting.iter().chain(&self.dirty).any(|wish| wish.key == *key) {
            return;
        }
        if let Some(other) = self.later.iter().position(|wish| wish.key == *key) {
            if self.later[other].at <= at {
                return;
            }
            priority = priority.max(self.later.remove(other).priority);
        }
        self.later.push(Wish { key: key.clone(), priority, why, at });
    }

    fn pass(&mut self, now: Time) {
        while let Some(earliest) = self.later.iter().map(|wish| wish.at).min().filter(|at| *at <= now) {
            let at = self.later.iter().position(|wish| wish.at == earliest).expect("just found");
            let wish = self.later.remove(at);
            self.want(&wish.key, wish.priority, wish.why, now);
        }
        if let Some(rate) = self.pace.rate {
            let interval = Duration::from_secs_f64(1.0 / rate.per_second);
            let filled = self.filled.saturating_add(now - self.filled_at);
            (self.filled, self.filled_at) = (filled.min(interval * rate.burst), now);
        }
    }

    fn take(&mut self, now: Time) -> Option<(Key, Why, u32, Duration)> {
        self.pass(now);
        let interval = self.pace.rate.map(|rate| Duration::from_secs_f64(1.0 / rate.per_second));
        if interval.is_some_and(|interval| self.filled < interval) {
            return None;
        }
        let of = |priority| self.waiting.iter().position(|wish| wish.priority == priority);
        let at = match (of(Priority::Fresh), of(Priority::Background)) {
            (Some(_), Some(other)) if self.fresh_in_a_row >= self.pace.fresh_in_a_row => other,
            (fresh, other) => fresh.or(other)?,
        };
        let wish = self.waiting.remove(at);
        let others_wait = self.waiting.iter().any(|wish| wish.priority == Priority::Background);
        let counts = wish.priority == Priority::Fresh && others_wait;
        self.fresh_in_a_row = if counts { self.fresh_in_a_row + 1 } else { 0 };
        self.filled = self.filled.saturating_sub(interval.unwrap_or_default());
        self.in_work.push(wish.key.clone());
        let failures = self.failed(&wish.key);
        Some((wish.key, wish.why, failures, now - wish.at))
    }

    fn finish(&mut self, turn: &Turn, verdict: Verdict, now: Time) -> Finished {
        let key = &turn.key;
        self.in_work.retain(|other| other != key);
        let failures = match verdict {
            Verdict::Settled | Verdict::CheckAfter(_) => 0,
            Verdict::Retry | Verdict::Conflict => self.failed(key) + 1,
            Verdict::Unfinished => self.failed(key),
        };
        self.failures.insert(key.clone(), failures);
        if let Some(at) = self.dirty.iter().position(|wish| wish.key == *key) {
            let wish = self.dirty.remove(at);
            self.waiting.push(Wish { at: now, ..wish });
        }
        let pause = self.pace.pause(failures);
        match verdict {
            Verdict::Settled => {}
            Verdict::CheckAfter(delay) => self.want_later(key, turn.priority, Why::Check, now + delay),
            Verdict::Retry => self.want_later(key, turn.priority, Why::Retry, now + pause),
            Verdict::Conflict if failures <= 3 => self.want(key, turn.priority, Why::Conflict, now),
            Verdict::Conflict => self.want_later(key, turn.priority, Why::Conflict, now + pause),
            Verdict::Unfinished => self.want(key, turn.priority, turn.why, now),
        }
        if !self.knows(key) {
            self.failures.remove(key);
        }
        let (keys, limit) = (self.keys(), self.pace.limit);
        let has_room = self.owes && (keys <= limit / 2 || (keys < limit && self.waiting.is_empty()));
        self.owes &= !has_room;
        Finished { failures, is_dead: failures >= self.pace.dead_after, has_room }
    }

    fn failed(&self, key: &Key) -> u32 {
        self.failures.get(key).copied().unwrap_or(0)
    }

    /// Background, fresh, in work; and of those that rest: delayed, in back-off, dead.
    fn counts(&self) -> [usize; 6] {
        let waiting = |priority| self.waiting.iter().filter(|wish| wish.priority == priority).count();
        let resting = |test: &dyn Fn(u32) -> bool| {
            self.later.iter().filter(|wish| test(self.failed(&wish.key))).count()
        };
        let dead_after = self.pace.dead_after;
        [
            waiting(Priority::Background),
            waiting(Priority::Fresh),
            self.in_work.len(),
            resting(&|failures| failures == 0),
            resting(&|failures| failures > 0 && failures < dead_after),
            resting(&|failures| failures > 0 && failures >= dead_after),
        ]
    }
}

#[derive(Clone, Debug)]
enum Step {
    Add(usize, Why),
    AddAfter(usize, Why, u64),
    Take,
    Finish(usize, Verdict),
    Pass(u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let why = || prop::sample::select(vec![Why::Initial, Why::Resync, Why::Changed, Why::Asked]);
    let verdict = prop_oneof![
        Just(Verdict::Settled),
        Just(Verdict::Retry),
        Just(Verdict::Retry),
        Just(Verdict::Conflict),
        Just(Verdict::Unfinished),
        (0..60u64).prop_map(|after| Verdict::CheckAfter(Duration::from_millis(after))),
    ];
    let step = prop_oneof![
        3 => (0..KEYS, why()).prop_map(|(key, why)| Step::Add(key, why)),
        1 => (0..KEYS, why(), 0..60u64).prop_map(|(key, why, after)| Step::AddAfter(key, why, after)),
        4 => Just(Step::Take),
        4 => (0..KEYS, verdict).prop_map(|(which, verdict)| Step::Finish(which, verdict)),
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
        let (mut now, mut turns) = (Time::ZERO, Vec::<Turn>::new());
        for step in steps {
            match step.clone() {
                Step::Add(key, why) => {
                    prop_assert_eq!(sets.add(&keys[key], why, now), model.add(&keys[key], why, now));
                }
                Step::AddAfter(key, why, after) => {
                    let after = Duration::from_millis(after);
                    let added = sets.add_after(&keys[key], why, after, now);
                    prop_assert_eq!(added, model.add_after(&keys[key], why, after, now));
                }
                Step::Take => {
                    let turn = sets.take(now);
                    let found = turn.as_ref().map(|turn| (turn.key.clone(), turn.why, turn.failures, turn.waited));
                    prop_assert_eq!(found, model.take(now));
                    turns.extend(turn);
                }
                Step::Finish(which, verdict) if which < turns.len() => {
                    let turn = turns.remove(which);
                    prop_assert_eq!(sets.finish(&turn, verdict, now), model.finish(&turn, verdict, now));
                }
                Step::Finish(..) => {}
                Step::Pass(time) => now += Duration::from_millis(time),
            }
            model.pass(now);
            let census = sets.census(now);
            let counts = [
                census.background, census.fresh, census.in_work, census.delayed, census.in_back_off, census.dead,
            ];
            prop_assert_eq!(counts, model.counts(), "after {:?}", step);
            // Who sleeps until the moment that the queue names misses nothing.
            match sets.available(now) {
                0 if census.background + census.fresh + census.delayed + census.in_back_off + census.dead > 0 => {
                    prop_assert!(sets.next_moment().is_some_and(|next| next > now));
                }
                0 => prop_assert_eq!(sets.next_moment(), None),
                _ => {}
            }
        }
    }
}
