//! DaemonSets: one pod on each node that fits, bound by the scheduler, updated node by node.

mod backoff;
mod desired;
mod placement;
mod plan;
mod revisions;
mod status;

use super::history;
use crate::{claim, pod, slow_start, status as object_status};
use backoff::FailedPods;
use desired::DaemonSpec;
use futures::future::join_all;
use k8s_openapi::api::{
    apps::v1::{ControllerRevision, DaemonSet},
    core::v1::{Node, Pod},
};
use kube::{
    Resource, ResourceExt,
    api::{DeleteParams, PostParams},
    core::{Selector, SelectorExt},
};
use operator::{
    Context, Controller, Failure, Key, Next, all,
    cache::{Item, View},
    owner,
    predicate::Predicate,
    retry,
};
use placement::NodeFit;
use plan::{DaemonPlan, DaemonState, FinishedPod};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Kubernetes: so many pods are created, and so many deleted, in one reconcile.
const BURST: usize = 250;
/// Kubernetes: so many sets are reconciled at once.
const WORKERS: usize = 2;

/// What the loop keeps in memory.
#[derive(Debug, Default)]
struct DaemonMemory {
    failed_pods: Mutex<FailedPods>,
}

pub(crate) fn controller() -> Controller {
    Controller::new("daemonset-controller", all::<DaemonSet>())
        .owns(all::<Pod>())
        .watches_through(all::<Pod>(), |sets, pod| claim::claimants(sets, pod, selector))
        .owns(all::<ControllerRevision>())
        .watches_through(all::<ControllerRevision>(), |sets, it| claim::claimants(sets, it, selector))
        .watches_through(all::<Node>().when(labels_or_taints()), sets_on)
        .workers(WORKERS)
        .reconcile(DaemonMemory::default(), reconcile)
}

async fn reconcile(context: Context<DaemonMemory>, key: Key) -> Result<Next, Failure> {
    let Some(set) = context.get::<DaemonSet>(&key)? else { return Ok(Next::Settled) };
    let Some(desired) = DaemonSpec::of(&set) else { return Ok(Next::Settled) };
    let Some(selector) = selector(&set) else { return Ok(Next::Settled) };
    if selector.selects_all() {
        let note = "This daemon set is selecting all pods. A non-empty selector is required.";
        context.events().warning(&*set, "SelectingAll", "Select", note);
        return Ok(Next::Settled);
    }
    // Kubernetes: the revisions of such a set may be gone before its pods, so that no status can be computed.
    if set.metadata.deletion_timestamp.is_some() {
        return Ok(Next::Settled);
    }
    let known = history::claimed(&context, &*set, &selector).await?;
    let view = context.view::<Pod>()?;
    let candidates = claim::candidates(&view, &*set)?;
    let pods = claim::claim(&context, &*set, &selector, candidates).await?;
    let revisions = revisions::of_template(&context, &set, known, &pods).await?;
    let desired = desired.with_hash(&revisions.hash);
    let nodes = context.view::<Node>()?.list()?;
    let (now, id) = (context.wall(), pauses_of(&set));
    let paused = failed_pods(&context).paused(&id, context.world().now());
    let observed = DaemonState { desired: desired.clone(), nodes: &nodes, pods: &pods, paused: &paused, now };
    let plan = plan::plan(&observed);
    let done = carry_out(&context, &desired, &plan, &id).await;
    if done.is_ok() {
        revisions::truncate(&context, &set, &revisions, &pods).await?;
    }
    // From the cache, which has the pods that were just created and deleted.
    let after = controlled(&view, &set, &selector)?;
    let status = status::status(&desired, &nodes, &after, now);
    let written = object_status::replace(&context.namespaced(&key), &*set, &status).await;
    done?;
    written?;
    let available = pod::next_available(after.iter().map(|pod| &**pod), desired.min_ready_seconds, now);
    let next = [available, plan.check_after].into_iter().flatten().min();
    Ok(next.map_or(Next::Settled, Next::CheckAfter))
}

async fn carry_out(
    context: &Context<DaemonMemory>,
    desired: &DaemonSpec<'_>,
    plan: &DaemonPlan,
    id: &str,
) -> Result<(), Failure> {
    for finished in &plan.finished {
        record_finished(context, desired.set, finished);
        if finished.has_failed {
            failed_pods(context).delete_on(id, &finished.node, context.world().now());
        }
    }
    let nodes = &plan.create_on[..plan.create_on.len().min(BURST)];
    let owner = owner::reference(desired.set)?;
    let create = |number: usize| create(context, desired.set, desired.new_pod(&nodes[number], owner.clone()));
    let (_, created) = slow_start::create(nodes.len(), create).await;
    let deletions = plan.delete.iter().take(BURST).map(|name| delete(context, desired.set, name));
    let deleted: Result<(), Failure> = join_all(deletions).await.into_iter().collect();
    created.and(deleted)
}

