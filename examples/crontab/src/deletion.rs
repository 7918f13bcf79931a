//! What happens before a CronTab goes: no run begins any more, and the one that is under way comes to its end.

use crate::{CronTab, plan, report};
use k8s_openapi::api::batch::v1::CronJob;
use kube::api::{Patch, PatchParams};
use operator::{Context, Failure, Key, Next};
use serde_json::json;

/// The finalizer goes when this is settled, and with it the CronJob and the Jobs of earlier runs.
pub(crate) async fn finish(context: &Context<()>, key: &Key, tab: &CronTab) -> Result<Next, Failure> {
    let own = context.get::<CronJob>(key)?.filter(|cron_job| plan::is_of(cron_job, tab));
    let Some(cron_job) = own else { return Ok(Next::Settled) };
    report(context, key, tab, None).await?;
    if cron_job.spec.suspend != Some(true) {
        let patch = Patch::Merge(json!({"spec": {"suspend": true}}));
        context.namespaced::<CronJob>(key).patch(key.name(), &PatchParams::default(), &patch).await?;
        // What is under way is counted once the CronJob is known to be suspended.
        return Ok(Next::WaitFor("the suspended CronJob"));
    }
    Ok(if plan::runs(&cron_job) == 0 { Next::Settled } else { Next::WaitFor("the end of the run") })
}
