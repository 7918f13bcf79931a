//! What happens, counted: handles that cost an atomic add in, the page that Prometheus reads out.
//!
//! Names, labels and buckets are those of controller-runtime, so that its dashboards and alerts
//! work unchanged. A registry of our own, because the page must be the classic text with Go's
//! numbers, and half of it is computed only when somebody reads it.

mod page;
mod queues;
mod reconciles;
mod requests;
mod series;

pub use series::{Counter, Gauge, Histogram};

pub(crate) use reconciles::{Outcomes, Reconciles};

use page::Page;
use series::{Series, Sort};
use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, OnceLock, PoisonError, RwLock},
};

/// More series in one family only come of a label that should not be one; they are not shown.
const MAX_SERIES: usize = 2000;

/// All metrics of a process. Cheap to clone; all clones are the same.
///
/// ```
/// let metrics = operator::metrics::Metrics::default();
/// let orders = metrics.counter("shop_orders_total", "Orders taken.", &[("shop", "corner")]);
/// orders.add(2);
/// let page = metrics.render();
/// assert!(page.contains("# TYPE shop_orders_total counter\nshop_orders_total{shop=\"corner\"} 2\n"));
/// ```
#[derive(Clone, Default)]
pub struct Metrics(Arc<Shared>);

#[derive(Default)]
struct Shared {
    families: RwLock<BTreeMap<&'static str, Family>>,
    /// The name of the API server, for the metrics of requests.
    host: OnceLock<String>,
}

/// Series that differ by their labels only.
struct Family {
    help: &'static str,
    sort: Sort,
    series: BTreeMap<Labels, Series>,
}

/// Names and values, by name.
type Labels = Vec<(&'static str, String)>;

impl Metrics {
    /// The counter of this name and these labels; the same one for whoever asks.
    pub fn counter(
        &self,
        name: &'static str,
        help: &'static str,
        labels: &[(&'static str, &str)],
    ) -> Counter {
        let made = self.series(name, help, Sort::Counter, labels, || Series::Counter(Counter::default()));
        if let Series::Counter(counter) = made { counter } else { Counter::default() }
    }

    /// The gauge of this name and these labels; the same one for whoever asks.
    pub fn gauge(&self, name: &'static str, help: &'static str, labels: &[(&'static str, &str)]) -> Gauge {
        let made = self.series(name, help, Sort::Gauge, labels, || Series::Gauge(Gauge::default()));
        if let Series::Gauge(gauge) = made { gauge } else { Gauge::default() }
    }

    /// The histogram of this name and these labels; the same one for whoever asks.
    pub fn histogram(
        &self,
        name: &'static str,
        help: &'static str,
        labels: &[(&'static str, &str)],
        bounds: &'static [f64],
    ) -> Histogram {
        let make = || Series::Histogram(Histogram::new(bounds));
        match self.series(name, help, Sort::Histogram, labels, make) {
            Series::Histogram(histogram) => histogram,
            _ => Histogram::new(bounds),
        }
    }

    /// Says whether this process leads, for the lease of this name.
    pub fn leads(&self, lease: &str, leads: bool) {
        let help = "Gauge of if the reporting system is master of the relevant lease, 0 indicates backup, 1 indicates master. 'name' is the string used to identify the lease. Please make sure to group by name.";
        self.gauge("leader_election_master_status", help, &[("name", lease)]).set(f64::from(u8::from(leads)));
    }

    /// Counts a renewal of a lease that had to read it anew first.
    pub fn renewed_slowly(&self, lease: &str) {
        let help = "Total number of slow path exercised in renewing leader leases. 'name' is the string used to identify the lease. Please make sure to group by name.";
        self.counter("leader_election_slowpath_total", help, &[("name", lease)]).add(1);
    }

    /// The page for Prometheus, in its text format.
    pub fn render(&self) -> String {
        let mut page = Page::default();
        let families = self.0.families.read().unwrap_or_else(PoisonError::into_inner);
        for (name, family) in families.iter() {
            page.family(name, family.sort.as_str(), family.help);
            for (labels, series) in &family.series {
                series.write(&mut page, name, labels);
            }
        }
        page.0
    }

    /// A number that is found out when somebody reads the page.
    fn computed(
        &self,
        name: &'static str,
        help: &'static str,
        sort: Sort,
        labels: &[(&'static str, &str)],
        number: impl Fn() -> f64 + Send + Sync + 'static,
    ) {
        self.series(name, help, sort, labels, || Series::Computed(Arc::new(number)));
    }

    /// The series there is, or a new one. What does not fit in is kept out of the page.
    fn series(
        &self,
        name: &'static str,
        help: &'static str,
        sort: Sort,
        labels: &[(&'static str, &str)],
        make: impl FnOnce() -> Series,
    ) -> Series {
        let mut labels: Labels = labels.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
        labels.sort();
        let mut families = self.0.families.write().unwrap_or_else(PoisonError::into_inner);
        let family = families.entry(name).or_insert_with(|| Family { help, sort, series: BTreeMap::new() });
        if family.sort != sort {
            tracing::error!(name, "a metric of this name and of another type exists already");
            return make();
        }
        if family.series.len() >= MAX_SERIES && !family.series.contains_key(&labels) {
            return make();
        }
        family.series.entry(labels).or_insert_with(make).clone()
    }
}

impl fmt::Debug for Metrics {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Metrics")
    }
}

#[cfg(test)]
mod tests;
