//! Facts about claims that several loops decide by: class, size, volume, phase.

use api::quantity::Quantity;
use k8s_openapi::api::{core::v1::PersistentVolumeClaim, storage::v1::StorageClass};
use kube::ResourceExt;

/// Kubernetes: the older way to name the class.
const BETA_CLASS: &str = "volume.beta.kubernetes.io/storage-class";
/// Kubernetes: the scheduler sets it when the claim's pod has a node and the claim waits for one.
pub(crate) const SELECTED_NODE: &str = "volume.kubernetes.io/selected-node";

/// Kubernetes: the claim was bound once; from then on a missing volume is a loss.
pub(crate) const BIND_COMPLETED: &str = "pv.kubernetes.io/bind-completed";

/// Whether the claim says something about its class, be it that it wants none.
pub(crate) fn has_class(claim: &PersistentVolumeClaim) -> bool {
    let is_set = claim.spec.as_ref().is_some_and(|spec| spec.storage_class_name.is_some());
    is_set || claim.annotations().contains_key(BETA_CLASS)
}

/// The name of its class; empty if it has none.
pub(crate) fn class(claim: &PersistentVolumeClaim) -> &str {
    let named = || claim.spec.as_ref()?.storage_class_name.as_deref();
    let older = claim.annotations().get(BETA_CLASS).map(String::as_str);
    older.or_else(named).unwrap_or_default()
}

/// The volume that it names; empty if it names none.
pub(crate) fn volume(claim: &PersistentVolumeClaim) -> &str {
    let named = claim.spec.as_ref().and_then(|spec| spec.volume_name.as_deref());
    named.unwrap_or_default()
}

pub(crate) fn phase(claim: &PersistentVolumeClaim) -> &str {
    let phase = claim.status.as_ref().and_then(|status| status.phase.as_deref());
    phase.unwrap_or_default()
}

/// How much storage it asks for.
pub(crate) fn requested(claim: &PersistentVolumeClaim) -> Quantity {
    let requests = claim.spec.as_ref().and_then(|spec| spec.resources.as_ref()?.requests.as_ref());
    let size = requests.and_then(|requests| requests.get("storage")?.0.parse().ok());
    size.unwrap_or_default()
}

/// How much storage it has.
pub(crate) fn capacity(claim: &PersistentVolumeClaim) -> Option<Quantity> {
    claim.status.as_ref()?.capacity.as_ref()?.get("storage")?.0.parse().ok()
}

/// Whether claims of the class wait until a pod that uses them has a node.
pub(crate) fn is_delayed(class: Option<&StorageClass>) -> bool {
    class.and_then(|class| class.volume_binding_mode.as_deref()) == Some("WaitForFirstConsumer")
}
