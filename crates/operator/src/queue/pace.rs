//! How fast a queue hands out keys: pauses after failures, and a rate over all keys.

use super::Time;
use std::time::Duration;

/// A conflict is tried again at once so often in a row; then it pauses as any failure does.
const CONFLICTS_AT_ONCE: u32 = 3;
/// Longer delays are cut to this: a year. Clocks and timers do not reach for ever.
const LONGEST_DELAY: Duration = Duration::from_secs(365 * 24 * 3600);

/// How a queue paces and bounds itself.
#[derive(Clone, Debug)]
pub struct Pace {
    /// The pause after the first failure of a key; every further one doubles it.
    pub first_pause: Duration,
    pub longest_pause: Duration,
    /// After so many failures in a row a key is given up for dead: it is tried again after the
    /// longest pause only, or as soon as something changes.
    pub dead_after: u32,
    /// So many fresh keys go in a row while others wait; the next turn is for one of those.
    pub fresh_in_a_row: u32,
    /// Over all keys. Without it, whoever takes sets the speed.
    pub rate: Option<Rate>,
    /// So many keys at once. See [`Queue`](super::Queue) for what becomes of more.
    pub limit: usize,
}

/// So many keys a second, and so many at once after a rest.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rate {
    pub per_second: f64,
    pub burst: u32,
}

impl Default for Pace {
    fn default() -> Pace {
        Pace {
            // controller-runtime: the same two.
            first_pause: Duration::from_millis(5),
            longest_pause: Duration::from_secs(1000),
            // With the pauses above: nearly three minutes after the first failure.
            dead_after: 15,
            fresh_in_a_row: 15,
            rate: None,
            // At some 150 bytes each: a small part of what the objects themselves take in the cache.
            limit: 1_000_000,
        }
    }
}

impl Pace {
    /// How long a key rests that failed so many times in a row.
    pub(super) fn pause(&self, failures: u32) -> Duration {
        if failures >= self.dead_after {
            return self.longest_pause;
        }
        let doublings = failures.saturating_sub(1).min(31);
        self.first_pause.saturating_mul(1 << doublings).min(self.longest_pause)
    }

    pub(super) fn pause_of_conflict(&self, failures: u32) -> Duration {
        if failures <= CONFLICTS_AT_ONCE { Duration::ZERO } else { self.pause(failures) }
    }
}

pub(super) fn moment_after(now: Time, delay: Duration) -> Time {
    now + delay.min(LONGEST_DELAY)
}

/// A bucket of tokens that fills at the rate. Kept as the moment at which it would be full, so that
/// nothing runs while nobody asks.
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

    /// When there will be a token again.
    pub(super) fn next(&self) -> Time {
        self.full_at.saturating_sub(self.interval * (self.burst - 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_longest() {
        let pace = Pace { dead_after: 6, longest_pause: Duration::from_millis(70), ..Pace::default() };
        let pauses: Vec<_> = (1..=7).map(|failures| pace.pause(failures).as_millis()).collect();
        assert_eq!(pauses, [5, 10, 20, 40, 70, 70, 70]);
        let conflicts: Vec<_> =
            (1..=5).map(|failures| pace.pause_of_conflict(failures).as_millis()).collect();
        assert_eq!(conflicts, [0, 0, 0, 40, 70]);
        assert_eq!(Pace::default().pause(u32::MAX), Duration::from_secs(1000));
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
