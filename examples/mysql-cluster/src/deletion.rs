//! What happens before a cluster goes: a last backup, or nothing, or it stays.

use crate::{
    NAME, children, metrics,
    observe::{JobState, Observed},
    v1::{DeletionPolicy, MySQLCluster},
};
use k8s_openapi::api::{batch::v1::Job, core::v1::PersistentVolumeClaim};
use operator::{
    Context, Failure, Key, Next,
    apply::{self, Force},
};

/// The finalizer goes when this is settled, and with it all children.
pub(crate) async fn prepare(
    context: &Context<()>,
    key: &Key,
    cluster: &MySQLCluster,
) -> Result<Next, Failure> {
    let next = match cluster.spec.deletion_policy {
        DeletionPolicy::Delete => Next::Settled,
        // It was deleted while the webhooks were away.
        DeletionPolicy::Refuse => Next::WaitFor("another deletionPolicy"),
        // It has never run: there is nothing to save.
        DeletionPolicy::Backup if cluster.complete_version().is_none() => Next::Settled,
        DeletionPolicy::Backup => back_up(context, key, cluster).await?,
    };
    if next == Next::Settled {
        metrics::remove(context.metrics(), key);
    }
    Ok(next)
}

async fn back_up(context: &Context<()>, key: &Key, cluster: &MySQLCluster) -> Result<Next, Failure> {
    let name = children::last_backup_name(cluster);
    let observed = Observed::of(context, key)?;
    match observed.jobs.iter().find(|job| job.name == name).map(|job| job.state) {
        Some(JobState::Complete(_)) => {
            context.events().normal(cluster, "BackedUp", "BackUp", format!("last backup is {name}"));
            return Ok(Next::Settled);
        }
        Some(JobState::Failed) => {
            let help = "delete its Job to try again, or set the deletionPolicy to Delete";
            context.events().warning(cluster, "BackupFailed", "BackUp", format!("{name} failed: {help}"));
        }
        Some(JobState::Unfinished) => {}
        None => {
            if observed.backup_claim.is_none() {
                let claims = context.namespaced::<PersistentVolumeClaim>(key);
                apply::object(&claims, &children::backup_claim(cluster), NAME, Force::Yes).await?;
            }
            let jobs = context.namespaced::<Job>(key);
            apply::object(&jobs, &children::last_backup(cluster), NAME, Force::Yes).await?;
        }
    }
    Ok(Next::WaitFor("the last backup"))
}
