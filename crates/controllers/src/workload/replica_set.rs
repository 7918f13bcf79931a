//! ReplicaSets and ReplicationControllers: keep the wanted number of pods.

mod plan;

use crate::{claim, pod, slow_start, status};
use futures::future::join_all;
use k8s_openapi::{
    NamespaceResourceScope,
    api::{
        apps::v1::ReplicaSet,
        core::v1::{Pod, PodTemplateSpec},
    },
};
use kube::{
    Resource, ResourceExt,
    api::{DeleteParams, PostParams},
    core::Selector,
};
use operator::{Context, Controller, Failure, Key, Kind, Next, all, cache::View, owner};
pub(crate) use plan::Status;
use plan::{Outcome, Scaling};
use serde::Serialize;
use std::{collections::BTreeMap, sync::Arc};

/// Kubernetes: so many pods are created or deleted in one reconcile.
const BURST: usize = 500;
/// Kubernetes: so many sets are reconciled at once.
const WORKERS: usize = 5;

/// An object that keeps a number of equal pods: a ReplicaSet or a ReplicationController.
pub(crate) trait ReplicaOwner: Kind + Resource<Scope = NamespaceResourceScope> + Serialize {
    fn replicas(&self) -> usize;
    fn min_ready_seconds(&self) -> i32;
    /// `None` if it cannot be read: then it selects nothing.
    fn selector(&self) -> Option<Selector>;
    fn template(&self) -> Option<&PodTemplateSpec>;
    fn status(&self) -> Status;
    /// Whether its status counts pods that are being deleted.
    const COUNTS_TERMINATING: bool;
}

pub(crate) fn controller() -> Controller {
    controller_of::<ReplicaSet>("replicaset-controller")
}

pub(super) fn controller_of<O: ReplicaOwner>(name: &str) -> Controller {
    Controller::new(name, all::<O>())
        .owns(all::<Pod>())
        .watches_through(all::<Pod>(), |owners, pod| claim::claimants(owners, pod, O::selector))
        .workers(WORKERS)
        .reconcile((), reconcile::<O>)
}

// Kubernetes waits until it has seen the pods that it created and deleted itself (its expectations). Here own
// writes are in the cache when they return.
async fn reconcile<O: ReplicaOwner>(context: Context<()>, key: Key) -> Result<Next, Failure> {
    let Some(owner) = context.get::<O>(&key)? else { return Ok(Next::Settled) };
    let Some(selector) = owner.selector() else { return Ok(Next::Settled) };
    let view = context.view::<Pod>()?;
    let (candidates, rest): (Vec<_>, Vec<_>) =
        claim::candidates(&view, &*owner)?.into_iter().partition(|pod| pod::is_active(pod));
    let active = claim::claim(&context, &*owner, &selector, candidates).await?;
    let terminating =
        rest.iter().filter(|it| pod::is_terminating(it) && is_claimed(&*owner, &selector, it)).count();
    let failure = match plan::scaling(owner.replicas(), active.len(), BURST) {
        _ if owner.meta().deletion_timestamp.is_some() => None,
        Scaling::Keep => None,
        Scaling::Create(count) => create(&context, &*owner, count).await.err(),
        Scaling::Delete(count) => delete(&context, &*owner, &view, &active, count).await.err(),
    };
    let now = context.wall();
    let outcome = Outcome {
        wanted: owner.replicas(),
        active: &active,
        terminating: O::COUNTS_TERMINATING.then_some(terminating),
        template: owner.template(),
        min_ready_seconds: owner.min_ready_seconds(),
        failure: failure.as_ref().map(ToString::to_string),
        generation: owner.meta().generation,
    };
    let api = context.namespaced::<O>(&key);
    status::replace(&api, &*owner, &plan::status(&outcome, owner.status(), now)).await?;
    if let Some(failure) = failure {
        // Kubernetes: retried whatever the reason, since quotas, policies and webhooks change.
        return Err(Failure::transient(failure));
    }
    let pods = active.iter().map(|pod| &**pod);
    Ok(pod::next_available(pods, owner.min_ready_seconds(), now).map_or(Next::Settled, Next::CheckAfter))
}

fn is_claimed<O: ReplicaOwner>(owner: &O, selector: &Selector, pod: &Pod) -> bool {
    use kube::core::SelectorExt;
    owner::is_controlled_by(pod, owner) && selector.matches(pod.labels())
}

