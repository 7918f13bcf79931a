//! Facts about volumes that several loops decide by, and whether a volume is what a claim asks for.

use super::claim_facts;
use api::quantity::Quantity;
use k8s_openapi::api::core::v1::{ObjectReference, PersistentVolume, PersistentVolumeClaim};
use kube::{
    ResourceExt,
    core::{Selector, SelectorExt},
};
use operator::Key;

/// Kubernetes: the older way to name the class.
const BETA_CLASS: &str = "volume.beta.kubernetes.io/storage-class";
/// Kubernetes: marks what a program has bound, and may unbind.
pub(crate) const BOUND_BY_CONTROLLER: &str = "pv.kubernetes.io/bound-by-controller";
/// Kubernetes: the provisioner that has made the volume.
pub(crate) const PROVISIONED_BY: &str = "pv.kubernetes.io/provisioned-by";

/// The name of its class; empty if it has none.
pub(crate) fn class(volume: &PersistentVolume) -> &str {
    let named = || volume.spec.as_ref()?.storage_class_name.as_deref();
    let older = volume.annotations().get(BETA_CLASS).map(String::as_str);
    older.or_else(named).unwrap_or_default()
}

pub(crate) fn phase(volume: &PersistentVolume) -> &str {
    let phase = volume.status.as_ref().and_then(|status| status.phase.as_deref());
    phase.unwrap_or_default()
}

pub(crate) fn capacity(volume: &PersistentVolume) -> Quantity {
    let capacity = volume.spec.as_ref().and_then(|spec| spec.capacity.as_ref()?.get("storage"));
    capacity.and_then(|it| it.0.parse().ok()).unwrap_or_default()
}

/// The claim that it is bound to or reserved for.
pub(crate) fn claim_reference(volume: &PersistentVolume) -> Option<&ObjectReference> {
    volume.spec.as_ref()?.claim_ref.as_ref()
}

pub(crate) fn claim_key(reference: &ObjectReference) -> Key {
    Key::new(reference.namespace.as_deref(), reference.name.as_deref().unwrap_or_default())
}

/// The UID of the claim; empty if the volume was reserved by name only.
pub(crate) fn claim_uid(reference: &ObjectReference) -> &str {
    reference.uid.as_deref().unwrap_or_default()
}

/// Whether the volume is bound to this very claim, or reserved for its name.
pub(crate) fn is_for(volume: &PersistentVolume, claim: &PersistentVolumeClaim) -> bool {
    claim_reference(volume).is_some_and(|reference| {
        let uid = claim_uid(reference);
        reference.name == claim.metadata.name
            && reference.namespace == claim.metadata.namespace
            && (uid.is_empty() || Some(uid) == claim.metadata.uid.as_deref())
    })
}

/// Why the volume is not what the claim asks for, in the words of Kubernetes.
pub(crate) fn mismatch(volume: &PersistentVolume, claim: &PersistentVolumeClaim) -> Option<String> {
    let problem = if volume.metadata.deletion_timestamp.is_some() {
        return Some(format!("the volume is marked for deletion {:?}", volume.name_any()));
    } else if capacity(volume) < claim_facts::requested(claim) {
        "requested PV is too small"
    } else if class(volume) != claim_facts::class(claim) {
        "storageClassName does not match"
    } else if !has_same_attributes(volume, claim) {
        "volumeAttributesClassName does not match"
    } else if !has_same_mode(volume, claim) {
        "incompatible volumeMode"
    } else if !has_access_modes(volume, claim) {
        "incompatible accessMode"
    } else {
        return None;
    };
    Some(problem.to_owned())
}

/// The volume for a claim: the one that is for it, or the smallest of those that refer to no claim and fit, unless a
/// node must be chosen first. Volumes with more access modes than needed are the second choice.
pub(crate) fn best<'a, V: AsRef<PersistentVolume>>(
    volumes: &'a [V],
    claim: &PersistentVolumeClaim,
    is_delayed: bool,
) -> Option<&'a V> {
    // Kubernetes: the class and the selector do not count for a volume that is for the claim.
    let fits = |volume: &PersistentVolume| {
        volume.metadata.deletion_timestamp.is_none()
            && capacity(volume) >= claim_facts::requested(claim)
            && has_same_mode(volume, claim)
            && has_same_attributes(volume, claim)
            && has_access_modes(volume, claim)
    };
    let own = volumes.iter().find(|volume| is_for((*volume).as_ref(), claim) && fits((*volume).as_ref()));
    if own.is_some() || is_delayed {
        return own;
    }
    let free = volumes.iter().filter(|volume| {
        let volume = (*volume).as_ref();
        claim_reference(volume).is_none()
            && phase(volume) == "Available"
            && class(volume) == claim_facts::class(claim)
            && fits(volume)
            && is_selected(volume, claim)
    });
    free.min_by_key(|volume| {
        let volume = (*volume).as_ref();
        let modes = volume.spec.as_ref().and_then(|spec| spec.access_modes.as_ref()).map_or(0, Vec::len);
        (modes, capacity(volume), volume.name_any())
    })
}

/// Whether the claim has no selector, or one that matches the volume.
pub(crate) fn is_selected(volume: &PersistentVolume, claim: &PersistentVolumeClaim) -> bool {
    let Some(selector) = claim.spec.as_ref().and_then(|spec| spec.selector.clone()) else { return true };
    Selector::try_from(selector).is_ok_and(|selector| selector.matches(volume.labels()))
}

pub(crate) fn has_same_mode(volume: &PersistentVolume, claim: &PersistentVolumeClaim) -> bool {
    let offered = volume.spec.as_ref().and_then(|spec| spec.volume_mode.as_deref());
    let wanted = claim.spec.as_ref().and_then(|spec| spec.volume_mode.as_deref());
    offered.unwrap_or("Filesystem") == wanted.unwrap_or("Filesystem")
}

fn has_same_attributes(volume: &PersistentVolume, claim: &PersistentVolumeClaim) -> bool {
    let offered = volume.spec.as_ref().and_then(|spec| spec.volume_attributes_class_name.as_deref());
    let wanted = claim.spec.as_ref().and_then(|spec| spec.volume_attributes_class_name.as_deref());
    offered.unwrap_or_default() == wanted.unwrap_or_default()
}

pub(crate) fn has_access_modes(volume: &PersistentVolume, claim: &PersistentVolumeClaim) -> bool {
    let offered = volume.spec.as_ref().and_then(|spec| spec.access_modes.as_deref()).unwrap_or_default();
    let wanted = claim.spec.as_ref().and_then(|spec| spec.access_modes.as_deref()).unwrap_or_default();
    wanted.iter().all(|mode| offered.contains(mode))
}

#[cfg(test)]
mod tests;
