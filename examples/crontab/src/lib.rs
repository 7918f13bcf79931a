//! The CronTab of the Kubernetes documentation. Each has a CronJob, whose runs have as many pods as the CronTab has
//! replicas: no Deployment, because its pods would have nothing to do between two runs.

#![expect(unreachable_pub, reason = "kube's derive repeats the type inside a function")]

mod crontab;
mod plan;

pub use crontab::{CronTab, CronTabSpec, CronTabStatus};

use k8s_openapi::api::batch::v1::CronJob;
use operator::{
    Context, Controller, Failure, Installation, Key, Manager, Next, all,
    apply::{Force, Set},
    condition, definition, status,
};

pub const NAME: &str = "crontab-operator";
/// Where `manifests/operator.yaml` installs it.
const NAMESPACE: &str = "default";

/// The operator as it runs in a cluster.
pub fn configure(manager: Manager) -> Manager {
    manager.elect_in(NAMESPACE).probes(([0, 0, 0, 0], 8080)).controller(controller())
}

/// What a cluster needs to know before it runs.
pub fn manifests(manager: Manager) -> String {
    let installation = Installation::new(NAMESPACE, "crontab-operator:latest");
    configure(manager).manifests(&installation.definition(definition::of::<CronTab>()))
}

pub fn controller() -> Controller {
    Controller::new(NAME, all::<CronTab>()).owns(all::<CronJob>()).reconcile((), reconcile)
}

async fn reconcile(context: Context<()>, key: Key) -> Result<Next, Failure> {
    let Some(tab) = context.get::<CronTab>(&key)? else { return Ok(Next::Settled) };
    if tab.metadata.deletion_timestamp.is_some() {
        return Ok(Next::Settled); // Its CronJob is garbage-collected.
    }
    let refused = apply(&context, &tab).await?;
    let refusal = refused.as_ref().map(ToString::to_string);

    // The CronJob has the name of its CronTab.
    let cron_job = context.get::<CronJob>(&key)?;
    let seen = plan::status(&tab, cron_job.as_deref(), refusal.as_deref(), context.wall());
    let was_ready =
        tab.status.as_ref().is_some_and(|before| condition::is_true(&before.conditions, plan::READY));
    let is_ready = condition::is_true(&seen.conditions, plan::READY);
    status::set(&context.namespaced::<CronTab>(&key), &tab, &seen).await?;
    match (was_ready, is_ready) {
        (false, true) => context.events().normal(tab.as_ref(), "Scheduled", "Schedule", "runs are scheduled"),
        (true, false) => context.events().normal(tab.as_ref(), "Paused", "Schedule", "there are no new runs"),
        _ => {}
    }
    refused.map_or(Ok(Next::Settled), Err)
}

/// Applies the CronJob. A CronJob that the server refuses, such as one for the 99th minute, is told in the status.
async fn apply(context: &Context<()>, tab: &CronTab) -> Result<Option<Failure>, Failure> {
    let mut children = Set::of(tab, NAME)?;
    children.add(plan::cron_job(tab))?;
    match children.apply(&context.client(), Force::Yes).await.map_err(Failure::from) {
        Ok(_) => Ok(None),
        Err(refused @ Failure::Terminal { .. }) => Ok(Some(refused)),
        Err(other) => Err(other),
    }
}
