//! Calls a reconcile with a deadline, and catches its panic.

use crate::{Failure, Next, Reconcile, queue::TakenKey};
use futures::FutureExt;
use std::{any::Any, panic::AssertUnwindSafe, time::Duration};
use world::{Elapsed, World};

/// How a reconcile ended.
#[derive(Debug)]
pub(super) enum Outcome {
    Returned(Result<Next, Failure>),
    Panicked(String),
    TimedOut(Elapsed),
}

pub(super) async fn call(
    world: &World,
    reconciler: &dyn Reconcile,
    taken: &TakenKey<'_>,
    deadline: Duration,
) -> Outcome {
    // The call may panic before it returns a future.
    let call = async { reconciler.reconcile(taken.key().clone(), taken.reason()).await };
    // The next reconcile reads its state from the cluster, and sees nothing of what this one left half done.
    match AssertUnwindSafe(world.timeout(deadline, call)).catch_unwind().await {
        Ok(Ok(result)) => Outcome::Returned(result),
        Ok(Err(elapsed)) => Outcome::TimedOut(elapsed),
        Err(payload) => Outcome::Panicked(text_of(&*payload)),
    }
}

fn text_of(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().copied();
    let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("no message").to_owned()
}
