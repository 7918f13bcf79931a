//! Seat demand of a priority level: a time-weighted average with its deviation, smoothed per period.

use std::time::Duration;

/// The weight of the old value after a period.
// Kubernetes: half of it is gone after five minutes.
const MEMORY: f64 = 0.977;

#[derive(Debug, Default)]
pub(super) struct Demand {
    seats: f64,
    since: Duration,
    /// This period's length in seconds, and integrals of seats and squared seats.
    length: f64,
    sum: f64,
    squares: f64,
    most: f64,
    /// The maximum of the previous period.
    pub(super) high: u32,
    pub(super) smoothed: f64,
}

impl Demand {
    pub(super) fn set(&mut self, now: Duration, seats: u64) {
        self.pass(now);
        self.seats = seats as f64;
        self.most = self.most.max(self.seats);
    }

    fn pass(&mut self, now: Duration) {
        let seconds = now.saturating_sub(self.since).as_secs_f64();
        self.since = self.since.max(now);
        self.length += seconds;
        self.sum += self.seats * seconds;
        self.squares += self.seats * self.seats * seconds;
    }

    /// Ends one or more periods.
    pub(super) fn turn(&mut self, now: Duration, periods: u32) {
        self.pass(now);
        self.high = self.most.round() as u32;
        if self.length > 0.0 {
            let average = self.sum / self.length;
            let deviation = (self.squares / self.length - average * average).max(0.0).sqrt();
            let envelope = average + deviation;
            let memory = MEMORY.powi(i32::try_from(periods).unwrap_or(i32::MAX));
            self.smoothed = envelope.max(memory * self.smoothed + (1.0 - memory) * envelope);
        }
        (self.length, self.sum, self.squares, self.most) = (0.0, 0.0, 0.0, self.seats);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn smoothed_demand_rises_at_once_and_falls_slowly() {
        let seconds = Duration::from_secs;
        let mut demand = Demand::default();
        demand.set(seconds(0), 10);
        demand.turn(seconds(10), 1);
        assert_eq!((demand.high, demand.smoothed.round()), (10, 10.0));
        demand.set(seconds(15), 30);
        demand.turn(seconds(20), 1);
        // Half the time 10, half 30: average 20, deviation 10.
        assert_eq!((demand.high, demand.smoothed.round()), (30, 30.0));
        demand.set(seconds(20), 0);
        demand.turn(seconds(30), 1);
        demand.turn(seconds(40), 1);
        assert_eq!(demand.high, 0);
        assert!(demand.smoothed > 28.0 && demand.smoothed < 30.0, "{}", demand.smoothed);
    }
}
