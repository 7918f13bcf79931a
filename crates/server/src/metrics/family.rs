//! Counters and histograms that many threads update, and Prometheus' text format.

use std::{
    fmt::Write,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
};

/// Counts of values by upper bound.
#[derive(Debug)]
pub(crate) struct Histogram {
    bounds: &'static [f64],
    /// One more than bounds: the last is for values above all of them.
    counts: Box<[AtomicU64]>,
    /// The bits of an f64.
    sum: AtomicU64,
}

impl Histogram {
    pub(crate) fn new(bounds: &'static [f64]) -> Histogram {
        let counts = (0..=bounds.len()).map(|_| AtomicU64::new(0)).collect();
        Histogram { bounds, counts, sum: AtomicU64::new(0) }
    }

    pub(crate) fn observe(&self, value: f64) {
        let at = self.bounds.partition_point(|bound| *bound < value);
        self.counts[at].fetch_add(1, Relaxed);
        let add = |bits: u64| Some((f64::from_bits(bits) + value).to_bits());
        let _ = self.sum.fetch_update(Relaxed, Relaxed, add);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.counts.iter().all(|count| count.load(Relaxed) == 0)
    }
}

/// Label names and values, sorted by name.
pub(crate) type Labels<'a> = [(&'static str, &'a str)];

/// The text of all families.
#[derive(Debug, Default)]
pub(crate) struct Page(pub(crate) String);

impl Page {
    /// Begins a family: all samples after it belong to it.
    pub(crate) fn family(&mut self, name: &str, kind: &str, help: &str) {
        self.line(format_args!("# HELP {name} {help}\n# TYPE {name} {kind}"));
    }

    /// A family of one sample.
    pub(crate) fn single(&mut self, name: &str, kind: &str, help: &str, value: f64) {
        self.family(name, kind, help);
        self.sample(name, &[], value);
    }

    pub(crate) fn sample(&mut self, name: &str, labels: &Labels<'_>, value: f64) {
        self.name(name, labels, None);
        self.line(format_args!(" {value}"));
    }

    pub(crate) fn histogram(&mut self, name: &str, labels: &Labels<'_>, of: &Histogram) {
        let mut seen = 0;
        let bounds = of.bounds.iter().map(f64::to_string).chain(["+Inf".to_owned()]);
        let bucket = format!("{name}_bucket");
        for (bound, count) in bounds.zip(&of.counts) {
            seen += count.load(Relaxed);
            self.name(&bucket, labels, Some(&bound));
            self.line(format_args!(" {seen}"));
        }
        self.name(&format!("{name}_sum"), labels, None);
        self.line(format_args!(" {}", f64::from_bits(of.sum.load(Relaxed))));
        self.name(&format!("{name}_count"), labels, None);
        self.line(format_args!(" {seen}"));
    }

    fn name(&mut self, name: &str, labels: &Labels<'_>, bound: Option<&str>) {
        self.0.push_str(name);
        let labels = labels.iter().copied().chain(bound.map(|bound| ("le", bound)));
        let mut before = '{';
        for (label, value) in labels {
            let value = value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
            write!(self.0, "{before}{label}=\"{value}\"").expect("writing to a string cannot fail");
            before = ',';
        }
        if before == ',' {
            self.0.push('}');
        }
    }

    fn line(&mut self, text: std::fmt::Arguments<'_>) {
        writeln!(self.0, "{text}").expect("writing to a string cannot fail");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_in_prometheus_text_format() {
        let histogram = Histogram::new(&[0.5, 1.0]);
        [0.25, 0.5, 0.75, 8.0].into_iter().for_each(|value| histogram.observe(value));
        let mut page = Page::default();
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
        assert_eq!(page.0, expected);
        assert!(!histogram.is_empty());
    }
}
