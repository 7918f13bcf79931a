//! Removes the tracking finalizer of pods whose Job is gone or has ended: no Job counts them any more.

use super::desired::{FINALIZER, finished, is_managed_elsewhere, is_tracked};
use k8s_openapi::api::{batch::v1::Job, core::v1::Pod};
use kube::{
    Resource, ResourceExt,
    api::{Patch, PatchParams},
};
use operator::{Context, Controller, Failure, Key, Next, all, cache::Delta, owner, predicate::Predicate};
use serde_json::json;

pub(crate) fn controller() -> Controller {
    Controller::new("job-controller-orphans", all::<Pod>().when(Predicate::new(has_finalizer)))
        .watches_through(all::<Job>().when(Predicate::new(is_over)), |pods, job| {
            let uid = job.metadata.uid.as_deref().unwrap_or_default();
            let owned = pods.owned_by(uid).unwrap_or_default();
            owned.iter().filter(|pod| is_tracked(pod)).map(|pod| Key::of(&**pod)).collect()
        })
        .reconcile((), reconcile)
}

fn has_finalizer(delta: &Delta) -> bool {
    // Most pods are of other controllers: the text is searched before it is decoded.
    delta.after.as_ref().is_some_and(|pod| pod.json().contains(FINALIZER))
}

fn is_over(delta: &Delta) -> bool {
    let Some(after) = &delta.after else { return true };
    after.decode::<Job>().is_ok_and(|job| finished(&job).is_some())
}

async fn reconcile(context: Context<()>, key: Key) -> Result<Next, Failure> {
    let Some(pod) = context.get::<Pod>(&key)?.filter(|pod| is_tracked(pod)) else {
        return Ok(Next::Settled);
    };
    if let Some(controller) = owner::controller_of(&*pod) {
        let is_job = controller.kind == Job::kind(&()) && controller.api_version == Job::api_version(&());
        if !is_job || is_counted(&context, &key, &controller.uid, &controller.name).await? {
            return Ok(Next::Settled);
        }
    }
    // With the resourceVersion: a Job may adopt the pod meanwhile, and count it.
    let patch = json!({"metadata": {
        "resourceVersion": pod.resource_version(),
        "$deleteFromPrimitiveList/finalizers": [FINALIZER],
    }});
    let api = context.namespaced::<Pod>(&key);
    match api.patch(key.name(), &PatchParams::default(), &Patch::Strategic(patch)).await {
        Ok(_) => Ok(Next::Settled),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(Next::Settled),
        Err(error) => Err(error.into()),
    }
}

/// Whether there is a Job with this UID that will count the pod, or another controller takes care of it.
async fn is_counted(context: &Context<()>, pod: &Key, uid: &str, name: &str) -> Result<bool, Failure> {
    let key = Key::new(pod.namespace(), name);
    let is_same = |job: &Job| job.metadata.uid.as_deref() == Some(uid);
    let counts = |job: &Job| is_managed_elsewhere(job) || finished(job).is_none();
    if let Some(job) = context.get::<Job>(&key)?.filter(|job| is_same(job)) {
        return Ok(counts(&job));
    }
    // From the server: the cache of Jobs may be behind that of pods, and a pod that has lost its finalizer is
    // never counted.
    let live = context.namespaced::<Job>(&key).get_opt(name).await?;
    Ok(live.filter(is_same).is_some_and(|job| counts(&job)))
}
