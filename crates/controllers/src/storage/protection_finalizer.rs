//! A finalizer that keeps an object while it is used: added to every object, removed from unused ones that are deleted.

use kube::{Api, Resource, ResourceExt, api::PostParams};
use operator::{
    Failure,
    finalizer::{Action, next_action},
};
use serde::{Serialize, de::DeserializeOwned};
use std::fmt::Debug;

/// What to do about an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ProtectionPlan {
    Keep,
    Add,
    /// If nothing uses it.
    Remove,
}

pub(super) fn plan(object: &impl Resource, finalizer: &str) -> ProtectionPlan {
    match next_action(object.meta(), finalizer) {
        Action::AddFinalizer => ProtectionPlan::Add,
        Action::CleanUp => ProtectionPlan::Remove,
        Action::Work | Action::Nothing => ProtectionPlan::Keep,
    }
}

/// Kubernetes: the roles of these loops allow `update`, not `patch`. A conflict if the object has changed.
pub(super) async fn add<K>(api: &Api<K>, object: &K, finalizer: &str) -> Result<(), Failure>
where
    K: Resource + Clone + Debug + Serialize + DeserializeOwned,
{
    let mut changed = object.clone();
    changed.finalizers_mut().push(finalizer.to_owned());
    replace(api, &changed).await
}

pub(super) async fn remove<K>(api: &Api<K>, object: &K, finalizer: &str) -> Result<(), Failure>
where
    K: Resource + Clone + Debug + Serialize + DeserializeOwned,
{
    let mut changed = object.clone();
    changed.finalizers_mut().retain(|it| it != finalizer);
    replace(api, &changed).await
}

async fn replace<K>(api: &Api<K>, object: &K) -> Result<(), Failure>
where
    K: Resource + Clone + Debug + Serialize + DeserializeOwned,
{
    match api.replace(&object.name_any(), &PostParams::default(), object).await {
        // It is gone: there is nothing to protect.
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
        other => Ok(other.map(drop)?),
    }
}
