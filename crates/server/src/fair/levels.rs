//! Priority levels and the seats they lend each other: each event returns the requests that now get seats.
//! No clock, no waiting.

use super::{
    demand::Demand,
    dropped::Dropped,
    queues::{Arrival, Dispatched, Overflow, Queues, Seats, Tally, Ticket},
    rejection::Rejection,
    settings::{CATCH_ALL, EXEMPT, PriorityLevel, mandatory},
    share::{Claim, Shares, divide},
    width::Width,
};
use http::HeaderValue;
use std::{collections::BTreeMap, sync::Arc, time::Duration};

/// How often seats move between levels.
// Kubernetes: borrowingAdjustmentPeriod.
const PERIOD: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub(super) struct Levels<W> {
    /// The seats of the server.
    total: u32,
    levels: BTreeMap<String, Standing<W>>,
    turned: Duration,
}

/// A priority level and its current seats.
#[derive(Debug)]
struct Standing<W> {
    settings: Arc<PriorityLevel>,
    queues: Queues<W>,
    demand: Demand,
    shares: Shares,
    current: u32,
    rejected: Dropped,
    /// Its object is deleted; it remains until its requests end.
    is_leaving: bool,
}

/// The state of one level, for metrics and the dump.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Report {
    pub(super) name: String,
    pub(super) shares: Shares,
    /// Its current seats.
    pub(super) seats: u32,
    /// Its maximum demand in the last period.
    pub(super) high: u32,
    pub(super) smoothed: f64,
    pub(super) queues: usize,
    pub(super) is_idle: bool,
    pub(super) is_leaving: bool,
    pub(super) waiting: usize,
    pub(super) executing: u64,
    pub(super) tally: Tally,
}

/// What a request needs to know of its level before it asks for seats.
#[derive(Clone, Debug)]
pub(super) struct Terms {
    pub(super) uid: HeaderValue,
    /// Whether its requests are queued by flow.
    pub(super) has_flows: bool,
    /// Limit on the seats of one request; set where requests may be queued.
    pub(super) widest: Option<u32>,
}

impl<W> Levels<W> {
    pub(super) fn new(total: u32, now: Duration) -> Levels<W> {
        Levels { total, levels: BTreeMap::new(), turned: now }
    }

    /// Takes new settings. Waiting and running requests keep their places.
    pub(super) fn configure(
        &mut self,
        now: Duration,
        settings: Vec<Arc<PriorityLevel>>,
    ) -> Vec<Dispatched<W>> {
        let mut wanted: BTreeMap<String, Arc<PriorityLevel>> = BTreeMap::new();
        for level in settings.into_iter().filter(|level| level.is_consistent()) {
            wanted.insert(level.metadata.name.clone(), level);
        }
        for name in [EXEMPT, CATCH_ALL] {
            wanted.entry(name.to_owned()).or_insert_with(|| Arc::new(mandatory(name)));
        }
        self.levels.retain(|name, level| {
            level.is_leaving = !wanted.contains_key(name);
            !level.is_leaving || !level.queues.is_idle()
        });
        for (name, settings) in wanted {
            match self.levels.get_mut(&name) {
                Some(level) => level.settings = settings,
                None => drop(self.levels.insert(name, Standing::new(settings, now))),
            }
        }
        self.share_out();
        self.rebalance(now, 0)
    }

    pub(super) fn has(&self, level: &str) -> bool {
        self.levels.get(level).is_some_and(|level| !level.is_leaving)
    }

    /// The terms of a level.
    pub(super) fn terms(&self, level: &str) -> Option<Terms> {
        let level = self.levels.get(level).filter(|level| !level.is_leaving)?;
        let (has_flows, widest) = match level.settings.response() {
            Overflow::Queue { queues, hand, .. } => (queues > 1, Some(level.shares.widest(hand))),
            _ => (false, None),
        };
        Some(Terms { uid: level.settings.metadata.uid.clone(), has_flows, widest })
    }

    pub(super) fn arrive(
        &mut self,
        now: Duration,
        level: &str,
        flow: u64,
        width: Width,
        waiter: impl FnOnce() -> W,
    ) -> (Arrival, Vec<Dispatched<W>>) {
        let Some(standing) = self.levels.get_mut(level) else {
            return (Arrival::Refused(Rejection::NoSeat), Vec::new());
        };
        let arrival = standing.queues.arrive(now, flow, width, waiter);
        (arrival, self.rebalance_and_dispatch(now, level))
    }

