//! Settle: waits until neither control loops nor watches have anything left to be told.

use super::duration;
use crate::{
    Cluster,
    problem::Problem,
    transport::{Counted, OutsideProgress},
};
use serde_json::{Value, json};
use std::{sync::Arc, time::Duration};
use store::Revision;
use world::Moment;

/// How long nothing may happen, if the spec does not say.
const QUIET: Duration = Duration::from_millis(50);
const TIMEOUT: Duration = Duration::from_secs(30);
/// Between two looks.
const LOOK: Duration = Duration::from_millis(5);
/// On a frozen clock, a control loop that backs off waits for ever: the clock moves on then, but never further than this at once.
const LONGEST_BACK_OFF: Duration = Duration::from_secs(60);

/// What changes while a cluster works.
#[derive(Debug, PartialEq, Eq)]
struct Activity {
    revision: Revision,
    requests: u64,
    outside: OutsideProgress,
    busy: Vec<String>,
}

/// Settles as a spec says.
pub(crate) async fn settle(cluster: &Arc<Cluster>, spec: &Value) -> Result<Value, Problem> {
    let quiet = duration(spec, "quiet")?.unwrap_or(QUIET);
    let timeout = duration(spec, "timeout")?.unwrap_or(TIMEOUT);
    if quiet >= timeout {
        let told = format!(
            "spec.timeout: {timeout:?} is not longer than spec.quiet, {quiet:?}: it could not settle"
        );
        return Err(Problem::invalid(told));
    }
    let _steering = cluster.steering.lock().await;
    let begun = cluster.real.now();
    let revision = wait(cluster, quiet, timeout, Counted::All).await?;
    Ok(json!({
        "revision": revision.0,
        "waited": format!("{:?}", cluster.real.now().since(begun)),
        "now": cluster.clock.wall().to_string(),
    }))
}

/// Settles with the usual limits.
pub(crate) async fn until_idle(cluster: &Arc<Cluster>) -> Result<(), Problem> {
    wait(cluster, QUIET, TIMEOUT, Counted::All).await.map(drop)
}

/// Waits until nothing has happened for `quiet`.
pub(crate) async fn wait(
    cluster: &Arc<Cluster>,
    quiet: Duration,
    timeout: Duration,
    counted: Counted,
) -> Result<Revision, Problem> {
    cluster.start_loops();
    let begun = cluster.real.now();
    let (mut before, mut still) = (activity(cluster, counted).await?, begun);
    loop {
        cluster.real.sleep(LOOK).await;
        let now = activity(cluster, counted).await?;
        let moment = cluster.real.now();
        if now != before {
            still = moment;
        }
        let is_quiet = moment.since(still) >= quiet;
        if is_quiet && now.busy.is_empty() {
            return Ok(now.revision);
        }
        if is_quiet && cluster.clock.is_frozen() {
            end_back_off(cluster);
            still = moment;
        }
        if moment.since(begun) >= timeout {
            return Err(not_settled(begun, moment, &now));
        }
        before = now;
    }
}

fn not_settled(begun: Moment, now: Moment, activity: &Activity) -> Problem {
    let busy = match activity.busy.is_empty() {
        true => "the objects, which change all the time".to_owned(),
        false => activity.busy.join("; "),
    };
    Problem::timeout(format!("not settled after {:?}; still busy: {busy}", now.since(begun)))
}

/// Moves a frozen clock to the next timer, if that is near.
fn end_back_off(cluster: &Cluster) {
    let limit = cluster.clock.now() + LONGEST_BACK_OFF;
    if let Some(next) = cluster.clock.next_timer().filter(|next| *next <= limit) {
        cluster.clock.move_to(next);
    }
}

async fn activity(cluster: &Cluster, counted: Counted) -> Result<Activity, Problem> {
    let transport = &cluster.transport;
    let mut busy = transport.pending.busy_with(&cluster.world, counted);
    busy.extend(transport.pending.behind());
    // On a busy machine, work may wait for a thread.
    if cluster.clock.active_tasks() > 0 {
        busy.push("tasks of the cluster".to_owned());
    }
    if !cluster.are_loops_idle() {
        busy.push("control loops".to_owned());
    }
    Ok(Activity {
        revision: cluster.store.revision().await.map_err(Problem::of_store)?,
        requests: transport.recorder.count(),
        outside: transport.pending.outside(),
        busy,
    })
}
