//! Jobs with `ttlSecondsAfterFinished`: deletes them that long after they have finished.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::batch::v1::Job;
use kube::{
    ResourceExt,
    api::{DeleteParams, Preconditions},
};
use operator::{Context, Controller, Failure, Key, Next, all};
use std::time::Duration;

/// Kubernetes: `--concurrent-ttl-after-finished-syncs`.
const WORKERS: usize = 5;

pub(crate) fn controller() -> Controller {
    Controller::new("ttl-after-finished-controller", all::<Job>()).workers(WORKERS).reconcile((), reconcile)
}

async fn reconcile(context: Context<()>, key: Key) -> Result<Next, Failure> {
    let Some(job) = context.get::<Job>(&key)? else { return Ok(Next::Settled) };
    match time_left(&job, context.wall()) {
        None => return Ok(Next::Settled),
        Some(left) if !left.is_zero() => return Ok(Next::CheckAfter(left)),
        Some(_) => {}
    }
    // Live: the TTL may have been raised a moment ago, and a deletion cannot be taken back.
    let jobs = context.namespaced::<Job>(&key);
    let Some(fresh) = jobs.get_opt(key.name()).await? else { return Ok(Next::Settled) };
    match time_left(&fresh, context.wall()) {
        None => return Ok(Next::Settled),
        Some(left) if !left.is_zero() => return Ok(Next::CheckAfter(left)),
        Some(_) => {}
    }
    let preconditions = Preconditions { uid: fresh.uid(), resource_version: None };
    match jobs.delete(key.name(), &DeleteParams::foreground().preconditions(preconditions)).await {
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(Next::Settled),
        other => Ok(other.map(|_| Next::Settled)?),
    }
}

/// How long until the job is deleted; `None` if it has not finished, has no TTL, or is being deleted.
fn time_left(job: &Job, now: Timestamp) -> Option<Duration> {
    let ttl = job.spec.as_ref()?.ttl_seconds_after_finished?;
    if job.metadata.deletion_timestamp.is_some() {
        return None;
    }
    let conditions = job.status.as_ref()?.conditions.as_deref()?;
    let finished = conditions
        .iter()
        .find(|condition| matches!(&*condition.type_, "Complete" | "Failed") && condition.status == "True")?;
    let at = finished.last_transition_time.as_ref()?.0 + SignedDuration::from_secs(ttl.into());
    Some(Duration::try_from(at.duration_since(now)).unwrap_or(Duration::ZERO))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_ttl_counts_from_the_end_of_the_job() {
        for (ttl, condition, status, now, expected) in [
            (Some(60), "Complete", "True", 100, Some(60)),
            (Some(60), "Failed", "True", 130, Some(30)),
            (Some(60), "Complete", "True", 160, Some(0)),
            (Some(60), "Complete", "True", 500, Some(0)),
            (Some(0), "Complete", "True", 100, Some(0)),
            (None, "Complete", "True", 500, None),
            (Some(60), "Complete", "False", 500, None),
            (Some(60), "Suspended", "True", 500, None),
        ] {
            let at = Timestamp::from_second(100).unwrap();
            let job = json!({"spec": {"ttlSecondsAfterFinished": ttl, "template": {}}, "status": {"conditions": [
                {"type": condition, "status": status, "lastTransitionTime": at}]}});
            let job: Job = serde_json::from_value(job).unwrap();
            let found = time_left(&job, Timestamp::from_second(now).unwrap());
            assert_eq!(found, expected.map(Duration::from_secs), "{ttl:?} {condition} {status} {now}");
        }
    }
}