    pub(super) fn finish(&mut self, now: Duration, level: &str, seats: Seats) -> Vec<Dispatched<W>> {
        if let Some(standing) = self.levels.get_mut(level) {
            standing.queues.finish(now, seats);
        }
        self.rebalance_and_dispatch(now, level)
    }

    /// Removes a request from its queue; `false` if it has seats already.
    pub(super) fn leave(
        &mut self,
        now: Duration,
        level: &str,
        ticket: Ticket,
        timed_out: bool,
    ) -> (bool, Vec<Dispatched<W>>) {
        let Some(standing) = self.levels.get_mut(level) else { return (false, Vec::new()) };
        let left = standing.queues.leave(now, ticket);
        if left {
            let tally = &mut standing.queues.tally;
            *(if timed_out { &mut tally.timed_out } else { &mut tally.cancelled }) += 1;
        }
        (left, self.rebalance_and_dispatch(now, level))
    }

    /// Called when time has passed and nothing else happened.
    pub(super) fn tick(&mut self, now: Duration, level: &str) -> Vec<Dispatched<W>> {
        self.rebalance_and_dispatch(now, level)
    }

    /// When lingering seats are next released while requests wait.
    pub(super) fn next_release(&self, level: &str) -> Option<Duration> {
        let queues = &self.levels.get(level)?.queues;
        queues.next_release().filter(|_| queues.waiting() > 0)
    }

    pub(super) fn waiting(&self, level: &str) -> usize {
        self.levels.get(level).map_or(0, |level| level.queues.waiting())
    }

    /// Counts a rejection; returns its Retry-After in seconds.
    pub(super) fn rejected(&mut self, now: Duration, level: &str) -> u64 {
        self.levels.get_mut(level).map_or(1, |level| level.rejected.count(now.as_secs()))
    }

    pub(super) fn report(&self) -> Vec<Report> {
        let report = |(name, level): (&String, &Standing<W>)| Report {
            name: name.clone(),
            shares: level.shares,
            seats: level.current,
            high: level.demand.high,
            smoothed: level.demand.smoothed,
            queues: level.queues.filled(),
            is_idle: level.queues.is_idle(),
            is_leaving: level.is_leaving,
            waiting: level.queues.waiting(),
            executing: level.queues.executing(),
            tally: level.queues.tally,
        };
        self.levels.iter().map(report).collect()
    }

    /// After every event: rebalances seats if a period has ended, and gives free seats to waiting requests.
    fn rebalance_and_dispatch(&mut self, now: Duration, level: &str) -> Vec<Dispatched<W>> {
        let Some(standing) = self.levels.get_mut(level) else { return Vec::new() };
        let mut dispatched = standing.queues.dispatch(now);
        standing.demand.set(now, standing.queues.demand());
        if standing.is_leaving && standing.queues.is_idle() {
            self.levels.remove(level);
            self.share_out();
            dispatched.extend(self.rebalance(now, 0));
        }
        let periods = now.saturating_sub(self.turned).as_secs() / PERIOD.as_secs();
        if periods > 0 {
            self.turned = now;
            dispatched.extend(self.rebalance(now, u32::try_from(periods).unwrap_or(u32::MAX)));
        }
        dispatched
    }

    fn share_out(&mut self) {
        let whole: f64 = self.levels.values().map(|level| f64::from(level.settings.shares())).sum();
        for level in self.levels.values_mut() {
            let settings = &level.settings;
            level.shares =
                Shares::new(self.total, settings.shares(), whole, settings.lendable(), settings.borrowing());
        }
    }

    fn rebalance(&mut self, now: Duration, periods: u32) -> Vec<Dispatched<W>> {
        for level in self.levels.values_mut() {
            level.demand.turn(now, periods);
        }
        let claims: Vec<Claim> = self.levels.values().map(Standing::claim).collect();
        let mut dispatched = Vec::new();
        for (level, seats) in self.levels.values_mut().zip(divide(&claims)) {
            level.current = seats;
            level.queues.configure(now, level.settings.response(), seats);
            dispatched.extend(level.queues.dispatch(now));
        }
        dispatched
    }
}

impl<W> Standing<W> {
    fn new(settings: Arc<PriorityLevel>, now: Duration) -> Standing<W> {
        Standing {
            queues: Queues::new(settings.response(), 0, now),
            settings,
            demand: Demand::default(),
            shares: Shares::default(),
            current: 0,
            rejected: Dropped::default(),
            is_leaving: false,
        }
    }

    fn claim(&self) -> Claim {
        Claim {
            is_exempt: self.settings.is_exempt(),
            shares: self.shares,
            high: self.demand.high,
            smoothed: self.demand.smoothed,
            current: self.current,
        }
    }
}
