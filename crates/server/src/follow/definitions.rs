//! After a write to a CustomResourceDefinition: accepts its names, establishes it, and on deletion deletes
//! its objects first.
//!
//! Kubernetes has several controllers for this. A server that stopped between the commit and this hook
//! catches up when it starts.

mod outline;

use crate::{
    Inner,
    call::{Call, Committed},
    convert::in_request_version,
    custom, lookup,
    refusal::Refusal,
    request::Target,
    served::Served,
    stored::Stored,
    verbs::delete,
    write::{self, Attempt, ByServer, KUBE_APISERVER, Outcome, OwnPart},
};
use api::{kind::GroupResource, object, time::Time};
use kinds::definition::{accept, condition};
use outline::Outline;
use schema::scan;
use serde_json::Value;
use std::{
    sync::{
        Arc,
        atomic::Ordering::{AcqRel, Release},
    },
    time::Duration,
};
use store::{Batch, Range};

const GROUP: &str = "apiextensions.k8s.io";
const RESOURCE: &str = "customresourcedefinitions";
/// Delay before a failed definition is tried again; doubled after each failure.
const FIRST_RETRY: Duration = Duration::from_secs(1);
const LONGEST_RETRY: Duration = Duration::from_secs(30);

/// Why a definition is reconciled.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Cause {
    /// It was just written: the status gets the time of that write, so that the order of managedFields does
    /// not depend on the second.
    OwnWrite,
    Other,
}

/// Reconciles all definitions that need it.
pub(super) async fn reconcile_all(inner: &Arc<Inner>) -> Result<(), Refusal> {
    for name in inner.registry.unreconciled(&*inner.store).await? {
        reconcile(inner, &name, Cause::Other).await?;
    }
    Ok(())
}

pub(super) fn concerns(served: &Served, _: &Target) -> bool {
    served.is(GROUP, RESOURCE) || served.custom().is_some()
}

/// Reconciles the definitions that were written, or the one whose last object may be gone.
pub(super) async fn after(call: &Call, commits: &[Committed]) -> Result<(), Refusal> {
    let reconciled = reconcile_after(call, commits).await;
    if reconciled.is_err() {
        retry_later(&call.inner);
    }
    reconciled
}

async fn reconcile_after(call: &Call, commits: &[Committed]) -> Result<(), Refusal> {
    let Some(custom) = call.served.custom() else {
        for commit in commits {
            reconcile_with_waiting(&call.inner, &commit.name).await?;
        }
        return Ok(());
    };
    match commits.iter().any(|commit| commit.after.is_none()) {
        true => finish_removal(&call.inner, &call.served, &custom.definition.name).await,
        false => Ok(()),
    }
}

/// Retries all definitions until that succeeds: no later request may trigger it.
fn retry_later(inner: &Arc<Inner>) {
    if inner.registry.is_retrying.swap(true, AcqRel) {
        return;
    }
    // Weak: a dropped server does not retry.
    let (world, waiting) = (inner.world.clone(), Arc::downgrade(inner));
    let task = inner.world.spawn("retry definitions", async move {
        let mut pause = FIRST_RETRY;
        loop {
            world.sleep(pause).await;
            let Some(inner) = waiting.upgrade() else { return };
            inner.registry.is_retrying.store(false, Release);
            match reconcile_all(&inner).await {
                Ok(()) => return,
                Err(refusal) => {
                    tracing::warn!(problem = %refusal, "still cannot update the status of definitions");
                    if inner.registry.is_retrying.swap(true, AcqRel) {
                        return;
                    }
                }
            }
            pause = (pause * 2).min(LONGEST_RETRY);
        }
    });
    task.detach();
}

/// The deleted object may have been the last one of a definition under deletion.
async fn finish_removal(inner: &Arc<Inner>, served: &Served, definition: &str) -> Result<(), Refusal> {
    let resource = &served.resource;
    let now =
        inner.registry.served(&*inner.store, &resource.group, &resource.version, &resource.name).await?;
    let is_going =
        now.as_ref().and_then(|now| now.custom()).is_some_and(|it| it.definition.state.terminating);
    if is_going { reconcile(inner, definition, Cause::Other).await } else { Ok(()) }
}

/// Reconciles a definition, and others in its group that may wait for names that it gave up.
async fn reconcile_with_waiting(inner: &Arc<Inner>, name: &str) -> Result<(), Refusal> {
    reconcile(inner, name, Cause::OwnWrite).await?;
    let group = name.split_once('.').map_or("", |(_, group)| group);
    for waiting in inner.registry.waiting_in(&*inner.store, group).await? {
        reconcile(inner, &waiting, Cause::Other).await?;
    }
    Ok(())
}

async fn reconcile(inner: &Arc<Inner>, name: &str, cause: Cause) -> Result<(), Refusal> {
    let reconciled = write::try_again(&mut Reconcile { inner, name, cause }).await?;
    reconciled.ok_or_else(|| Refusal::modified(&GroupResource::new(GROUP, RESOURCE), name))
}

struct Reconcile<'a> {
    inner: &'a Arc<Inner>,
    name: &'a str,
    cause: Cause,
}

