//! One call of a reconcile, which may neither take for ever nor bring down its worker.

use crate::{Failure, Key, Next, Reconcile};
use futures::FutureExt;
use std::{any::Any, panic::AssertUnwindSafe, time::Duration};
use world::{Elapsed, World};

/// How a call ended.
#[derive(Debug)]
pub(super) enum Outcome {
    Answer(Result<Next, Failure>),
    Panicked(String),
    TimedOut(Elapsed),
}

pub(super) async fn call(
    world: &World,
    reconciler: &dyn Reconcile,
    key: &Key,
    deadline: Duration,
) -> Outcome {
    // The call itself may panic, not only what it returns.
    let call = async { reconciler.reconcile(key.clone()).await };
    // A reconcile reads its state anew each time, so it sees nothing half done by this one.
    match AssertUnwindSafe(world.timeout(deadline, call)).catch_unwind().await {
        Ok(Ok(answer)) => Outcome::Answer(answer),
        Ok(Err(elapsed)) => Outcome::TimedOut(elapsed),
        Err(payload) => Outcome::Panicked(text_of(&*payload)),
    }
}

fn text_of(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().copied();
    let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("no message").to_owned()
}
