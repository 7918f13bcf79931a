//! Jobs: pods that run until enough of them, or certain ones, have succeeded.
//!
//! Kubernetes has expectations for pods and finalizers that its caches do not show yet. Here every own write is
//! in the cache when it returns, so there are none.

mod back_off;
mod desired;
mod failure_policy;
mod indexes;
pub(crate) mod orphan;
mod plan;
mod pods;
mod success_policy;
mod template;
mod track;

use crate::{
    claim,
    status::{self, Written},
};
use back_off::BackOffs;
pub(crate) use desired::finished;
use desired::{Desired, FINALIZER, is_managed_elsewhere, selector};
use k8s_openapi::api::{batch::v1::Job, core::v1::Pod};
use kube::Resource;
use operator::{Context, Controller, Failure, Key, Next, all, queue::Pace};
use plan::End;
use std::time::Duration;

/// So many Jobs are reconciled at once. Kubernetes: five. Reconciles wait for the disk most of the time, and a store that syncs
/// once for many writes is kept busy.
const WORKERS: usize = 32;
/// Kubernetes: the pauses after requests that have failed.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

pub(crate) fn controller() -> Controller {
    let pace = Pace { first_pause: FIRST_PAUSE, longest_pause: LONGEST_PAUSE, ..Pace::default() };
    Controller::new("job-controller", all::<Job>())
        .owns(all::<Pod>())
        .watches_through(all::<Pod>(), |jobs, pod| claim::claimants(jobs, pod, selector))
        .workers(WORKERS)
        .pace(pace)
        .reconcile(BackOffs::default(), reconcile)
}

async fn reconcile(context: Context<BackOffs>, key: Key) -> Result<Next, Failure> {
    let job = context.get::<Job>(&key)?.filter(|job| finished(job).is_none());
    let Some(job) = job else {
        context.state().remove(&key);
        return Ok(Next::Settled);
    };
    let (Some(desired), Some(selector)) = (Desired::read(&job), selector(&job)) else {
        return Ok(Next::Settled);
    };
    if is_managed_elsewhere(&job) {
        return Ok(Next::Settled);
    }
    if !desired.has_known_mode() {
        let note = "Skipped Job sync because completion mode is unknown";
        context.events().warning(&*job, "UnknownCompletionMode", "Reconcile", note);
        return Ok(Next::Settled);
    }
    let candidates = claim::candidates(&context.view::<Pod>()?, &*job)?;
    let pods = claim::claim_with(&context, &*job, &selector, candidates, Some(FINALIZER)).await?;
    let uid = job.meta().uid.clone().unwrap_or_default();
    let stored = context.state().get(&key, &uid);
    let plan = plan::plan(&desired, &pods, stored, context.wall());
    let (done, acted) = pods::act(&context, &desired, &plan).await;
    let tracking = track::record(&desired, &pods, &plan, done, context.wall());
    let api = context.namespaced::<Job>(&key);
    let written = match status::write(&api, &*job, &tracking.status).await? {
        Written::Changed(job) => job,
        Written::Unchanged => Job::clone(&job),
        Written::Gone => return Ok(Next::Settled),
    };
    context.state().set(&key, &uid, plan.back_off);
    if tracking.is_suspension_changed {
        let (reason, note) =
            if desired.is_suspended() { ("Suspended", "Job suspended") } else { ("Resumed", "Job resumed") };
        context.events().normal(&*job, reason, "Reconcile", note);
    }
    let (released, all_released) = pods::release_all(&context, &key, &tracking.released).await;
    let written_status = written.status.clone().unwrap_or_default();
    let (last, end) = tracking.finish(written_status, &released, context.wall());
    status::write(&api, &written, &last).await?;
    all_released?;
    if let Some(end) = end {
        record_end(&context, &desired, last.succeeded, &end);
    }
    acted.map_err(Failure::transient)?;
    Ok(plan.check_after.map_or(Next::Settled, Next::CheckAfter))
}

fn record_end(context: &Context<BackOffs>, desired: &Desired<'_>, succeeded: Option<i32>, end: &End) {
    let (job, events) = (desired.job, context.events());
    if !end.is_success {
        events.warning(job, &end.reason, "Reconcile", &*end.message);
        return;
    }
    if desired.spec.completions.is_some_and(|wanted| succeeded.unwrap_or_default() > wanted) {
        let note = "Too many succeeded pods running after completion count reached";
        events.warning(job, "TooManySucceededPods", "Reconcile", note);
    }
    events.normal(job, "Completed", "Reconcile", "Job completed");
}
