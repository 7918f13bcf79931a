//! Numbers that many threads add to at once.

use super::{Labels, page::Page};
use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

/// What Prometheus calls the type of a family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sort {
    Counter,
    Gauge,
    Histogram,
}

/// One line of a page, or for a histogram a few.
#[derive(Clone)]
pub(super) enum Series {
    Counter(Counter),
    Gauge(Gauge),
    Histogram(Histogram),
    Computed(Arc<dyn Fn() -> f64 + Send + Sync>),
}

/// A number that only grows.
#[derive(Clone, Debug, Default)]
pub struct Counter(Arc<AtomicU64>);

/// A number that goes up and down. Kept as the bits of a float.
#[derive(Clone, Debug, Default)]
pub struct Gauge(Arc<AtomicU64>);

/// How often a duration was at most each of some bounds.
#[derive(Clone, Debug)]
pub struct Histogram(Arc<Buckets>);

#[derive(Debug)]
struct Buckets {
    bounds: &'static [f64],
    /// One more than bounds: the last is for what is over all of them.
    counts: Box<[AtomicU64]>,
    /// In nanoseconds, so that adding to it is one instruction; enough for five centuries of work.
    sum: AtomicU64,
}

impl Sort {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Sort::Counter => "counter",
            Sort::Gauge => "gauge",
            Sort::Histogram => "histogram",
        }
    }
}

impl Series {
    pub(super) fn write(&self, page: &mut Page, name: &str, labels: &Labels) {
        match self {
            Series::Counter(counter) => page.sample(name, labels, counter.value() as f64),
            Series::Gauge(gauge) => page.sample(name, labels, gauge.value()),
            Series::Histogram(histogram) => histogram.write(page, name, labels),
            Series::Computed(number) => page.sample(name, labels, number()),
        }
    }
}

impl Counter {
    pub fn add(&self, more: u64) {
        self.0.fetch_add(more, Relaxed);
    }

    pub fn value(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

impl Gauge {
    pub fn set(&self, value: f64) {
        self.0.store(value.to_bits(), Relaxed);
    }

    pub fn add(&self, more: f64) {
        let add = |bits| Some((f64::from_bits(bits) + more).to_bits());
        let _ = self.0.fetch_update(Relaxed, Relaxed, add);
    }

    pub fn value(&self) -> f64 {
        f64::from_bits(self.0.load(Relaxed))
    }
}

impl Histogram {
    pub(super) fn new(bounds: &'static [f64]) -> Histogram {
        let counts = (0..=bounds.len()).map(|_| AtomicU64::new(0)).collect();
        Histogram(Arc::new(Buckets { bounds, counts, sum: AtomicU64::new(0) }))
    }

    pub fn observe(&self, duration: Duration) {
        let seconds = duration.as_secs_f64();
        let at = self.0.bounds.partition_point(|bound| *bound < seconds);
        self.0.counts[at].fetch_add(1, Relaxed);
        self.0.sum.fetch_add(duration.as_nanos() as u64, Relaxed);
    }

    fn write(&self, page: &mut Page, name: &str, labels: &Labels) {
        let Buckets { bounds, counts, sum } = &*self.0;
        let mut seen = 0;
        let bucket = format!("{name}_bucket");
        let bounds = bounds.iter().map(|bound| api::go::float(*bound)).chain(["+Inf".to_owned()]);
        for (bound, count) in bounds.zip(counts) {
            seen += count.load(Relaxed);
            page.bucket(&bucket, labels, &bound, seen);
        }
        page.sample(&format!("{name}_sum"), labels, sum.load(Relaxed) as f64 / 1e9);
        page.sample(&format!("{name}_count"), labels, seen as f64);
    }
}

impl fmt::Debug for Series {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Series")
    }
}
