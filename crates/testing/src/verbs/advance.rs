//! Advance: moves the clock of a cluster on, from timer to timer, so that each does its work at its own time.

use super::{
    duration,
    rest::{rest, rest_outside},
    settle,
};
use crate::{Cluster, problem::Problem, transport::Counted};
use serde_json::{Value, json};
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::SeqCst},
    },
    time::Duration,
};
use tokio::sync::OwnedMutexGuard;
use world::{Moment, Timestamp};

/// How long it may take in real time, if the spec does not say.
const TIMEOUT: Duration = Duration::from_secs(300);
/// What clients in other processes get to react to events, in real time.
const QUIET: Duration = Duration::from_millis(50);
/// Further than this is most likely a mistake, and timers are only kept for some years.
const FURTHEST: Duration = Duration::from_secs(366 * 24 * 3600);

/// A clock that only an advance moves. Dropping this lets it go on as before.
#[derive(Debug)]
struct HeldClock {
    cluster: Arc<Cluster>,
    was_frozen: bool,
    _steering: OwnedMutexGuard<()>,
}

impl HeldClock {
    async fn hold(cluster: &Arc<Cluster>) -> HeldClock {
        let steering = Arc::clone(&cluster.steering).lock_owned().await;
        let was_frozen = cluster.clock.is_frozen();
        cluster.clock.freeze(true);
        HeldClock { cluster: Arc::clone(cluster), was_frozen, _steering: steering }
    }
}

impl Drop for HeldClock {
    fn drop(&mut self) {
        self.cluster.clock.freeze(self.was_frozen);
    }
}

/// Says, when it is dropped, that the client has left.
#[derive(Debug, Default)]
struct Waiting(Arc<AtomicBool>);

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.store(true, SeqCst);
    }
}

pub(crate) async fn advance(cluster: &Arc<Cluster>, spec: &Value) -> Result<Value, Problem> {
    let timeout = duration(spec, "timeout")?.unwrap_or(TIMEOUT);
    let held = HeldClock::hold(cluster).await;
    cluster.start_loops();
    let target = cluster.clock.now() + distance(cluster, spec)?;
    let begun = cluster.real.now();
    let waiting = Waiting::default();
    let is_abandoned = Arc::clone(&waiting.0);
    // The thread holds the clock, since it goes on for a moment after a client that has left.
    let work = move || {
        let moved = go(&held.cluster, target, begun + timeout, &is_abandoned);
        (held, moved)
    };
    let (held, moved) = cluster.real.blocking(work).await;
    let timers = moved?;
    settle::wait(cluster, QUIET, timeout, Counted::AtThisMoment).await?;
    drop(held);
    Ok(json!({
        "now": cluster.clock.wall().to_string(),
        "timers": timers,
        "took": format!("{:?}", cluster.real.now().since(begun)),
    }))
}

/// How far the clock is to go.
fn distance(cluster: &Cluster, spec: &Value) -> Result<Duration, Problem> {
    let by = match (duration(spec, "by")?, spec["to"].as_str()) {
        (Some(by), _) => by,
        (None, Some(text)) => {
            let to: Timestamp =
                text.parse().map_err(|error| Problem::invalid(format!("spec.to: {error}")))?;
            let left = to.duration_since(cluster.clock.wall());
            left.try_into().map_err(|_| {
                Problem::invalid(format!("spec.to: {text} is past; the clock shows {}", cluster.clock.wall()))
            })?
        }
        (None, None) => return Err(Problem::invalid("give either spec.by or spec.to")),
    };
    if by > FURTHEST {
        return Err(Problem::invalid("the clock cannot go further than a year at once"));
    }
    Ok(by)
}

/// Goes from timer to timer up to `target`; returns how many stops there were.
fn go(
    cluster: &Cluster,
    target: Moment,
    deadline: Moment,
    is_abandoned: &AtomicBool,
) -> Result<u64, Problem> {
    let endless = || {
        let busy = cluster.transport.pending.busy(&cluster.world).join("; ");
        Problem::timeout(format!("the cluster does not come to rest at {}: {busy}", cluster.clock.wall()))
    };
    let mut outside = cluster.transport.pending.outside();
    let mut timers = 0;
    if !rest(cluster) {
        return Err(endless());
    }
    while let Some(next) = cluster.clock.next_timer().filter(|next| *next <= target) {
        if is_abandoned.load(SeqCst) {
            return Err(Problem::timeout("the client has left"));
        }
        if cluster.real.now() >= deadline {
            let now = cluster.clock.wall();
            return Err(Problem::timeout(format!("spec.timeout is over; the clock came to {now}")));
        }
        cluster.clock.move_to(next);
        timers += 1;
        if !rest(cluster) || !rest_outside(cluster, &mut outside, QUIET) {
            return Err(endless());
        }
    }
    cluster.clock.move_to(target);
    Ok(timers)
}
