//! Carries out the action of a plan: creates and deletes pods, and removes finalizers.

use super::{
    desired::{Desired, FINALIZER, is_tracked},
    plan::{Action, JobPlan, NewPod},
    template,
    track::Done,
};
use crate::{pod, slow_start};
use futures::future::join_all;
use k8s_openapi::api::core::v1::Pod;
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, Patch, PatchParams, PostParams},
};
use operator::{Context, Key, owner};
use serde_json::json;
use std::sync::Arc;

/// Why pods could not be created or deleted. Not the response of the server itself: whatever it was, Kubernetes
/// tries again.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct Failed(String);

impl Failed {
    fn because(error: &kube::Error) -> Failed {
        Failed(pod::message(error))
    }
}

/// What the action led to, and the first error.
pub(super) async fn act<S>(
    context: &Context<S>,
    desired: &Desired<'_>,
    plan: &JobPlan,
) -> (Done, Result<(), Failed>) {
    let mut done = Done { counts: plan.counts, is_all_deleted: true };
    let (pods, is_end) = match &plan.action {
        Action::Nothing => return (done, Ok(())),
        Action::Create(new) => {
            let (created, result) = create(context, desired, new).await;
            done.counts.active += created;
            return (done, result);
        }
        Action::EndActive(pods) => (pods, true),
        Action::Remove(pods) => (pods, false),
    };
    let deletions = join_all(pods.iter().map(|pod| delete(context, desired, pod, !is_end))).await;
    let mut result = Ok(());
    for (pod, deleted) in pods.iter().zip(deletions) {
        match deleted {
            Ok(()) => {
                done.counts.active -= 1;
                done.counts.terminating += 1;
                done.counts.ready -= usize::from(pod::is_ready(pod));
            }
            Err(error) => {
                done.is_all_deleted = false;
                result = result.and(Err(error));
            }
        }
    }
    (done, result)
}

async fn create<S>(
    context: &Context<S>,
    desired: &Desired<'_>,
    new: &[NewPod],
) -> (usize, Result<(), Failed>) {
    let job = desired.job;
    let reference = match owner::reference(job) {
        Ok(reference) => reference,
        Err(problem) => return (0, Err(Failed(problem.to_string()))),
    };
    let api = context.namespaced::<Pod>(&Key::of(job));
    let create = |place: usize| {
        let pod = template::pod(desired, &new[place], reference.clone());
        let api = &api;
        async move {
            match api.create(&PostParams::default(), &pod).await {
                Ok(pod) => {
                    let note = format!("Created pod: {}", pod.name_any());
                    context.events().normal(job, "SuccessfulCreate", "Create", note);
                    Ok(())
                }
                // Every create fails from now on, and the pods are deleted with the namespace.
                Err(error) if pod::is_namespace_terminating(&error) => Ok(()),
                Err(error) => {
                    let note = format!("Error creating: {}", pod::message(&error));
                    context.events().warning(job, "FailedCreate", "Create", note);
                    Err(Failed::because(&error))
                }
            }
        }
    };
    slow_start::create(new.len(), create).await
}

async fn delete<S>(
    context: &Context<S>,
    desired: &Desired<'_>,
    pod: &Arc<Pod>,
    is_released: bool,
) -> Result<(), Failed> {
    let (job, name) = (desired.job, pod.name_any());
    let api = context.namespaced::<Pod>(&Key::of(job));
    if is_released {
        release(&api, pod).await.map_err(|error| Failed::because(&error))?;
    }
    match api.delete(&name, &DeleteParams::default()).await {
        Ok(_) => {
            context.events().normal(job, "SuccessfulDelete", "Delete", format!("Deleted pod: {name}"));
            Ok(())
        }
        Err(error) if is_missing(&error) => Ok(()),
        Err(error) => {
            let note = format!("Error deleting: {}", pod::message(&error));
            context.events().warning(job, "FailedDelete", "Delete", note);
            // Kubernetes: the log shows this text.
            Err(Failed(format!("unable to delete pods: {}", pod::message(&error))))
        }
    }
}

/// Removes the finalizers; returns the UIDs of the pods that no longer have one, and the first error.
pub(super) async fn release_all<S>(
    context: &Context<S>,
    key: &Key,
    pods: &[Arc<Pod>],
) -> (Vec<String>, Result<(), kube::Error>) {
    let api = context.namespaced::<Pod>(key);
    let results = join_all(pods.iter().map(|pod| release(&api, pod))).await;
    let (mut released, mut first) = (Vec::with_capacity(pods.len()), Ok(()));
    for (pod, result) in pods.iter().zip(results) {
        match result {
            Ok(()) => released.extend(pod.metadata.uid.clone()),
            Err(error) => first = first.and(Err(error)),
        }
    }
    (released, first)
}

/// Removes the finalizer of a pod; a pod that is gone has none.
async fn release(api: &Api<Pod>, pod: &Pod) -> Result<(), kube::Error> {
    if !is_tracked(pod) {
        return Ok(());
    }
    // Kubernetes: whatever else has changed in the pod meanwhile, this finalizer goes.
    let patch = json!({"metadata": {"$deleteFromPrimitiveList/finalizers": [FINALIZER]}});
    match api.patch(&pod.name_any(), &PatchParams::default(), &Patch::Strategic(patch)).await {
        Ok(_) => Ok(()),
        Err(error) if is_missing(&error) => Ok(()),
        Err(error) => Err(error),
    }
}

fn is_missing(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 404)
}
