//! The handles of metrics, which many threads may use at once.

use super::Labels;
use api::prometheus::{self, Page};
use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

/// The type of a metric family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MetricType {
    Counter,
    Gauge,
    Histogram,
}

/// A metric with one set of labels.
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

/// Counts durations, in seconds, or other values by upper bounds.
#[derive(Clone, Debug)]
pub struct Histogram(Arc<prometheus::Histogram>);

impl MetricType {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            MetricType::Counter => "counter",
            MetricType::Gauge => "gauge",
            MetricType::Histogram => "histogram",
        }
    }
}

impl Series {
    pub(super) fn write(&self, page: &mut Page, name: &str, labels: &Labels) {
        match self {
            Series::Counter(counter) => page.sample(name, labels, counter.value() as f64),
            Series::Gauge(gauge) => page.sample(name, labels, gauge.value()),
            Series::Histogram(histogram) => page.histogram(name, labels, &histogram.0),
            Series::Computed(number) => page.sample(name, labels, number()),
        }
    }
}

impl Counter {
    /// Adds to the counter.
    pub fn add(&self, more: u64) {
        self.0.fetch_add(more, Relaxed);
    }

    /// The count so far.
    pub fn value(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

impl Gauge {
    /// Sets the gauge.
    pub fn set(&self, value: f64) {
        self.0.store(value.to_bits(), Relaxed);
    }

    /// Adds to the gauge; a negative number takes away.
    pub fn add(&self, more: f64) {
        let add = |bits| Some((f64::from_bits(bits) + more).to_bits());
        let _ = self.0.fetch_update(Relaxed, Relaxed, add);
    }

    /// The value now.
    pub fn value(&self) -> f64 {
        f64::from_bits(self.0.load(Relaxed))
    }
}

impl Histogram {
    pub(super) fn new(bounds: &'static [f64]) -> Histogram {
        Histogram(Arc::new(prometheus::Histogram::new(bounds)))
    }

    /// Counts a duration.
    pub fn observe(&self, duration: Duration) {
        self.0.observe_duration(duration);
    }

    /// Counts a value that is no duration, such as a size.
    pub fn observe_value(&self, value: f64) {
        self.0.observe(value);
    }
}

impl fmt::Debug for Series {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Series")
    }
}
