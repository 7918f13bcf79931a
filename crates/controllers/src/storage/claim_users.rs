//! The pods that use a claim: by name, or as the claim of a generic ephemeral volume.

use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod, Volume};
use kube::ResourceExt;
use operator::{
    Key,
    cache::{Undecodable, View},
};
use std::sync::Arc;

/// The index of pods by the keys of their claims. The loop for resource claims has one of its own.
const BY_CLAIM: &str = "volume-claim";

/// The pods that use the claim with this key, sorted by name.
pub(super) fn of_claim(pods: &View<Pod>, claim: &Key) -> Result<Vec<Arc<Pod>>, Undecodable> {
    pods.index(BY_CLAIM, |pod| claims(pod).iter().map(Key::to_string).collect());
    pods.indexed(BY_CLAIM, claim.as_str())
}

/// The keys of the claims that a pod uses.
pub(super) fn claims(pod: &Pod) -> Vec<Key> {
    let volumes = pod.spec.iter().flat_map(|spec| spec.volumes.iter().flatten());
    let name = |volume: &Volume| match &volume.persistent_volume_claim {
        Some(source) => Some(source.claim_name.clone()),
        None => volume.ephemeral.as_ref().map(|_| ephemeral_name(pod, volume)),
    };
    let namespace = pod.metadata.namespace.as_deref();
    volumes.filter_map(name).map(|name| Key::new(namespace, &name)).collect()
}

/// Kubernetes: the name of the claim of a generic ephemeral volume.
pub(super) fn ephemeral_name(pod: &Pod, volume: &Volume) -> String {
    format!("{}-{}", pod.name_any(), volume.name)
}

/// Whether the claim was made for an ephemeral volume of the pod: the pod controls it.
pub(super) fn is_made_for(claim: &PersistentVolumeClaim, pod: &Pod) -> bool {
    let is_pod = claim.metadata.namespace == pod.metadata.namespace;
    let owners = claim.owner_references();
    is_pod
        && owners.iter().any(|it| it.controller == Some(true) && Some(&it.uid) == pod.metadata.uid.as_ref())
}
