//! How fast a queue hands out keys: pauses after failures, and a rate over all keys.

use super::Time;
use crate::Key;
use foldhash::fast::FixedState;
use std::{hash::BuildHasher, time::Duration};

/// So many conflicts in a row are retried at once; further ones after a pause, like any failure.
const CONFLICTS_AT_ONCE: u32 = 3;
/// Longer delays are cut to a year, which clocks and timers can represent.
const LONGEST_DELAY: Duration = Duration::from_secs(365 * 24 * 3600);

/// The pauses, priorities, rate and size of a queue.
#[derive(Clone, Debug)]
pub struct Pace {
    /// The pause after the first failure of a key; every further one doubles it.
    pub first_pause: Duration,
    /// No pause is longer. The default is two minutes: after a cause outside of the cluster is repaired (a quota, a
    /// firewall, a cloud), the object recovers within that time. controller-runtime waits up to 1000 seconds, which
    /// saves a request every two minutes for each failing object.
    pub longest_pause: Duration,
    /// Pauses are shortened by up to this share, each key by another one: objects that fail together are not all
    /// retried together.
    pub jitter: f64,
    /// After so many failures in a row a key is dead: it is retried after the longest pause only, or as
    /// soon as its object changes.
    pub dead_after: u32,
    /// After so many fresh keys in a row, a background key is taken if one waits.
    pub fresh_in_a_row: u32,
    /// For all keys together. Without it, keys are taken as fast as workers ask.
    pub rate: Option<Rate>,
    /// The most keys at once. See [`Queue`](super::Queue) for what becomes of more.
    pub limit: usize,
}

/// A token bucket.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rate {
    /// So many in a second in the long run.
    pub per_second: f64,
    /// So many at once after a quiet time.
    pub burst: u32,
}

impl Default for Pace {
    fn default() -> Pace {
        Pace {
            // controller-runtime: the same.
            first_pause: Duration::from_millis(5),
            longest_pause: Duration::from_secs(120),
            jitter: 0.2,
            // With the pauses above, more than a minute after the first failure.
            dead_after: 15,
            fresh_in_a_row: 15,
            rate: None,
            // At some 150 bytes each: a small part of what the objects themselves take in the cache.
            limit: 1_000_000,
        }
    }
}

impl Pace {
    /// The pause of this key after so many failures in a row.
    pub(super) fn pause(&self, key: &Key, failures: u32) -> Duration {
        let whole = match failures >= self.dead_after {
            true => self.longest_pause,
            false => {
                let doublings = failures.saturating_sub(1).min(31);
                self.first_pause.saturating_mul(1 << doublings).min(self.longest_pause)
            }
        };
        // By key and failures, and not by chance: only one process retries, and its runs can be repeated.
        let share = FixedState::default().hash_one((key, failures)) as f64 / u64::MAX as f64;
        whole.mul_f64(1.0 - self.jitter.clamp(0.0, 1.0) * share)
    }

    pub(super) fn pause_of_conflict(&self, key: &Key, failures: u32) -> Duration {
        if failures <= CONFLICTS_AT_ONCE { Duration::ZERO } else { self.pause(key, failures) }
    }
}

pub(super) fn time_after(now: Time, delay: Duration) -> Time {
    now + delay.min(LONGEST_DELAY)
}

/// A bucket of tokens that fills at the rate. Kept as the moment at which it will be full, so that it
/// needs no timer.
#[derive(Debug)]
pub(super) struct Bucket {
    interval: Duration,
    burst: u32,
    full_at: Time,
}

impl Bucket {
    pub(super) fn new(rate: Rate) -> Bucket {
        let interval = Duration::try_from_secs_f64(1.0 / rate.per_second).unwrap_or(LONGEST_DELAY);
        Bucket { interval: interval.min(LONGEST_DELAY), burst: rate.burst.max(1), full_at: Time::ZERO }
    }

    pub(super) fn tokens(&self, now: Time) -> usize {
        if self.interval.is_zero() {
            return usize::MAX;
        }
        let missing = self.full_at.saturating_sub(now).as_nanos().div_ceil(self.interval.as_nanos());
        (u128::from(self.burst).saturating_sub(missing)) as usize
    }

    pub(super) fn spend(&mut self, now: Time) {
        self.full_at = self.full_at.max(now) + self.interval;
    }

    /// When there will be a token.
    pub(super) fn next(&self) -> Time {
        self.full_at.saturating_sub(self.interval * (self.burst - 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_longest() {
        let longest_pause = Duration::from_millis(70);
        let pace = Pace { dead_after: 6, longest_pause, jitter: 0.0, ..Pace::default() };
        let key = Key::parse("shop/cart");
        let pauses: Vec<_> = (1..=7).map(|failures| pace.pause(&key, failures).as_millis()).collect();
        assert_eq!(pauses, [5, 10, 20, 40, 70, 70, 70]);
        let conflicts: Vec<_> =
            (1..=5).map(|failures| pace.pause_of_conflict(&key, failures).as_millis()).collect();
        assert_eq!(conflicts, [0, 0, 0, 40, 70]);
    }

    #[test]
    fn keys_that_fail_together_pause_for_different_times() {
        let pace = Pace::default();
        let pauses = (0..1000).map(|name| pace.pause(&Key::parse(&name.to_string()), 20).as_secs_f64());
        let mut pauses: Vec<f64> = pauses.collect();
        pauses.sort_by(f64::total_cmp);
        assert!(pauses[0] >= 96.0 && pauses[999] <= 120.0, "{} to {}", pauses[0], pauses[999]);
        for tenth in 1..10 {
            let expected = 96.0 + 2.4 * tenth as f64;
            assert!(
                (pauses[tenth * 100] - expected).abs() < 1.5,
                "{} is not near {expected}",
                pauses[tenth * 100]
            );
        }
    }

    #[test]
    fn bucket_fills_at_its_rate_up_to_its_size() {
        let mut bucket = Bucket::new(Rate { per_second: 10.0, burst: 3 });
        let at = Duration::from_millis;
        // Each step: the time, the tokens before one is spent, and when there is one again after it.
        for (now, tokens, next) in
            [(0, 3, 0), (0, 2, 0), (0, 1, 100), (100, 1, 200), (350, 2, 350), (9000, 3, 8900)]
        {
            assert_eq!(bucket.tokens(at(now)), tokens, "at {now}");
            bucket.spend(at(now));
            assert!(bucket.next() <= at(next.max(now)), "at {now}: {:?}", bucket.next());
        }
        let open = Bucket::new(Rate { per_second: f64::INFINITY, burst: 1 });
        assert_eq!(open.tokens(at(0)), usize::MAX);
    }
}
