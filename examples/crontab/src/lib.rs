//! The CronTab of the Kubernetes documentation. Each has a CronJob, whose runs have as many pods as the CronTab has
//! replicas: no Deployment, because its pods would have nothing to do between two runs.

#![expect(unreachable_pub, reason = "kube's derive repeats the type inside a function")]

mod crontab;
mod deletion;
mod plan;
mod webhooks;

pub use crontab::{CronTab, CronTabSpec, CronTabStatus};
pub use webhooks::{site, webhooks};

use k8s_openapi::{
    api::batch::v1::CronJob, apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use operator::{
    Context, Controller, Failure, Installation, Key, Manager, Next, all,
    apply::{Force, Set},
    condition, definition,
    finalizer::{self, Lifecycle},
    status,
    webhook::Address,
};

pub const NAME: &str = "crontab-operator";
/// Keeps a CronTab until the run that is under way has ended.
pub const FINALIZER: &str = "stable.example.com/finish-run";
/// Where `manifests/operator.yaml` installs it.
const NAMESPACE: &str = "default";

/// The operator as it runs in a cluster.
pub fn configure(manager: Manager) -> Manager {
    let site = site(Address::service(NAMESPACE, NAME));
    let manager = manager.elect_in(NAMESPACE).probes(([0, 0, 0, 0], 8080));
    manager.webhooks(webhooks(), ([0, 0, 0, 0], 9443), site).controller(controller())
}

pub fn definition() -> CustomResourceDefinition {
    definition::of::<CronTab>()
}

/// What a cluster needs to run the operator, beside the definition.
pub fn manifests(manager: Manager) -> String {
    configure(manager).manifests(&Installation::new(NAMESPACE, "crontab-operator:latest"))
}

pub fn controller() -> Controller {
    Controller::new(NAME, all::<CronTab>()).owns(all::<CronJob>()).reconcile((), reconcile)
}

async fn reconcile(context: Context<()>, key: Key) -> Result<Next, Failure> {
    let Some(tab) = context.get::<CronTab>(&key)? else { return Ok(Next::Settled) };
    let tabs = context.namespaced::<CronTab>(&key);
    finalizer::guard(&tabs, CronTab::clone(&tab), FINALIZER, async |tab| match tab {
        Lifecycle::Live(tab) => follow(&context, &key, &tab).await,
        Lifecycle::Deleting(tab) => deletion::finish(&context, &key, &tab).await,
    })
    .await
}

/// Makes the CronJob what the CronTab says.
async fn follow(context: &Context<()>, key: &Key, tab: &CronTab) -> Result<Next, Failure> {
    let refused = apply(context, tab).await?;
    let refusal = refused.as_ref().map(ToString::to_string);
    report(context, key, tab, refusal.as_deref()).await?;
    refused.map_or(Ok(Next::Settled), Err)
}

/// Tells in the status and in events what the CronJob does.
async fn report(
    context: &Context<()>,
    key: &Key,
    tab: &CronTab,
    refusal: Option<&str>,
) -> Result<(), Failure> {
    // The CronJob has the name of its CronTab.
    let cron_job = context.get::<CronJob>(key)?;
    let seen = plan::status(tab, cron_job.as_deref(), refusal, context.wall());
    let was_ready =
        tab.status.as_ref().is_some_and(|before| condition::is_true(&before.conditions, plan::READY));
    let is_ready = condition::is_true(&seen.conditions, plan::READY);
    status::set(&context.namespaced::<CronTab>(key), tab, &seen).await?;
    match (was_ready, is_ready) {
        (false, true) => context.events().normal(tab, "Scheduled", "Schedule", "runs are scheduled"),
        (true, false) => context.events().normal(tab, "Paused", "Schedule", "there are no new runs"),
        _ => {}
    }
    Ok(())
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
