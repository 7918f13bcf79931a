//! The requests of the garbage collector: they read and write metadata only.

use super::{
    identity::{Identity, Uid},
    verdict::Policy,
};
use crate::discovery::Discovered;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::{
    Api, Client,
    api::{DeleteParams, Patch, PatchParams, Preconditions, PropagationPolicy},
    core::{DynamicObject, ObjectMeta},
};
use operator::Failure;
use serde_json::{Value, json};
use std::sync::Arc;

/// Sends requests to objects of any kind.
#[derive(Clone)]
pub(super) struct Requests {
    pub(super) client: Client,
    pub(super) discovered: Arc<Discovered>,
}

/// Why a request to an object cannot be sent, or failed.
#[derive(Debug)]
pub(super) enum RequestProblem {
    /// Its kind is not served, or not yet.
    UnknownKind,
    /// An object of the cluster refers to an owner of a namespaced kind: no retry helps.
    NoNamespace,
    Failed(Failure),
}

/// What became of a deletion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Deleted {
    Accepted,
    NotFound,
}

const NOT_FOUND: u16 = 404;
const CONFLICT: u16 = 409;
const UNSUPPORTED_MEDIA_TYPE: u16 = 415;

impl Requests {
    /// Whether objects of this kind are in namespaces.
    pub(super) fn is_namespaced(&self, identity: &Identity) -> Result<bool, RequestProblem> {
        let kind = &identity.kind;
        let resource = self.discovered.of_kind(kind.api_version(), kind.kind());
        resource.map(|resource| resource.is_namespaced).ok_or(RequestProblem::UnknownKind)
    }

    /// The metadata of the object as the server has it now.
    pub(super) async fn get(&self, identity: &Identity) -> Result<Option<ObjectMeta>, RequestProblem> {
        let found = self.api(identity)?.get_metadata_opt(identity.key.name()).await?;
        Ok(found.map(|object| object.metadata))
    }

    /// Deletes this version of the object; if it has changed, but not its owners, also a later version: frequent
    /// changes must not keep it alive.
    pub(super) async fn delete(
        &self,
        identity: &Identity,
        live: &ObjectMeta,
        policy: Policy,
    ) -> Result<Deleted, RequestProblem> {
        let api = self.api(identity)?;
        let (name, uid) = (identity.key.name(), live.uid.clone());
        let version = live.resource_version.clone();
        let first = api.delete(name, &parameters(policy, uid.clone(), version)).await;
        let Err(kube::Error::Api(status)) = &first else { return Ok(first.map(|_| Deleted::Accepted)?) };
        if status.code == NOT_FOUND {
            return Ok(Deleted::NotFound);
        }
        if status.code == CONFLICT {
            let Some(now) = self.get(identity).await? else { return Ok(Deleted::NotFound) };
            let is_touched = now.resource_version != live.resource_version;
            if now.uid == uid && is_touched && now.owner_references == live.owner_references {
                let second = api.delete(name, &parameters(policy, uid, None)).await;
                return match second {
                    Err(kube::Error::Api(status)) if status.code == NOT_FOUND => Ok(Deleted::NotFound),
                    other => Ok(other.map(|_| Deleted::Accepted)?),
                };
            }
        }
        Ok(first.map(|_| Deleted::Accepted)?)
    }

    /// Removes the references to these owners.
    pub(super) async fn unlink(
        &self,
        identity: &Identity,
        uid: &Uid,
        owners: &[Uid],
    ) -> Result<(), RequestProblem> {
        let deletions: Vec<Value> =
            owners.iter().map(|owner| json!({"$patch": "delete", "uid": &**owner})).collect();
        self.patch_owners(identity, uid, deletions, |reference| {
            let is_removed = owners.iter().any(|owner| **owner == *reference.uid);
            (!is_removed).then_some(reference)
        })
        .await
    }

    /// Lets the deletion of all owners go on without this object.
    pub(super) async fn unblock(
        &self,
        identity: &Identity,
        uid: &Uid,
        live: &ObjectMeta,
    ) -> Result<(), RequestProblem> {
        let unblocked = |reference: &OwnerReference| OwnerReference {
            block_owner_deletion: Some(false),
            ..reference.clone()
        };
        let blocking =
            live.owner_references.iter().flatten().filter(|it| it.block_owner_deletion == Some(true));
        let changes: Vec<Value> = blocking.map(|reference| json!(unblocked(reference))).collect();
        self.patch_owners(identity, uid, changes, |reference| Some(unblocked(&reference))).await
    }

