//! A `MySQLCluster` is a primary and its replicas: installed, upgraded one member at a time, backed up and restored,
//! with another primary as soon as one is lost, and a last backup before it goes.

#![expect(unreachable_pub, reason = "kube's derive repeats the type inside a function")]

mod children;
mod deletion;
mod metrics;
mod observe;
mod plan;
mod report;
pub mod v1;
mod webhooks;

pub use webhooks::{site, webhooks};

use k8s_openapi::{
    api::{
        apps::v1::StatefulSet,
        batch::v1::{CronJob, Job},
        core::v1::{PersistentVolumeClaim, Pod, Service},
        policy::v1::PodDisruptionBudget,
    },
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use observe::Observed;
use operator::{
    Context, Controller, Failure, Installation, Key, Manager, Next, all,
    apply::{self, Force, Set},
    definition,
    finalizer::{self, Lifecycle},
};
use v1::MySQLCluster;

pub const NAME: &str = "mysql-operator";
pub const FINALIZER: &str = "mysql.example.com/finalizer";
/// Where `manifests/operator.yaml` installs it.
const NAMESPACE: &str = "default";

pub fn definition() -> CustomResourceDefinition {
    definition::of::<MySQLCluster>()
}

/// What a cluster needs to run the operator, beside the definition.
pub fn manifests(manager: Manager) -> String {
    configure(manager).manifests(&Installation::new(NAMESPACE, "mysql-operator:latest").replicas(2))
}

/// The operator as it runs in a cluster.
pub fn configure(manager: Manager) -> Manager {
    let manager = manager.elect_in(NAMESPACE).probes(([0, 0, 0, 0], 8080));
    manager.webhooks(webhooks(), ([0, 0, 0, 0], 9443), site(NAMESPACE)).controller(controller())
}

/// Backups and claims outlive their cluster, and members belong to the StatefulSet: they are found by their labels.
pub fn controller() -> Controller {
    let members = all::<Pod>().labelled("mysql.example.com/role=member");
    Controller::new(NAME, all::<MySQLCluster>())
        .owns(all::<StatefulSet>())
        .owns(all::<Service>())
        .owns(all::<CronJob>())
        .owns(all::<PodDisruptionBudget>())
        .watches(members, observe::owner)
        .watches(all::<Job>().labelled(children::CLUSTER), observe::owner)
        .applies::<Job>()
        .watches(all::<PersistentVolumeClaim>().labelled(children::CLUSTER), observe::owner)
        .applies::<PersistentVolumeClaim>()
        .reconcile((), reconcile)
}

async fn reconcile(context: Context<()>, key: Key) -> Result<Next, Failure> {
    let Some(cluster) = context.get::<MySQLCluster>(&key)? else {
        metrics::remove(context.metrics(), &key);
        return Ok(Next::Settled);
    };
    let clusters = context.namespaced::<MySQLCluster>(&key);
    let object = MySQLCluster::clone(&cluster);
    finalizer::guard(&clusters, object, FINALIZER, async |cluster| match cluster {
        Lifecycle::Live(cluster) => run(&context, &key, &cluster).await,
        Lifecycle::Deleting(cluster) => deletion::prepare(&context, &key, &cluster).await,
    })
    .await
}

/// Carries out the plan. A set applies Services before workloads: another primary takes over before a member goes.
async fn run(context: &Context<()>, key: &Key, cluster: &MySQLCluster) -> Result<Next, Failure> {
    let observed = Observed::of(context, key)?;
    let plan = plan::plan(cluster, &observed);
    let claims = context.namespaced::<PersistentVolumeClaim>(key);
    for claim in &plan.grow {
        apply::object(&claims, &children::larger_claim(cluster, claim), NAME, Force::Yes).await?;
    }
    if plan.applies_backup_claim {
        apply::object(&claims, &children::backup_claim(cluster), NAME, Force::Yes).await?;
    }
    let mut set = Set::of(cluster, NAME)?;
    for service in children::services(cluster, &plan) {
        set.add(service)?;
    }
    set.add(children::members(cluster, &plan))?.add(children::budget(cluster))?;
    if let Some(backups) = children::backups(cluster, &plan) {
        set.add(backups)?;
    }
    if let Some(restore) = children::restore(cluster, &plan) {
        set.add(restore)?;
    }
    // By force: what someone else writes into these fields is set back.
    set.apply(&context.client(), Force::Yes).await?;
    report::write(context, key, cluster, &observed, &plan).await
}
