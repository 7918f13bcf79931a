//! `workqueue_*`: read off a queue whenever somebody asks.

use super::{Metrics, series::Sort};
use crate::queue::{Census, Queue};
use std::time::Duration;

type Labels<'a> = [(&'static str, &'a str)];

// controller-runtime: its priorities for what is fresh and for resyncs.
const FRESH: &str = "0";
const BACKGROUND: &str = "-100";

impl Metrics {
    /// Shows this queue on the page, under the name of its controller.
    pub(crate) fn watch_queue(&self, controller: &str, queue: &Queue) {
        let labels = [("name", controller), ("controller", controller)];
        self.depth(controller, FRESH, queue, |census| census.fresh);
        self.depth(controller, BACKGROUND, queue, |census| census.background);
        self.count(
            "workqueue_adds_total",
            "Total number of adds handled by workqueue",
            &labels,
            queue,
            |census| census.adds,
        );
        self.count(
            "workqueue_retries_total",
            "Total number of items added to the workqueue with a non-zero delay (rate-limited requeues, explicit RequeueAfter or AddAfter calls)",
            &labels,
            queue,
            |census| census.retries,
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

    fn depth(&self, controller: &str, priority: &'static str, queue: &Queue, number: fn(&Census) -> usize) {
        let labels = [("name", controller), ("controller", controller), ("priority", priority)];
        let help = "Current depth of workqueue by workqueue and priority";
        let queue = queue.clone();
        self.computed("workqueue_depth", help, Sort::Gauge, &labels, move || number(&queue.census()) as f64);
    }

    fn count(
        &self,
        name: &'static str,
        help: &'static str,
        labels: &Labels<'_>,
        queue: &Queue,
        number: fn(&Census) -> u64,
    ) {
        let queue = queue.clone();
        self.computed(name, help, Sort::Counter, labels, move || number(&queue.census()) as f64);
    }

    /// Of the ages of what is under way, longest first.
    fn ages(
        &self,
        name: &'static str,
        help: &'static str,
        labels: &Labels<'_>,
        queue: &Queue,
        of: fn(&[Duration]) -> Duration,
    ) {
        let queue = queue.clone();
        self.computed(name, help, Sort::Gauge, labels, move || {
            let ages: Vec<_> = queue.work_under_way().into_iter().map(|work| work.age).collect();
            of(&ages).as_secs_f64()
        });
    }
}
