//! Everything at once: a `Database` in two versions, with defaults and rules, a StatefulSet, a backup before it
//! goes, conditions and events.

#![expect(unreachable_pub, reason = "kube's derive repeats the type inside a function")]

mod backup;
mod plan;
pub mod v1;
pub mod v1beta1;
mod webhooks;

pub use backup::{Backups, Directories};
pub use webhooks::{site, webhooks};

use k8s_openapi::{
    api::apps::v1::StatefulSet,
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::ResourceExt;
use operator::{
    Context, Controller, Failure, Key, Next, all,
    apply::{Force, Set},
    condition, definition,
    finalizer::{self, Lifecycle},
    status,
};
use plan::Progress;
use std::sync::Arc;

pub const NAME: &str = "database";
pub const FINALIZER: &str = "database.example.com/backup";

/// Both versions; objects are stored as v1.
pub fn definition() -> CustomResourceDefinition {
    let versions = vec![definition::of::<v1::Database>(), definition::of::<v1beta1::Database>()];
    definition::merged(versions, "v1").expect("the versions are of one kind")
}

pub fn controller(backups: Arc<dyn Backups>) -> Controller {
    Controller::new(NAME, all::<v1::Database>()).owns(all::<StatefulSet>()).reconcile(backups, reconcile)
}

async fn reconcile(context: Context<Arc<dyn Backups>>, key: Key) -> Result<Next, Failure> {
    let Some(database) = context.get::<v1::Database>(&key)? else { return Ok(Next::Settled) };
    let databases = context.namespaced::<v1::Database>(&key);
    let object = v1::Database::clone(&database);
    finalizer::guard(&databases, object, FINALIZER, async |database| match database {
        Lifecycle::Live(database) => run(&context, &key, database).await,
        Lifecycle::Deleting(database) => {
            // Named by UID: a crash after this overwrites the same backup.
            let name = format!("{}-{}", database.name_any(), database.uid().unwrap_or_default());
            context.state().save(&name)?;
            context.events().normal(&database, "BackedUp", "BackUp", format!("saved as {name}"));
            Ok(Next::Settled)
        }
    })
    .await
}

/// Applies the StatefulSet, and tells how far it is.
async fn run(
    context: &Context<Arc<dyn Backups>>,
    key: &Key,
    database: v1::Database,
) -> Result<Next, Failure> {
    let mut children = Set::of(&database, NAME)?;
    children.add(plan::stateful_set(&database))?;
    children.apply(&context.client(), Force::No).await?;

    // The StatefulSet has the name of its database.
    let running = context.get::<StatefulSet>(key)?;
    let progress = Progress::of(&database, running.as_deref());
    let mut seen = database.status.clone().unwrap_or_default();
    let was_ready = condition::is_true(&seen.conditions, plan::READY);
    condition::set(&mut seen.conditions, progress.report().of(&database), context.wall());
    seen.observed_generation = database.metadata.generation;
    status::set(&context.namespaced::<v1::Database>(key), &database, &seen).await?;
    match (was_ready, progress.is_ready()) {
        (false, true) => context.events().normal(&database, "Ready", "Start", "all replicas answer"),
        (true, false) => context.events().warning(&database, "NotReady", "Start", "replicas are missing"),
        _ => {}
    }
    Ok(if progress.is_ready() { Next::Settled } else { Next::WaitFor("replicas of the StatefulSet") })
}
