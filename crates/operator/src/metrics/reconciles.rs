//! `controller_runtime_*`, and how long keys wait and are in progress.

use super::{Counter, Gauge, Histogram, Metrics};
use std::time::Duration;

// controller-runtime: the bounds of its histograms.
const RECONCILE_TIMES: [f64; 40] = [
    0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.25,
    1.5, 1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 15.0, 20.0, 25.0, 30.0, 40.0,
    50.0, 60.0,
];
const QUEUE_TIMES: [f64; 12] = tenfold(10e-9);

/// The metrics of one controller.
#[derive(Debug)]
pub(crate) struct Reconciles {
    /// By result.
    success: Counter,
    error: Counter,
    requeue: Counter,
    requeue_after: Counter,
    errors: Counter,
    terminal_errors: Counter,
    panics: Counter,
    timeouts: Counter,
    reconcile_time: Histogram,
    active_workers: Gauge,
    queue_duration: Histogram,
    work_duration: Histogram,
}

/// How a reconcile ended: the label `result`, and further counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ResultLabel {
    Success,
    RequeueAfter,
    Requeue,
    Error,
    Terminal,
    Panic,
    Timeout,
}

/// A reconcile in progress.
#[derive(Debug)]
pub(crate) struct ReconcileTimer<'a>(&'a Reconciles);

impl Metrics {
    /// The metrics of this controller, which are all on the page from the start.
    pub(crate) fn reconciles(&self, controller: &str, workers: usize) -> Reconciles {
        let labels = [("controller", controller)];
        let counter = |name, help| self.counter(name, help, &labels);
        let total = |result| {
            let labels = [("controller", controller), ("result", result)];
            let help = "Total number of reconciliations per controller";
            self.counter("controller_runtime_reconcile_total", help, &labels)
        };
        let queue_labels = [("name", controller), ("controller", controller)];
        let duration = |name, help| self.histogram(name, help, &queue_labels, &QUEUE_TIMES);
        let most = "Maximum number of concurrent reconciles per controller";
        self.gauge("controller_runtime_max_concurrent_reconciles", most, &labels).set(workers as f64);
        Reconciles {
            success: total("success"),
            error: total("error"),
            requeue: total("requeue"),
            requeue_after: total("requeue_after"),
            errors: counter(
                "controller_runtime_reconcile_errors_total",
                "Total number of reconciliation errors per controller",
            ),
            terminal_errors: counter(
                "controller_runtime_terminal_reconcile_errors_total",
                "Total number of terminal reconciliation errors per controller",
            ),
            panics: counter(
                "controller_runtime_reconcile_panics_total",
                "Total number of reconciliation panics per controller",
            ),
            timeouts: counter(
                "controller_runtime_reconcile_timeouts_total",
                "Total number of reconciliation timeouts per controller",
            ),
            reconcile_time: self.histogram(
                "controller_runtime_reconcile_time_seconds",
                "Length of time per reconciliation per controller",
                &labels,
                &RECONCILE_TIMES,
            ),
            active_workers: self.gauge(
                "controller_runtime_active_workers",
                "Number of currently used workers per controller",
                &labels,
            ),
            queue_duration: duration(
                "workqueue_queue_duration_seconds",
                "How long in seconds an item stays in workqueue before being requested",
            ),
            work_duration: duration(
                "workqueue_work_duration_seconds",
                "How long in seconds processing an item from workqueue takes.",
            ),
        }
    }
}

impl Reconciles {
    /// Counts a key that was taken after it had `waited`.
    pub(crate) fn start(&self, waited: Duration) -> ReconcileTimer<'_> {
        self.queue_duration.observe(waited);
        self.active_workers.add(1.0);
        ReconcileTimer(self)
    }
}

impl ReconcileTimer<'_> {
    pub(crate) fn stop(self, took: Duration, label: ResultLabel) {
        let counts = self.0;
        counts.reconcile_time.observe(took);
        counts.work_duration.observe(took);
        match label {
            ResultLabel::Success => counts.success.add(1),
            ResultLabel::RequeueAfter => counts.requeue_after.add(1),
            ResultLabel::Requeue => counts.requeue.add(1),
            ResultLabel::Error | ResultLabel::Terminal | ResultLabel::Panic | ResultLabel::Timeout => {
                counts.error.add(1);
                counts.errors.add(1);
            }
        }
        match label {
            ResultLabel::Terminal => counts.terminal_errors.add(1),
            ResultLabel::Panic => counts.panics.add(1),
            ResultLabel::Timeout => counts.timeouts.add(1),
            _ => {}
        }
    }
}

/// Also when the reconcile is cancelled.
impl Drop for ReconcileTimer<'_> {
    fn drop(&mut self) {
        self.0.active_workers.add(-1.0);
    }
}

/// Multiplied step by step: the bounds are labels, and must have the same digits as in Go.
const fn tenfold<const N: usize>(first: f64) -> [f64; N] {
    let mut bounds = [first; N];
    let mut at = 1;
    while at < N {
        bounds[at] = bounds[at - 1] * 10.0;
        at += 1;
    }
    bounds
}
