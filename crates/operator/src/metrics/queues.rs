//! `workqueue_*`: read from a queue when the page is read.

use super::{Metrics, series::MetricType};
use crate::queue::{Queue, Stats};
use std::time::Duration;

type LabelSlice<'a> = [(&'static str, &'a str)];

// controller-runtime: its priorities for changes and for resyncs.
const FRESH: &str = "0";
const BACKGROUND: &str = "-100";

impl Metrics {
    /// Puts this queue on the page, under the name of its controller.
    pub(crate) fn watch_queue(&self, controller: &str, queue: &Queue) {
        let labels = [("name", controller), ("controller", controller)];
        self.depth(controller, FRESH, queue, |stats| stats.fresh);
        self.depth(controller, BACKGROUND, queue, |stats| stats.background);
        self.count(
            "workqueue_adds_total",
            "Total number of adds handled by workqueue",
            &labels,
            queue,
            |stats| stats.adds,
        );
        self.count(
            "workqueue_retries_total",
            "Total number of items added to the workqueue with a non-zero delay (rate-limited requeues, explicit RequeueAfter or AddAfter calls)",
            &labels,
            queue,
            |stats| stats.retries,
        );
        self.ages(
            "workqueue_unfinished_work_seconds",
            "How many seconds of work has been done that is in progress and hasn't been observed by work_duration. Large values indicate stuck threads. One can deduce the number of stuck threads by observing the rate at which this increases.",
            &labels,
            queue,
            |ages| ages.iter().sum(),
        );
        self.ages(
            "workqueue_longest_running_processor_seconds",
            "How many seconds has the longest running processor for workqueue been running.",
            &labels,
            queue,
            |ages| ages.first().copied().unwrap_or_default(),
        );
    }

    fn depth(&self, controller: &str, priority: &'static str, queue: &Queue, number: fn(&Stats) -> usize) {
        let labels = [("name", controller), ("controller", controller), ("priority", priority)];
        let help = "Current depth of workqueue by workqueue and priority";
        let queue = queue.clone();
        self.computed("workqueue_depth", help, MetricType::Gauge, &labels, move || {
            number(&queue.stats()) as f64
        });
    }

    fn count(
        &self,
        name: &'static str,
        help: &'static str,
        labels: &LabelSlice<'_>,
        queue: &Queue,
        number: fn(&Stats) -> u64,
    ) {
        let queue = queue.clone();
        self.computed(name, help, MetricType::Counter, labels, move || number(&queue.stats()) as f64);
    }

    /// A number computed from the ages of the keys in progress, the longest first.
    fn ages(
        &self,
        name: &'static str,
        help: &'static str,
        labels: &LabelSlice<'_>,
        queue: &Queue,
        of: fn(&[Duration]) -> Duration,
    ) {
        let queue = queue.clone();
        self.computed(name, help, MetricType::Gauge, labels, move || {
            let ages: Vec<_> = queue.in_progress().into_iter().map(|key| key.age).collect();
            of(&ages).as_secs_f64()
        });
    }
}
