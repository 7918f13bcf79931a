//! The results, as JSON and as a table.

use super::{
    latency::{Latencies, Percentiles},
    measure::Measured,
    operation::Operation,
};
use comfy_table::{CellAlignment, Table, presets::UTF8_BORDERS_ONLY};
use serde::Serialize;
use std::time::Duration;

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Report {
    pub(crate) object_bytes: usize,
    pub(crate) listed_objects: usize,
    pub(crate) watchers: usize,
    pub(crate) rounds: u32,
    pub(crate) seconds: f64,
    pub(crate) servers: Vec<ServerReport>,
    /// The first server relative to the second.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) ratios: Vec<Ratio>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ServerReport {
    pub(crate) url: String,
    pub(crate) version: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cold_start_milliseconds: Option<f64>,
    pub(crate) measurements: Vec<Line>,
    /// Milliseconds from sending a write until the last watcher has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) fan_out: Option<Percentiles>,
}

/// One operation at one number of clients.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Line {
    pub(crate) operation: Operation,
    pub(crate) clients: usize,
    pub(crate) requests: u64,
    pub(crate) errors: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) complaint: Option<String>,
    pub(crate) per_second: f64,
    pub(crate) milliseconds: Percentiles,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Ratio {
    pub(crate) operation: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) clients: Option<usize>,
    /// Above one: the first is faster.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) per_second: Option<f64>,
    /// Below one: the first responds sooner.
    pub(crate) p50: f64,
    pub(crate) p99: f64,
}

impl Line {
    /// All rounds as one: the median of the rates, and all latencies together.
    pub(crate) fn new(operation: Operation, clients: usize, rounds: &[Measured]) -> Line {
        let mut latencies = Latencies::default();
        rounds.iter().for_each(|round| latencies.merge(&round.latencies));
        Line {
            operation,
            clients,
            requests: latencies.count,
            errors: rounds.iter().map(|round| round.errors).sum(),
            complaint: rounds.iter().find_map(|round| round.complaint.clone()),
            per_second: median(rounds.iter().map(Measured::per_second).collect()),
            milliseconds: latencies.percentiles(),
        }
    }
}

pub(crate) fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_by(f64::total_cmp);
    numbers.get(numbers.len() / 2).copied().unwrap_or(0.0)
}

/// The first server relative to the second, line by line.
pub(crate) fn ratios(servers: &[ServerReport]) -> Vec<Ratio> {
    let [first, second] = servers else { return Vec::new() };
    let mut ratios = Vec::new();
    for (own, other) in first.measurements.iter().zip(&second.measurements) {
        ratios.push(Ratio {
            operation: own.operation.name(),
            clients: Some(own.clients),
            per_second: Some(own.per_second / other.per_second),
            p50: own.milliseconds.p50 / other.milliseconds.p50,
            p99: own.milliseconds.p99 / other.milliseconds.p99,
        });
    }
    if let (Some(own), Some(other)) = (first.fan_out, second.fan_out) {
        let (p50, p99) = (own.p50 / other.p50, own.p99 / other.p99);
        ratios.push(Ratio { operation: "fan-out", clients: None, per_second: None, p50, p99 });
    }
    ratios
}

impl Report {
    /// The report as tables.
    pub(crate) fn text(&self) -> String {
        let mut text = format!(
            "objects of {} bytes, lists of {}; {} rounds, {} s for each operation and number of clients\n",
            self.object_bytes, self.listed_objects, self.rounds, self.seconds
        );
        for server in &self.servers {
            text.push_str(&server.text(self.watchers));
        }
        if !self.ratios.is_empty() {
            text.push_str("\nthe first beside the second (rate: more is better; times: less is better)\n");
            text.push_str(&self.ratio_table());
        }
        text
    }

    fn ratio_table(&self) -> String {
        let mut table = table(&["operation", "clients", "per second", "p50", "p99"]);
        for ratio in &self.ratios {
            table.add_row(vec![
                ratio.operation.to_owned(),
                ratio.clients.map(|clients| clients.to_string()).unwrap_or_default(),
                ratio.per_second.map(|rate| format!("{rate:.2} x")).unwrap_or_default(),
                format!("{:.2} x", ratio.p50),
                format!("{:.2} x", ratio.p99),
            ]);
        }
        format!("{table}\n")
    }
}

impl ServerReport {
    fn text(&self, watchers: usize) -> String {
        let mut text = format!("\n{} (Kubernetes {})\n", self.url, self.version);
        if let Some(cold) = self.cold_start_milliseconds {
            text.push_str(&format!("cold start to ready: {cold:.0} ms\n"));
        }
        let mut table = table(&["operation", "clients", "per second", "p50", "p90", "p99", "max", "errors"]);
        for line in &self.measurements {
            let mut row =
                vec![line.operation.name().to_owned(), line.clients.to_string(), rate(line.per_second)];
            row.extend(times(line.milliseconds));
            row.push(if line.errors == 0 { String::new() } else { line.errors.to_string() });
            table.add_row(row);
        }
        if let Some(last) = self.fan_out {
            let mut row = vec![format!("fan-out to {watchers}"), "1".to_owned(), String::new()];
            row.extend(times(last));
            table.add_row(row);
        }
        text.push_str(&format!("{table}\n"));
        let complaints = self.measurements.iter().find_map(|line| line.complaint.as_deref());
        if let Some(complaint) = complaints {
            text.push_str(&format!("the first error: {complaint}\n"));
        }
        text
    }
}

fn table(header: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_style(UTF8_BORDERS_ONLY).set_header(header.to_vec());
    table.column_iter_mut().skip(1).for_each(|column| column.set_cell_alignment(CellAlignment::Right));
    table
}

fn rate(per_second: f64) -> String {
    if per_second < 100.0 { format!("{per_second:.1}") } else { format!("{per_second:.0}") }
}

fn times(milliseconds: Percentiles) -> [String; 4] {
    let Percentiles { p50, p90, p99, max } = milliseconds;
    [p50, p90, p99, max].map(|time| format!("{time:.2} ms"))
}

pub(crate) fn milliseconds(took: Duration) -> f64 {
    took.as_secs_f64() * 1e3
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(rates: &[f64], millisecond: u64) -> ServerReport {
        let rounds = rates.iter().map(|rate| {
            let mut measured = Measured { elapsed: Duration::from_secs(1), ..Measured::default() };
            measured.done = vec![*rate as u64];
            measured.latencies.record(Duration::from_millis(millisecond));
            measured
        });
        let rounds: Vec<_> = rounds.collect();
        ServerReport {
            url: "https://a".to_owned(),
            version: "v1.36.0".to_owned(),
            cold_start_milliseconds: None,
            measurements: vec![Line::new(Operation::Get, 8, &rounds)],
            fan_out: None,
        }
    }

    #[test]
    fn the_median_round_counts_and_two_servers_make_ratios() {
        let servers = [server(&[10.0, 900.0, 20.0], 4), server(&[40.0], 8)];
        assert_eq!(servers[0].measurements[0].per_second, 20.0);
        let found = ratios(&servers);
        assert_eq!((found[0].operation, found[0].clients, found[0].per_second), ("get", Some(8), Some(0.5)));
        assert!((found[0].p50 - 0.5).abs() < 0.02, "{found:?}");
        assert!(ratios(&servers[..1]).is_empty());
        assert!(servers[0].text(0).contains("get"), "{}", servers[0].text(0));
    }
}
