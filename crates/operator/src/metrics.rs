//! Metrics: counters, gauges and histograms, and the page that Prometheus collects.
//!
//! Names, labels and buckets are those of controller-runtime, so that its dashboards and alerts
//! work unchanged. A registry of our own, because numbers must be written as Go writes them, and half
//! of the page is computed only when it is read.

mod queues;
mod reconciles;
mod requests;
mod series;

pub use series::{Counter, Gauge, Histogram};

pub(crate) use reconciles::{Reconciles, ResultLabel};

use api::prometheus::Page;
use series::{MetricType, Series};
use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, OnceLock, PoisonError, RwLock},
};

/// More series in one family only come of a label with too many values; they are not shown.
const MAX_SERIES: usize = 2000;

/// All metrics of a process. Cheap to clone; all clones are the same. Those of a manager are
/// [`Manager::metrics`](crate::Manager::metrics), and in a reconcile [`Context::metrics`](crate::Context::metrics): what
/// is added there is on the page of that manager.
///
/// ```
/// let metrics = operator::metrics::Metrics::default();
/// let orders = metrics.counter("shop_orders_total", "Orders taken.", &[("shop", "corner")]);
/// orders.add(2);
/// let page = metrics.render();
/// assert!(page.contains("# TYPE shop_orders_total counter\nshop_orders_total{shop=\"corner\"} 2\n"));
///
/// metrics.remove("shop_orders_total", &[("shop", "corner")]);
/// assert!(!metrics.render().contains("corner"), "the shop is gone");
/// ```
#[derive(Clone, Default)]
pub struct Metrics(Arc<MetricsInner>);

#[derive(Default)]
struct MetricsInner {
    families: RwLock<BTreeMap<&'static str, Family>>,
    /// The host of the API server, a label of the request metrics.
    host: OnceLock<String>,
}

/// Series that differ by their labels only.
struct Family {
    help: &'static str,
    metric_type: MetricType,
    series: BTreeMap<Labels, Series>,
}

/// Names and values, by name.
type Labels = Vec<(&'static str, String)>;

impl Metrics {
    /// The counter of this name and these labels; every call returns the same one.
    pub fn counter(
        &self,
        name: &'static str,
        help: &'static str,
        labels: &[(&'static str, &str)],
    ) -> Counter {
        let made =
            self.series(name, help, MetricType::Counter, labels, || Series::Counter(Counter::default()));
        if let Series::Counter(counter) = made { counter } else { Counter::default() }
    }

    /// The gauge of this name and these labels; every call returns the same one.
    pub fn gauge(&self, name: &'static str, help: &'static str, labels: &[(&'static str, &str)]) -> Gauge {
        let made = self.series(name, help, MetricType::Gauge, labels, || Series::Gauge(Gauge::default()));
        if let Series::Gauge(gauge) = made { gauge } else { Gauge::default() }
    }

    /// The histogram of this name and these labels, with these upper bounds; every call returns the same one.
    ///
    /// ```
    /// use operator::metrics::Metrics;
    /// use std::time::Duration;
    ///
    /// let metrics = Metrics::default();
    /// let labels = [("database", "orders")];
    /// metrics.gauge("backup_bytes", "Size of the last backup.", &labels).set(2.5e9);
    /// let seconds = metrics.histogram("backup_seconds", "Time of a backup.", &labels, &[1.0, 10.0, 60.0]);
    /// seconds.observe(Duration::from_secs(7));
    /// let page = metrics.render();
    /// assert!(page.contains("backup_seconds_bucket{database=\"orders\",le=\"10\"} 1"), "{page}");
    /// ```
    pub fn histogram(
        &self,
        name: &'static str,
        help: &'static str,
        labels: &[(&'static str, &str)],
        bounds: &'static [f64],
    ) -> Histogram {
        let make = || Series::Histogram(Histogram::new(bounds));
        match self.series(name, help, MetricType::Histogram, labels, make) {
            Series::Histogram(histogram) => histogram,
            _ => Histogram::new(bounds),
        }
    }

    /// Takes the series with these labels off the page: for an object that is gone. Handles of it count on unseen.
    pub fn remove(&self, name: &str, labels: &[(&'static str, &str)]) {
        let labels = owned_labels(labels);
        let mut families = self.0.families.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(family) = families.get_mut(name) {
            family.series.remove(&labels);
            if family.series.is_empty() {
                families.remove(name);
            }
        }
    }

    /// Sets whether this process holds the lease of this name.
    pub fn set_leader(&self, lease: &str, leads: bool) {
        let help = "Gauge of if the reporting system is master of the relevant lease, 0 indicates backup, 1 indicates master. 'name' is the string used to identify the lease. Please make sure to group by name.";
        self.gauge("leader_election_master_status", help, &[("name", lease)]).set(f64::from(u8::from(leads)));
    }

    /// Counts a renewal of a lease that had to read it again first.
    pub fn count_slow_renewal(&self, lease: &str) {
        let help = "Total number of slow path exercised in renewing leader leases. 'name' is the string used to identify the lease. Please make sure to group by name.";
        self.counter("leader_election_slowpath_total", help, &[("name", lease)]).add(1);
    }

    /// The page for Prometheus, in its text format.
    pub fn render(&self) -> String {
        let mut page = Page::new(api::go::float);
        let families = self.0.families.read().unwrap_or_else(PoisonError::into_inner);
        for (name, family) in families.iter() {
            page.family(name, family.metric_type.as_str(), family.help);
            for (labels, series) in &family.series {
                series.write(&mut page, name, labels);
            }
        }
        page.into_text()
    }

    /// A number that is computed when the page is read.
    fn computed(
        &self,
        name: &'static str,
        help: &'static str,
        metric_type: MetricType,
        labels: &[(&'static str, &str)],
        number: impl Fn() -> f64 + Send + Sync + 'static,
    ) {
        self.series(name, help, metric_type, labels, || Series::Computed(Arc::new(number)));
    }

    /// The series with these labels, or a new one. A series that is one too many is not on the page.
    fn series(
        &self,
        name: &'static str,
        help: &'static str,
        metric_type: MetricType,
        labels: &[(&'static str, &str)],
        make: impl FnOnce() -> Series,
    ) -> Series {
        let labels = owned_labels(labels);
        if !is_name(name) || !labels.iter().all(|(label, _)| is_name(label)) {
            tracing::error!(name, "this is no name of a metric and its labels");
            return make();
        }
        let mut families = self.0.families.write().unwrap_or_else(PoisonError::into_inner);
        let family =
            families.entry(name).or_insert_with(|| Family { help, metric_type, series: BTreeMap::new() });
        if family.metric_type != metric_type {
            tracing::error!(name, "a metric of this name and of another type exists already");
            return make();
        }
        if family.series.len() >= MAX_SERIES && !family.series.contains_key(&labels) {
            return make();
        }
        family.series.entry(labels).or_insert_with(make).clone()
    }
}

fn owned_labels(labels: &[(&'static str, &str)]) -> Labels {
    let mut labels: Labels = labels.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
    labels.sort();
    labels
}

/// Prometheus: with another name in it, it does not read the page.
fn is_name(name: &str) -> bool {
    let is_letter = |byte: &u8| byte.is_ascii_alphabetic() || *byte == b'_' || *byte == b':';
    name.as_bytes().first().is_some_and(is_letter)
        && name.bytes().all(|byte| is_letter(&byte) || byte.is_ascii_digit())
}

impl fmt::Debug for Metrics {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Metrics")
    }
}

#[cfg(test)]
mod tests;