fn record_finished(context: &Context<DaemonMemory>, set: &DaemonSet, finished: &FinishedPod) {
    let FinishedPod { pod, node, has_failed } = finished;
    let namespace = set.metadata.namespace.as_deref().unwrap_or_default();
    let events = context.events();
    match has_failed {
        true => {
            let note =
                format!("Found failed daemon pod {namespace}/{pod} on node {node}, will try to kill it");
            events.warning(set, "FailedDaemonPod", "Delete", note);
        }
        false => {
            let note =
                format!("Found succeeded daemon pod {namespace}/{pod} on node {node}, will try to delete it");
            events.normal(set, "SucceededDaemonPod", "Delete", note);
        }
    }
}

async fn create(context: &Context<DaemonMemory>, set: &DaemonSet, pod: Pod) -> Result<(), Failure> {
    let pods = context.namespaced::<Pod>(&Key::of(set));
    let events = context.events();
    match pods.create(&PostParams::default(), &pod).await {
        Ok(pod) => {
            events.normal(set, "SuccessfulCreate", "Create", format!("Created pod: {}", pod.name_any()));
            Ok(())
        }
        // Every create fails from now on, and the pods are deleted with the namespace.
        Err(error) if pod::is_namespace_terminating(&error) => Ok(()),
        Err(error) => {
            let note = format!("Error creating: {}", pod::message(&error));
            events.warning(set, "FailedCreate", "Create", note);
            Err(Failure::transient(error))
        }
    }
}

async fn delete(context: &Context<DaemonMemory>, set: &DaemonSet, name: &str) -> Result<(), Failure> {
    let pods = context.namespaced::<Pod>(&Key::of(set));
    let events = context.events();
    match pods.delete(name, &DeleteParams::default()).await {
        Ok(_) => {
            events.normal(set, "SuccessfulDelete", "Delete", format!("Deleted pod: {name}"));
            Ok(())
        }
        Err(error) if retry::is_missing(&error) => Ok(()),
        Err(error) => {
            let note = format!("Error deleting: {}", pod::message(&error));
            events.warning(set, "FailedDelete", "Delete", note);
            Err(Failure::transient(error))
        }
    }
}

/// The pods that the set controls, as the cache has them now.
fn controlled(view: &View<Pod>, set: &DaemonSet, selector: &Selector) -> Result<Vec<Arc<Pod>>, Failure> {
    let mut pods = view.owned_by(set.meta().uid.as_deref().unwrap_or_default())?;
    pods.retain(|pod| owner::is_controlled_by(&**pod, set) && selector.matches(pod.labels()));
    Ok(pods)
}

/// Heartbeats of nodes change neither their labels nor their taints.
fn labels_or_taints() -> Predicate {
    let taints = |item: &Item| item.decode::<Node>().ok().and_then(|node| node.spec?.taints);
    Predicate::new(move |delta| match (&delta.before, &delta.after) {
        (Some(before), Some(after)) => before.labels() != after.labels() || taints(before) != taints(after),
        _ => true,
    })
}

/// The sets that run or may stay on a node.
fn sets_on(sets: &View<DaemonSet>, node: &Node) -> Vec<Key> {
    let sets = sets.list().unwrap_or_default();
    let fits = |set: &&Arc<DaemonSet>| {
        DaemonSpec::of(set).is_some_and(|desired| placement::fit(desired.pod_spec(), node) != NodeFit::Never)
    };
    sets.iter().filter(fits).map(|set| Key::of(&**set)).collect()
}

/// Kubernetes: a new generation of the set begins with the shortest pause.
fn pauses_of(set: &DaemonSet) -> String {
    let generation = set.status.as_ref().and_then(|status| status.observed_generation).unwrap_or_default();
    format!("{}/{generation}", set.metadata.uid.as_deref().unwrap_or_default())
}

fn failed_pods(context: &Context<DaemonMemory>) -> MutexGuard<'_, FailedPods> {
    context.state().failed_pods.lock().unwrap_or_else(PoisonError::into_inner)
}

fn selector(set: &DaemonSet) -> Option<Selector> {
    set.spec.as_ref()?.selector.clone().try_into().ok()
}