impl Attempt for Reconcile<'_> {
    type Done = ();

    async fn attempt(&mut self) -> Result<Option<()>, Refusal> {
        let Reconcile { inner, name, cause } = *self;
        let Some(known) = inner.registry.to_reconcile(&*inner.store, name).await? else {
            return Ok(Some(()));
        };
        let Some(mut call) = status_write(name).call(inner) else { return Ok(Some(())) };
        let Some(stored) = lookup::of_call(&call, name).await? else { return Ok(Some(())) };
        if cause == Cause::OwnWrite {
            call.time = last_written(&stored);
        }
        let is_done = match Outline::read(&call.served, &known, &stored) {
            Some(outline) => reconcile_outline(inner, &call, &outline, &stored).await?,
            None => reconcile_whole(inner, &call, &stored).await?,
        };
        Ok(is_done.then_some(()))
    }
}

/// The time of the latest write in managedFields.
fn last_written(stored: &Stored) -> Option<Time> {
    let owners = scan::find(&stored.json, &["metadata", "managedFields"])?;
    let owners: Vec<Value> = serde_json::from_slice(owners).ok()?;
    owners.iter().filter_map(|owner| owner["time"].as_str()?.parse().ok()).max()
}

/// The common case, which needs no schemas of versions; `false` where another writer was faster.
async fn reconcile_outline(
    inner: &Arc<Inner>,
    call: &Call,
    outline: &Outline,
    stored: &Stored,
) -> Result<bool, Refusal> {
    let live = &outline.definition;
    let mut draft = live.clone();
    draft["status"] = accepted(inner, call, live).await?;
    let Some(checked) = write::own_change(call, OwnPart::Status, live, draft).await? else { return Ok(true) };
    let key = call.key(&call.target.name);
    let json = outline.text_with(&call.served, checked.into_object());
    Ok(write::commit(inner, Batch::new().replace(key, json, stored.revision)).await?)
}

async fn reconcile_whole(inner: &Arc<Inner>, call: &Call, stored: &Stored) -> Result<bool, Refusal> {
    let live = in_request_version(call, stored).await?;
    let mut draft = live.clone();
    let is_going =
        object::is_deleting(&live) && object::finalizers(&live).any(|held| held == custom::CLEANUP_FINALIZER);
    if is_going {
        remove_objects(inner, call, &live, &mut draft).await?;
    } else {
        draft["status"] = accepted(inner, call, &live).await?;
    }
    put(call, &live, draft, stored).await
}

/// The status that a definition should have.
async fn accepted(inner: &Arc<Inner>, call: &Call, definition: &Value) -> Result<Value, Refusal> {
    let group = definition["spec"]["group"].as_str().unwrap_or_default();
    let now = write::now(call);
    inner.registry.names_in_use(&*inner.store, group, |in_use| accept(definition, in_use, now)).await
}

/// Deletes the objects of a definition; removes its finalizer once none is left.
async fn remove_objects(
    inner: &Arc<Inner>,
    call: &Call,
    definition: &Value,
    draft: &mut Value,
) -> Result<(), Refusal> {
    let now = write::now(call);
    let mut status = definition["status"].clone();
    let is_established = condition::is_true(&status, condition::ESTABLISHED);
    let served = inner.registry.of_definition(&*inner.store, object::name(definition)).await?;
    let condition = match served.filter(|_| is_established) {
        None => condition::Condition::never_established(),
        Some(served) => match remove_all(inner, call, &served).await? {
            0 => condition::Condition::deletion_completed(),
            _ => condition::Condition::deletion_in_progress(),
        },
    };
    if condition.status == "False" {
        let others: Vec<String> = object::finalizers(draft)
            .filter(|held| *held != custom::CLEANUP_FINALIZER)
            .map(str::to_owned)
            .collect();
        object::set_finalizers(draft, others.iter().map(String::as_str));
    }
    condition::set(&mut status, &condition, now);
    draft["status"] = status;
    Ok(())
}

/// Deletes all objects of a resource; returns how many remain because of finalizers.
async fn remove_all(inner: &Arc<Inner>, call: &Call, served: &Arc<Served>) -> Result<usize, Refusal> {
    let range = || Range::prefix(served.prefix(""));
    let page = inner.store.range(range()).await.map_err(Refusal::from)?;
    for entry in page.entries {
        let object = Stored::new(entry.value, entry.revision).value()?;
        let target = Target {
            group: served.resource.group.to_string(),
            version: served.resource.version.to_string(),
            resource: served.resource.name.to_string(),
            namespace: object::namespace(&object).to_owned(),
            name: object::name(&object).to_owned(),
            ..Target::default()
        };
        let mut one = Call::by_server(inner, served, target, call.options.clone());
        one.time = call.time;
        delete::by_server(&one).await?;
    }
    let left = inner.store.count(range()).await.map_err(Refusal::from)?;
    Ok(usize::try_from(left).unwrap_or(usize::MAX))
}

/// Writes the status; `false` where another writer was faster.
async fn put(call: &Call, live: &Value, draft: Value, stored: &Stored) -> Result<bool, Refusal> {
    let part = if object::is_deleting(live) { OwnPart::Deletion } else { OwnPart::Status };
    let Some(checked) = write::own_change(call, part, live, draft).await? else { return Ok(true) };
    let outcome = write::replace_or_release(call, checked, stored).await?;
    Ok(matches!(outcome, Outcome::Done(_)))
}

fn status_write(name: &str) -> ByServer<'_> {
    ByServer {
        resource: (GROUP, "v1", RESOURCE),
        name,
        subresource: "status",
        field_manager: KUBE_APISERVER,
        ..ByServer::default()
    }
}
