//! Percentiles of durations: a histogram of fixed size, however many there were.

use serde::Serialize;
use std::time::Duration;

/// Buckets per power of two: values read back are at most 1/64 off.
const STEPS: usize = 64;
const STEP_BITS: u32 = STEPS.trailing_zeros();
const BUCKETS: usize = (64 - STEP_BITS as usize + 1) * STEPS;

/// A histogram of latencies.
#[derive(Clone, Debug)]
pub(crate) struct Latencies {
    buckets: Vec<u64>,
    pub(crate) count: u64,
    most: Duration,
}

/// Percentiles, in milliseconds.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Percentiles {
    pub(crate) p50: f64,
    pub(crate) p90: f64,
    pub(crate) p99: f64,
    pub(crate) max: f64,
}

impl Default for Latencies {
    fn default() -> Latencies {
        Latencies { buckets: vec![0; BUCKETS], count: 0, most: Duration::ZERO }
    }
}

impl Latencies {
    pub(crate) fn record(&mut self, took: Duration) {
        self.buckets[bucket(nanoseconds(took))] += 1;
        self.count += 1;
        self.most = self.most.max(took);
    }

    pub(crate) fn merge(&mut self, other: &Latencies) {
        self.buckets.iter_mut().zip(&other.buckets).for_each(|(own, others)| *own += others);
        self.count += other.count;
        self.most = self.most.max(other.most);
    }

    pub(crate) fn percentiles(&self) -> Percentiles {
        let at = |share| self.at(share).as_secs_f64() * 1e3;
        Percentiles { p50: at(0.5), p90: at(0.9), p99: at(0.99), max: self.most.as_secs_f64() * 1e3 }
    }

    /// The duration that `share` of them did not exceed.
    fn at(&self, share: f64) -> Duration {
        let rank = (share * self.count as f64).ceil() as u64;
        let mut seen = 0;
        let found = self.buckets.iter().position(|bucket| {
            seen += bucket;
            seen >= rank.max(1)
        });
        found.map_or(Duration::ZERO, |at| Duration::from_nanos(middle(at)).min(self.most))
    }
}

fn nanoseconds(took: Duration) -> u64 {
    u64::try_from(took.as_nanos()).unwrap_or(u64::MAX)
}

fn bucket(nanoseconds: u64) -> usize {
    let shift = (u64::BITS - nanoseconds.leading_zeros()).saturating_sub(STEP_BITS + 1);
    shift as usize * STEPS + (nanoseconds >> shift) as usize
}

/// The middle of a bucket.
fn middle(bucket: usize) -> u64 {
    let shift = (bucket / STEPS).saturating_sub(1);
    let least = ((bucket - shift * STEPS) as u64) << shift;
    least + ((1 << shift) >> 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_is_read_back_to_a_sixty_fourth() {
        for nanoseconds in [0, 1, 63, 64, 127, 128, 129, 1000, 123_456, 987_654_321, u64::MAX / 3] {
            let back = middle(bucket(nanoseconds));
            assert!(back.abs_diff(nanoseconds) <= nanoseconds / 64, "{nanoseconds} became {back}");
        }
        assert!(bucket(u64::MAX) < BUCKETS);
    }

    #[test]
    fn percentiles_are_those_of_all_that_was_recorded() {
        let mut all = Latencies::default();
        assert_eq!(all.percentiles().p99, 0.0);
        for half in [1..=50_u64, 51..=100] {
            let mut part = Latencies::default();
            half.for_each(|number| part.record(Duration::from_millis(number)));
            all.merge(&part);
        }
        let Percentiles { p50, p90, p99, max } = all.percentiles();
        for (found, expected) in [(p50, 50.0), (p90, 90.0), (p99, 99.0), (max, 100.0)] {
            assert!((found - expected).abs() <= expected / 64.0, "{found} is not {expected}");
        }
        assert_eq!(all.count, 100);
    }
}
