//! The garbage collector: deletes objects whose owners are gone, and carries out foreground deletion and orphaning.
//!
//! `kinds` finds out which kinds there are; `collector` watches their metadata and feeds the `graph`, which says
//! which objects to look at; `attempt` asks the server about one of them and does what the `verdict` says.

mod absent;
mod attempt;
mod collector;
mod graph;
mod identity;
mod kinds;
mod requests;
mod verdict;

use collector::Collector;
use operator::{Controller, Key};
use std::sync::Arc;

/// Kubernetes: `--concurrent-gc-syncs`.
const WORKERS: usize = 20;

pub(crate) fn controllers() -> Vec<Controller> {
    let collector = Arc::new(Collector::default());
    let connected = Arc::clone(&collector);
    let attempts = Controller::of_requests::<Key>("garbage-collector-controller")
        .queue(move |queue| connected.connect(queue))
        .workers(WORKERS)
        .reconcile(Arc::clone(&collector), attempt::reconcile);
    vec![attempts, kinds::controller(collector)]
}
