//! Metrics of fairness: requests by priority level and flow schema, seats by level.

use super::{CountedSchema, levels::Report, rejection::Rejection, settings::Schema, width::Width};
use crate::Inner;
use api::prometheus::{Histogram, Page};
use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicI64, AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

/// Limit on the pairs; only schemas created and deleted endlessly reach it.
const MAX_METERS: usize = 1000;

// Kubernetes: the bounds of its histograms.
const SECONDS: [f64; 13] = [0.0, 0.005, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 15.0, 30.0];
const SEATS: [f64; 8] = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 100.0];

/// All meters, by level and schema.
#[derive(Debug, Default)]
pub(super) struct Meters(Mutex<BTreeMap<(String, String), Arc<Meter>>>);

/// The requests of one schema at one level.
#[derive(Debug)]
pub(super) struct Meter {
    dispatched: AtomicU64,
    rejected: [AtomicU64; Rejection::ALL.len()],
    waiting: Under,
    executing: Under,
    /// Of rejected and of served requests.
    waited: [Histogram; 2],
    /// Of watches until they begin, and of all other requests.
    lasted: [Histogram; 2],
    widths: Histogram,
}

/// A number of requests, and their seats.
#[derive(Debug, Default)]
struct Under {
    requests: AtomicI64,
    seats: AtomicI64,
}

/// A waiting or running request; counted while it lives.
#[derive(Debug)]
pub(super) struct Counted {
    meter: Arc<Meter>,
    seats: i64,
    is_waiting: bool,
}

impl Meters {
    fn of(&self, level: &str, schema: &str) -> Arc<Meter> {
        let mut meters = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut key = (level.to_owned(), schema.to_owned());
        if meters.len() >= MAX_METERS && !meters.contains_key(&key) {
            key = Default::default();
        }
        Arc::clone(meters.entry(key).or_insert_with(|| Arc::new(Meter::new())))
    }

    /// Each schema with its meter.
    pub(super) fn sorts(&self, schemas: Vec<Arc<Schema>>) -> Arc<Vec<CountedSchema>> {
        let sort = |schema: Arc<Schema>| {
            let level = &schema.spec.priority_level_configuration.name;
            CountedSchema {
                meter: self.of(level, &schema.metadata.name),
                level: Arc::from(level.as_str()),
                schema,
            }
        };
        Arc::new(schemas.into_iter().map(sort).collect())
    }
}

impl Meter {
    fn new() -> Meter {
        let seconds = || Histogram::new(&SECONDS);
        Meter {
            dispatched: AtomicU64::new(0),
            rejected: Default::default(),
            waiting: Under::default(),
            executing: Under::default(),
            waited: [seconds(), seconds()],
            lasted: [seconds(), seconds()],
            widths: Histogram::new(&SEATS),
        }
    }

    pub(super) fn arrives(&self, width: Width) {
        self.widths.observe(f64::from(width.most()));
    }

    /// Counts a waiting request until the result is dropped.
    pub(super) fn waits(self: &Arc<Meter>, width: Width) -> Counted {
        Counted::begin(self, width, true)
    }

    /// Counts a running request until the result is dropped.
    pub(super) fn dispatches(self: &Arc<Meter>, width: Width, waited: Option<Duration>) -> Counted {
        self.dispatched.fetch_add(1, Relaxed);
        if let Some(waited) = waited {
            self.waited[1].observe(waited.as_secs_f64());
        }
        Counted::begin(self, width, false)
    }

    pub(super) fn rejects(&self, why: Rejection, waited: Option<Duration>) {
        self.rejected[why as usize].fetch_add(1, Relaxed);
        if let Some(waited) = waited {
            self.waited[0].observe(waited.as_secs_f64());
        }
    }

    pub(super) fn lasted(&self, is_watch: bool, time: Duration) {
        self.lasted[usize::from(!is_watch)].observe(time.as_secs_f64());
    }
}

impl Counted {
    fn begin(meter: &Arc<Meter>, width: Width, is_waiting: bool) -> Counted {
        let counted = Counted { meter: Arc::clone(meter), seats: i64::from(width.most()), is_waiting };
        counted.add(1);
        counted
    }

    fn add(&self, count: i64) {
        let under = if self.is_waiting { &self.meter.waiting } else { &self.meter.executing };
        under.requests.fetch_add(count, Relaxed);
        under.seats.fetch_add(count * self.seats, Relaxed);
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.add(-1);
    }
}

/// Writes the metrics.
pub(crate) fn measure(inner: &Inner, page: &mut Page) {
    let fair = &inner.fair;
    let meters = fair.meters.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
    requests(&meters, page);
    histograms(&meters, page);
    seats(&fair.lock().levels.report(), page);
}

type Family<'a> = (&'a str, &'a str, &'a str);