    /// A strategic merge patch; for kinds that do not support it, a merge patch of the whole list.
    async fn patch_owners(
        &self,
        identity: &Identity,
        uid: &Uid,
        changes: Vec<Value>,
        change: impl Fn(OwnerReference) -> Option<OwnerReference>,
    ) -> Result<(), RequestProblem> {
        let api = self.api(identity)?;
        // Kubernetes: the UID in a patch is a precondition.
        let patch = json!({"metadata": {"ownerReferences": changes, "uid": &**uid}});
        let parameters = PatchParams::default();
        match api.patch_metadata(identity.key.name(), &parameters, &Patch::Strategic(patch)).await {
            Err(kube::Error::Api(status)) if status.code == NOT_FOUND => return Ok(()),
            Err(kube::Error::Api(status)) if status.code == UNSUPPORTED_MEDIA_TYPE => {}
            other => return Ok(other.map(drop)?),
        }
        let Some(live) = self.get(identity).await?.filter(|live| live.uid.as_deref() == Some(uid)) else {
            return Ok(());
        };
        let owners: Vec<OwnerReference> =
            live.owner_references.into_iter().flatten().filter_map(change).collect();
        let metadata = json!({"ownerReferences": owners, "resourceVersion": live.resource_version});
        self.merge(&api, identity, &metadata).await
    }

    pub(super) async fn remove_finalizer(
        &self,
        identity: &Identity,
        uid: &Uid,
        finalizer: &str,
    ) -> Result<(), RequestProblem> {
        let api = self.api(identity)?;
        let Some(live) = self.get(identity).await?.filter(|live| live.uid.as_deref() == Some(uid)) else {
            return Ok(());
        };
        let mut finalizers = live.finalizers.unwrap_or_default();
        if !finalizers.iter().any(|it| it == finalizer) {
            return Ok(());
        }
        finalizers.retain(|it| it != finalizer);
        let metadata = json!({"finalizers": finalizers, "resourceVersion": live.resource_version});
        self.merge(&api, identity, &metadata).await
    }

    async fn merge(
        &self,
        api: &Api<DynamicObject>,
        identity: &Identity,
        metadata: &Value,
    ) -> Result<(), RequestProblem> {
        let patch = Patch::Merge(json!({"metadata": metadata}));
        match api.patch_metadata(identity.key.name(), &PatchParams::default(), &patch).await {
            Err(kube::Error::Api(status)) if status.code == NOT_FOUND => Ok(()),
            other => Ok(other.map(drop)?),
        }
    }

    fn api(&self, identity: &Identity) -> Result<Api<DynamicObject>, RequestProblem> {
        let (kind, client) = (&identity.kind, self.client.clone());
        let resource =
            self.discovered.of_kind(kind.api_version(), kind.kind()).ok_or(RequestProblem::UnknownKind)?;
        match (resource.is_namespaced, identity.namespace()) {
            (false, _) => Ok(Api::all_with(client, &resource.api)),
            (true, Some(namespace)) => Ok(Api::namespaced_with(client, namespace, &resource.api)),
            (true, None) => Err(RequestProblem::NoNamespace),
        }
    }
}

fn parameters(policy: Policy, uid: Option<String>, resource_version: Option<String>) -> DeleteParams {
    let policy = match policy {
        Policy::Background => PropagationPolicy::Background,
        Policy::Foreground => PropagationPolicy::Foreground,
        Policy::Orphan => PropagationPolicy::Orphan,
    };
    DeleteParams {
        preconditions: Some(Preconditions { uid, resource_version }),
        propagation_policy: Some(policy),
        ..DeleteParams::default()
    }
}

impl From<kube::Error> for RequestProblem {
    /// A request that the server refuses is tried again too: a webhook may refuse it today only.
    fn from(error: kube::Error) -> RequestProblem {
        RequestProblem::Failed(match Failure::from(error) {
            Failure::Terminal { message, .. } => Failure::transient(message),
            other => other,
        })
    }
}