async fn create<O: ReplicaOwner>(
    context: &Context<()>,
    owner: &O,
    count: usize,
) -> Result<(), ScalingFailure> {
    let Some(template) = owner.template() else { return Ok(()) };
    let reference = owner::reference(owner).map_err(|_| ScalingFailure::NotStored)?;
    let pod = pod::from_template(template, &owner.name_any(), reference);
    let pods = context.namespaced::<Pod>(&Key::of(owner));
    let create = |_| async {
        match pods.create(&PostParams::default(), &pod).await {
            Ok(pod) => {
                let note = format!("Created pod: {}", pod.name_any());
                context.events().normal(owner, "SuccessfulCreate", "Create", note);
                Ok(())
            }
            // Every create fails from now on, and the pods are deleted with the namespace.
            Err(error) if pod::is_namespace_terminating(&error) => Ok(()),
            Err(error) => {
                context.events().warning(
                    owner,
                    "FailedCreate",
                    "Create",
                    format!("Error creating: {}", pod::message(&error)),
                );
                Err(error)
            }
        }
    };
    let (_, created) = slow_start::create(count, create).await;
    created.map_err(ScalingFailure::Create)
}

async fn delete<O: ReplicaOwner>(
    context: &Context<()>,
    owner: &O,
    view: &View<Pod>,
    active: &[Arc<Pod>],
    count: usize,
) -> Result<(), ScalingFailure> {
    let related = related_pods::<O>(context, view, owner).unwrap_or_default();
    let chosen = plan::pods_to_delete(active, &related, count, context.wall());
    let pods = context.namespaced::<Pod>(&Key::of(owner));
    let deletions = chosen.iter().map(|pod| async {
        let name = pod.name_any();
        match pods.delete(&name, &DeleteParams::default()).await {
            Ok(_) => {
                context.events().normal(owner, "SuccessfulDelete", "Delete", format!("Deleted pod: {name}"));
                Ok(())
            }
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
            Err(error) => {
                context.events().warning(
                    owner,
                    "FailedDelete",
                    "Delete",
                    format!("Error deleting: {}", pod::message(&error)),
                );
                Err(ScalingFailure::Delete(error))
            }
        }
    });
    join_all(deletions).await.into_iter().collect()
}

/// How many active pods run on each node, of this set and of those with the same controller: the other
/// ReplicaSets of a Deployment.
fn related_pods<O: ReplicaOwner>(
    context: &Context<()>,
    pods: &View<Pod>,
    owner: &O,
) -> Result<BTreeMap<String, usize>, Failure> {
    let controller = owner.owner_references().iter().find(|it| it.controller == Some(true));
    let sets = match controller {
        Some(controller) => context.view::<O>()?.owned_by(&controller.uid)?,
        None => vec![Arc::new(owner.clone())],
    };
    let mut on_node = BTreeMap::new();
    for set in sets {
        for pod in pods.owned_by(set.meta().uid.as_deref().unwrap_or_default())? {
            if pod::is_active(&pod) {
                *on_node.entry(pod::node_name(&pod).to_owned()).or_default() += 1;
            }
        }
    }
    Ok(on_node)
}

/// Why pods could not be created or deleted.
#[derive(Debug, thiserror::Error)]
enum ScalingFailure {
    #[error("the set has no UID")]
    NotStored,
    #[error("{}", pod::message(.0))]
    Create(#[source] kube::Error),
    // Kubernetes: this text is in the condition.
    #[error("unable to delete pods: {}", pod::message(.0))]
    Delete(#[source] kube::Error),
}

impl ReplicaOwner for ReplicaSet {
    const COUNTS_TERMINATING: bool = true;

    fn replicas(&self) -> usize {
        let replicas = self.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or(1);
        usize::try_from(replicas).unwrap_or_default()
    }

    fn min_ready_seconds(&self) -> i32 {
        self.spec.as_ref().and_then(|spec| spec.min_ready_seconds).unwrap_or_default()
    }

    fn selector(&self) -> Option<Selector> {
        self.spec.as_ref()?.selector.clone().try_into().ok()
    }

    fn template(&self) -> Option<&PodTemplateSpec> {
        self.spec.as_ref()?.template.as_ref()
    }

    fn status(&self) -> Status {
        Status::read(&self.status)
    }
}