fn requests(meters: &BTreeMap<(String, String), Arc<Meter>>, page: &mut Page) {
    type Read = fn(&Meter) -> f64;
    let families: [(Family<'_>, Read); 5] = [
        (
            (
                "dispatched_requests_total",
                "counter",
                "[BETA] Number of requests executed by API Priority and Fairness subsystem",
            ),
            |it| it.dispatched.load(Relaxed) as f64,
        ),
        (
            (
                "current_inqueue_requests",
                "gauge",
                "[BETA] Number of requests currently pending in queues of the API Priority and Fairness subsystem",
            ),
            |it| it.waiting.requests.load(Relaxed) as f64,
        ),
        (
            (
                "current_inqueue_seats",
                "gauge",
                "[ALPHA] Number of seats currently pending in queues of the API Priority and Fairness subsystem",
            ),
            |it| it.waiting.seats.load(Relaxed) as f64,
        ),
        (
            (
                "current_executing_requests",
                "gauge",
                "[BETA] Number of requests in initial (for a WATCH) or any (for a non-WATCH) execution stage in the API Priority and Fairness subsystem",
            ),
            |it| it.executing.requests.load(Relaxed) as f64,
        ),
        (
            (
                "current_executing_seats",
                "gauge",
                "[BETA] Concurrency (number of seats) occupied by the currently executing (initial stage for a WATCH, any stage otherwise) requests in the API Priority and Fairness subsystem",
            ),
            |it| it.executing.seats.load(Relaxed) as f64,
        ),
    ];
    for ((name, kind, help), read) in families {
        let name = begin(page, name, kind, help);
        for ((level, schema), meter) in meters {
            page.sample(&name, &[("flow_schema", schema), ("priority_level", level)], read(meter));
        }
    }
    let help = "[BETA] Number of requests rejected by API Priority and Fairness subsystem";
    let name = begin(page, "rejected_requests_total", "counter", help);
    for ((level, schema), meter) in meters {
        for why in Rejection::ALL {
            let count = meter.rejected[why as usize].load(Relaxed);
            let labels =
                [("flow_schema", schema.as_str()), ("priority_level", level), ("reason", why.text())];
            // Kubernetes: counters of zero are left out.
            if count > 0 {
                page.sample(&name, &labels, count as f64);
            }
        }
    }
}

fn histograms(meters: &BTreeMap<(String, String), Arc<Meter>>, page: &mut Page) {
    let help = "[BETA] Length of time a request spent waiting in its queue";
    let name = begin(page, "request_wait_duration_seconds", "histogram", help);
    for ((level, schema), meter) in meters {
        for (execute, histogram) in ["false", "true"].into_iter().zip(&meter.waited) {
            let labels = [("execute", execute), ("flow_schema", schema.as_str()), ("priority_level", level)];
            filled(page, &name, &labels, histogram);
        }
    }
    let help = "[ALPHA] Duration of initial stage (for a WATCH) or any (for a non-WATCH) stage of request execution in the API Priority and Fairness subsystem";
    let name = begin(page, "request_execution_seconds", "histogram", help);
    for ((level, schema), meter) in meters {
        for (sort, histogram) in ["watch", "regular"].into_iter().zip(&meter.lasted) {
            let labels = [("flow_schema", schema.as_str()), ("priority_level", level), ("type", sort)];
            filled(page, &name, &labels, histogram);
        }
    }
    let help = "[ALPHA] Number of estimated seats (maximum of initial and final seats) associated with requests in API Priority and Fairness";
    let name = begin(page, "work_estimated_seats", "histogram", help);
    for ((level, schema), meter) in meters {
        filled(page, &name, &[("flow_schema", schema), ("priority_level", level)], &meter.widths);
    }
}

fn seats(levels: &[Report], page: &mut Page) {
    type Read = fn(&Report) -> f64;
    let families: [(&str, &str, Read); 6] = [
        (
            "nominal_limit_seats",
            "[BETA] Nominal number of execution seats configured for each priority level",
            |it| f64::from(it.shares.nominal),
        ),
        (
            "lower_limit_seats",
            "[ALPHA] Configured lower bound on number of execution seats available to each priority level",
            |it| f64::from(it.shares.least),
        ),
        (
            "upper_limit_seats",
            "[ALPHA] Configured upper bound on number of execution seats available to each priority level",
            |it| f64::from(it.shares.most),
        ),
        (
            "current_limit_seats",
            "[ALPHA] current derived number of execution seats available to each priority level",
            |it| f64::from(it.seats),
        ),
        (
            "demand_seats_high_watermark",
            "[ALPHA] High watermark, over last adjustment period, of demand_seats",
            |it| f64::from(it.high),
        ),
        ("demand_seats_smoothed", "[ALPHA] Smoothed seat demands", |it| it.smoothed),
    ];
    for (name, help, read) in families {
        let name = begin(page, name, "gauge", help);
        for level in levels {
            page.sample(&name, &[("priority_level", &level.name)], read(level));
        }
    }
}

fn begin(page: &mut Page, name: &str, kind: &str, help: &str) -> String {
    let name = format!("apiserver_flowcontrol_{name}");
    page.family(&name, kind, help);
    name
}

fn filled(page: &mut Page, name: &str, labels: &[(&'static str, &str)], histogram: &Histogram) {
    if !histogram.is_empty() {
        page.histogram(name, labels, histogram);
    }
}
