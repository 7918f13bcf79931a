//! The text format in which Prometheus reads metrics, as Go's client writes it.

use std::fmt::Write;

#[derive(Debug, Default)]
pub(super) struct Page(pub(super) String);

impl Page {
    /// Begins a family: every sample after it belongs to it.
    pub(super) fn family(&mut self, name: &str, sort: &str, help: &str) {
        let help = help.replace('\\', "\\\\").replace('\n', "\\n");
        self.line(format_args!("# HELP {name} {help}\n# TYPE {name} {sort}"));
    }

    pub(super) fn sample(&mut self, name: &str, labels: &[(&'static str, String)], value: f64) {
        self.name(name, labels, None);
        let value = api::go::float(value);
        self.line(format_args!(" {value}"));
    }

    pub(super) fn bucket(&mut self, name: &str, labels: &[(&'static str, String)], bound: &str, count: u64) {
        self.name(name, labels, Some(bound));
        let count = api::go::float(count as f64);
        self.line(format_args!(" {count}"));
    }

    fn name(&mut self, name: &str, labels: &[(&'static str, String)], bound: Option<&str>) {
        self.0.push_str(name);
        let labels = labels.iter().map(|(label, value)| (*label, value.as_str()));
        let mut before = '{';
        for (label, value) in labels.chain(bound.map(|bound| ("le", bound))) {
            let value = value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
            write!(self.0, "{before}{label}=\"{value}\"").expect("a string takes everything");
            before = ',';
        }
        if before == ',' {
            self.0.push('}');
        }
    }

    fn line(&mut self, text: std::fmt::Arguments<'_>) {
        writeln!(self.0, "{text}").expect("a string takes everything");
    }
}
