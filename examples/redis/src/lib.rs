//! A `Redis` is a cache of several members: a StatefulSet, a headless Service and a ConfigMap. Its status counts the
//! members that are ready. It has no finalizer: all it has is in the cluster, and is garbage-collected.

#![expect(unreachable_pub, reason = "kube's derive repeats the type inside a function")]

mod plan;
pub mod v1alpha1;
mod webhooks;

pub use webhooks::{site, webhooks};

use k8s_openapi::{
    api::{
        apps::v1::StatefulSet,
        core::v1::{ConfigMap, Service},
    },
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use operator::{
    Context, Controller, Failure, Installation, Key, Manager, Next, all,
    apply::{Force, Set},
    condition, definition, status,
    webhook::Address,
};
use plan::{Children, Progress};
use v1alpha1::Redis;

pub const NAME: &str = "redis-operator";
/// Where `manifests/operator.yaml` installs it.
const NAMESPACE: &str = "default";

pub fn definition() -> CustomResourceDefinition {
    definition::of::<Redis>()
}

/// What a cluster needs to run the operator, beside the definition.
pub fn manifests(manager: Manager) -> String {
    configure(manager).manifests(&Installation::new(NAMESPACE, "redis-operator:latest"))
}

/// The operator as it runs in a cluster.
pub fn configure(manager: Manager) -> Manager {
    let site = site(Address::service(NAMESPACE, NAME));
    let manager = manager.elect_in(NAMESPACE).probes(([0, 0, 0, 0], 8080));
    manager.webhooks(webhooks(), ([0, 0, 0, 0], 9443), site).controller(controller())
}

pub fn controller() -> Controller {
    Controller::new(NAME, all::<Redis>())
        .owns(all::<StatefulSet>())
        .owns(all::<Service>())
        .owns(all::<ConfigMap>())
        .reconcile((), reconcile)
}

async fn reconcile(context: Context<()>, key: Key) -> Result<Next, Failure> {
    let Some(redis) = context.get::<Redis>(&key)? else { return Ok(Next::Settled) };
    if redis.metadata.deletion_timestamp.is_some() {
        return Ok(Next::Settled); // Its children are garbage-collected.
    }
    let before = context.get::<StatefulSet>(&key)?;
    let Children { config, service, members } = plan::children(&redis);
    let mut children = Set::of(redis.as_ref(), NAME)?;
    children.add(config)?.add(service)?.add(members)?;
    // By force: what someone else writes into these fields is set back.
    children.apply(&context.client(), Force::Yes).await?;
    let after = context.get::<StatefulSet>(&key)?;
    report(&context, &key, &redis, before.as_deref(), after.as_deref()).await
}

/// Tells in the status and in events how far the members are.
async fn report(
    context: &Context<()>,
    key: &Key,
    redis: &Redis,
    before: Option<&StatefulSet>,
    after: Option<&StatefulSet>,
) -> Result<Next, Failure> {
    let progress = Progress::of(redis, after);
    let mut seen = redis.status.clone().unwrap_or_default();
    let was_ready = condition::is_true(&seen.conditions, plan::READY);
    condition::set(&mut seen.conditions, progress.report().of(redis), context.wall());
    seen.ready = progress.ready;
    seen.observed_generation = redis.metadata.generation;
    status::set(&context.namespaced::<Redis>(key), redis, &seen).await?;

    let size = |members: Option<&StatefulSet>| members?.spec.as_ref()?.replicas;
    // Kubernetes counts events of one reason and keeps the first note: no numbers in it.
    match (size(before), size(after)) {
        (Some(old), Some(new)) if old < new => {
            context.events().normal(redis, "Growing", "Resize", "members are added");
        }
        (Some(old), Some(new)) if old > new => {
            context.events().normal(redis, "Shrinking", "Resize", "members go, with their keys");
        }
        _ if was_ready && !progress.is_ready() => {
            context.events().warning(redis, "NotReady", "Watch", "members are not ready");
        }
        _ if !was_ready && progress.is_ready() => {
            context.events().normal(redis, "Ready", "Watch", "all members are ready");
        }
        _ => {}
    }
    Ok(if progress.is_ready() { Next::Settled } else { Next::WaitFor("members of the StatefulSet") })
}
