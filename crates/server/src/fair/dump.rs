//! The debug endpoint that dumps all priority levels as a table.

use super::levels::Report;
use crate::{Body, Inner, answer};
use http::{Response, StatusCode};

pub(crate) const PATH: &str = "/debug/api_priority_and_fairness/dump_priority_levels";

// Kubernetes: the same columns.
const COLUMNS: [&str; 10] = [
    "PriorityLevelName,",
    "ActiveQueues,",
    "IsIdle,",
    "IsQuiescing,",
    "WaitingRequests,",
    "ExecutingRequests,",
    "DispatchedRequests,",
    "RejectedRequests,",
    "TimedoutRequests,",
    "CancelledRequests",
];
/// Kubernetes: the minimum width of a column.
const MIN_WIDTH: usize = 8;

pub(crate) fn answer(inner: &Inner) -> Response<Body> {
    let levels = inner.fair.lock().levels.report();
    answer::full(StatusCode::OK, "text/plain; charset=utf-8", table(&levels))
}

fn table(levels: &[Report]) -> String {
    let mut rows = vec![COLUMNS.map(str::to_owned)];
    rows.extend(levels.iter().map(row));
    let width = |column: usize| rows.iter().map(|row| row[column].len() + 1).max().unwrap_or_default();
    let widths: [usize; 10] = std::array::from_fn(|column| width(column).max(MIN_WIDTH));
    let mut text = String::new();
    for row in &rows {
        for (cell, width) in row.iter().zip(widths) {
            text.push_str(&format!("{cell:<width$}"));
        }
        text.truncate(text.trim_end_matches(' ').len());
        text.push('\n');
    }
    text
}

fn row(level: &Report) -> [String; 10] {
    let tally = level.tally;
    // Kubernetes: timed-out and cancelled requests count as rejected, too.
    let rejected = tally.refused + tally.timed_out + tally.cancelled;
    [
        format!("{},", level.name),
        format!("{},", level.queues),
        format!("{},", level.is_idle),
        format!("{},", level.is_leaving),
        format!("{},", level.waiting),
        format!("{},", level.executing),
        format!("{},", tally.dispatched),
        format!("{rejected},"),
        format!("{},", tally.timed_out),
        tally.cancelled.to_string(),
    ]
}
