//! The text format in which Prometheus collects metrics, and histograms for it.

use std::{
    fmt::{self, Write},
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    time::Duration,
};

/// The content type of a page.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8; escaping=underscores";

/// The text of all metric families, built up one after the other.
#[derive(Debug)]
pub struct Page {
    text: String,
    /// How numbers are written: Prometheus reads `1000000` as well as Go's `1e+06`.
    number: fn(f64) -> String,
}

/// Counts values by upper bounds. Many threads may add to it at once.
#[derive(Debug)]
pub struct Histogram {
    bounds: &'static [f64],
    /// One more than bounds: the last is for values above all of them.
    counts: Box<[AtomicU64]>,
    /// The sum of the values, as the bits of a float.
    sum: AtomicU64,
    /// The sum of the durations: whole numbers are exact, and added by one instruction.
    nanoseconds: AtomicU64,
}

impl Page {
    pub fn new(number: fn(f64) -> String) -> Page {
        Page { text: String::new(), number }
    }

    /// Starts a family: the samples after it belong to it. `kind` is `counter`, `gauge` or `histogram`.
    pub fn family(&mut self, name: &str, kind: &str, help: &str) {
        let help = help.replace('\\', "\\\\").replace('\n', "\\n");
        self.line(format_args!("# HELP {name} {help}\n# TYPE {name} {kind}"));
    }

    /// A family of one sample without labels.
    pub fn single(&mut self, name: &str, kind: &str, help: &str, value: f64) {
        self.family(name, kind, help);
        self.sample::<&str>(name, &[], value);
    }

    pub fn sample<V: AsRef<str>>(&mut self, name: &str, labels: &[(&'static str, V)], value: f64) {
        self.series(name, labels, None);
        let value = (self.number)(value);
        self.line(format_args!(" {value}"));
    }

    pub fn histogram<V: AsRef<str>>(&mut self, name: &str, labels: &[(&'static str, V)], of: &Histogram) {
        let bounds = of.bounds.iter().map(|bound| (self.number)(*bound)).chain(["+Inf".to_owned()]);
        let (bounds, bucket, mut seen): (Vec<String>, _, _) = (bounds.collect(), format!("{name}_bucket"), 0);
        for (bound, count) in bounds.iter().zip(&of.counts) {
            seen += count.load(Relaxed);
            self.series(&bucket, labels, Some(bound));
            let count = (self.number)(seen as f64);
            self.line(format_args!(" {count}"));
        }
        self.sample(&format!("{name}_sum"), labels, of.sum());
        self.sample(&format!("{name}_count"), labels, seen as f64);
    }

    pub fn into_text(self) -> String {
        self.text
    }

    fn series<V: AsRef<str>>(&mut self, name: &str, labels: &[(&'static str, V)], bound: Option<&str>) {
        self.text.push_str(name);
        let labels = labels.iter().map(|(label, value)| (*label, value.as_ref()));
        let mut before = '{';
        for (label, value) in labels.chain(bound.map(|bound| ("le", bound))) {
            let value = value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
            write!(self.text, "{before}{label}=\"{value}\"").expect("a String takes every write");
            before = ',';
        }
        if before == ',' {
            self.text.push('}');
        }
    }

    fn line(&mut self, text: fmt::Arguments<'_>) {
        writeln!(self.text, "{text}").expect("a String takes every write");
    }
}

impl Histogram {
    pub fn new(bounds: &'static [f64]) -> Histogram {
        let counts = (0..=bounds.len()).map(|_| AtomicU64::new(0)).collect();
        Histogram { bounds, counts, sum: AtomicU64::new(0), nanoseconds: AtomicU64::new(0) }
    }

    pub fn observe(&self, value: f64) {
        self.count(value);
        let add = |bits: u64| Some((f64::from_bits(bits) + value).to_bits());
        let _ = self.sum.fetch_update(Relaxed, Relaxed, add);
    }

    /// Observes a duration in seconds. Their sum may reach five centuries.
    pub fn observe_duration(&self, duration: Duration) {
        self.count(duration.as_secs_f64());
        self.nanoseconds.fetch_add(duration.as_nanos() as u64, Relaxed);
    }

    pub fn is_empty(&self) -> bool {
        self.counts.iter().all(|count| count.load(Relaxed) == 0)
    }

    fn count(&self, value: f64) {
        let bucket = self.bounds.partition_point(|bound| *bound < value);
        self.counts[bucket].fetch_add(1, Relaxed);
    }

    fn sum(&self) -> f64 {
        f64::from_bits(self.sum.load(Relaxed)) + self.nanoseconds.load(Relaxed) as f64 / 1e9
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_what_prometheus_reads() {
        let histogram = Histogram::new(&[0.5, 1.0]);
        [0.25, 0.5, 0.75, 8.0].into_iter().for_each(|value| histogram.observe(value));
        let mut page = Page::new(|number| number.to_string());
        page.family("a_total", "counter", "Help.");
        page.sample("a_total", &[("x", "q\"\\\n"), ("y", "")], 3.0);
        page.family("b", "histogram", "Help.");
        page.histogram("b", &[("x", "z")], &histogram);
        page.single("c", "gauge", "Help.", 1.5);
        let expected = r#"# HELP a_total Help.
# TYPE a_total counter
a_total{x="q\"\\\n",y=""} 3
# HELP b Help.
# TYPE b histogram
b_bucket{x="z",le="0.5"} 2
b_bucket{x="z",le="1"} 3
b_bucket{x="z",le="+Inf"} 4
b_sum{x="z"} 9.5
b_count{x="z"} 4
# HELP c Help.
# TYPE c gauge
c 1.5
"#;
        assert_eq!(page.into_text(), expected);
        assert!(!histogram.is_empty());
    }

    #[test]
    fn durations_add_up_exactly() {
        let histogram = Histogram::new(&[1e6]);
        (0..7).for_each(|_| histogram.observe_duration(Duration::from_millis(30)));
        let mut page = Page::new(crate::go::float);
        page.histogram::<&str>("a", &[], &histogram);
        let expected = "a_bucket{le=\"1e+06\"} 7\na_bucket{le=\"+Inf\"} 7\na_sum 0.21\na_count 7\n";
        assert_eq!(page.into_text(), expected);
    }
}
