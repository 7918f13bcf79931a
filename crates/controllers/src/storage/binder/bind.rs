//! Binds a claim and a volume to each other, in four writes that can be cut off after any of them.

use crate::{
    status::{self, Written},
    storage::{
        claim_facts::{self, BIND_COMPLETED},
        volume_facts::{self, BOUND_BY_CONTROLLER},
    },
};
use k8s_openapi::{
    api::core::v1::{
        ObjectReference, PersistentVolume, PersistentVolumeClaim, PersistentVolumeClaimStatus,
        PersistentVolumeStatus,
    },
    apimachinery::pkg::api::resource::Quantity,
};
use kube::{Resource, ResourceExt, api::PostParams};
use operator::{Context, Failure, Key};

/// Kubernetes: the size before the file system grows.
const SIZE_BEFORE_RESIZE: &str = "volume.alpha.kubernetes.io/pre-resize-capacity";

/// The volume first: of two claims that want it, the one whose write succeeds has it. Every write is refused if its
/// object has changed since it was read.
pub(super) async fn bind(
    context: &Context<()>,
    volume: &PersistentVolume,
    claim: &PersistentVolumeClaim,
) -> Result<(), Failure> {
    let volumes = context.cluster::<PersistentVolume>();
    let claims = context.namespaced::<PersistentVolumeClaim>(&Key::of(claim));
    let mut volume = volume.clone();
    if let Some(changed) = bound_volume(&volume, claim) {
        volume = volumes.replace(&volume.name_any(), &PostParams::default(), &changed).await?;
    }
    let Some(volume) = set_volume_phase(context, volume, "Bound", None).await? else { return Ok(()) };
    let mut claim = claim.clone();
    if let Some(changed) = bound_claim(&claim, &volume) {
        claim = claims.replace(&claim.name_any(), &PostParams::default(), &changed).await?;
    }
    set_claim_phase(context, &claim, "Bound", Some(&volume)).await
}

/// Takes the volume from its claim, which has another one.
pub(super) async fn unbind(context: &Context<()>, volume: &PersistentVolume) -> Result<(), Failure> {
    let mut changed = volume.clone();
    let is_by_controller = changed.annotations_mut().remove(BOUND_BY_CONTROLLER).is_some();
    if let Some(spec) = &mut changed.spec {
        match (is_by_controller, &mut spec.claim_ref) {
            (false, Some(reference)) => reference.uid = None,
            _ => spec.claim_ref = None,
        }
    }
    let volumes = context.cluster::<PersistentVolume>();
    let changed = volumes.replace(&volume.name_any(), &PostParams::default(), &changed).await?;
    set_volume_phase(context, changed, "Available", None).await.map(drop)
}

/// Returns the volume in its phase; `None` if it is gone.
pub(super) async fn set_volume_phase(
    context: &Context<()>,
    volume: PersistentVolume,
    phase: &str,
    message: Option<&str>,
) -> Result<Option<PersistentVolume>, Failure> {
    if volume_facts::phase(&volume) == phase {
        return Ok(Some(volume));
    }
    let status = PersistentVolumeStatus {
        phase: Some(phase.to_owned()),
        message: message.map(str::to_owned),
        ..volume.status.clone().unwrap_or_default()
    };
    match status::write(&context.cluster::<PersistentVolume>(), &volume, &status).await? {
        Written::Unchanged => Ok(Some(volume)),
        Written::Changed(volume) => Ok(Some(volume)),
        Written::Gone => Ok(None),
    }
}

/// Writes the status of a claim with this volume, or without one.
pub(super) async fn set_claim_phase(
    context: &Context<()>,
    claim: &PersistentVolumeClaim,
    phase: &str,
    volume: Option<&PersistentVolume>,
) -> Result<(), Failure> {
    let status = claim_status(claim, phase, volume);
    let claims = context.namespaced::<PersistentVolumeClaim>(&Key::of(claim));
    status::replace(&claims, claim, &status).await.map(drop)
}

/// The volume with a complete reference to the claim; `None` if it has it.
fn bound_volume(volume: &PersistentVolume, claim: &PersistentVolumeClaim) -> Option<PersistentVolume> {
    let is_reserved = volume_facts::is_for(volume, claim);
    let present = volume_facts::claim_reference(volume);
    if is_reserved && present.is_some_and(|reference| !volume_facts::claim_uid(reference).is_empty()) {
        return None;
    }
    let mut changed = volume.clone();
    changed.spec.get_or_insert_default().claim_ref = Some(ObjectReference {
        resource_version: claim.metadata.resource_version.clone(),
        ..claim.object_ref(&())
    });
    if !is_reserved {
        changed.annotations_mut().insert(BOUND_BY_CONTROLLER.to_owned(), "yes".to_owned());
    }
    Some(changed)
}

/// The claim with the name of the volume; `None` if it has it.
fn bound_claim(claim: &PersistentVolumeClaim, volume: &PersistentVolume) -> Option<PersistentVolumeClaim> {
    let is_named = claim_facts::volume(claim) == volume.name_any();
    if is_named && claim.annotations().contains_key(BIND_COMPLETED) {
        return None;
    }
    let mut changed = claim.clone();
    changed.spec.get_or_insert_default().volume_name = Some(volume.name_any());
    let annotations = changed.annotations_mut();
    if !is_named {
        annotations.insert(BOUND_BY_CONTROLLER.to_owned(), "yes".to_owned());
    }
    annotations.insert(BIND_COMPLETED.to_owned(), "yes".to_owned());
    Some(changed)
}

/// Kubernetes: the size is set when the phase changes; later a resizer keeps it.
fn claim_status(
    claim: &PersistentVolumeClaim,
    phase: &str,
    volume: Option<&PersistentVolume>,
) -> PersistentVolumeClaimStatus {
    let mut status = claim.status.clone().unwrap_or_default();
    let before = status.phase.replace(phase.to_owned());
    let Some(volume) = volume else {
        status.access_modes = None;
        status.capacity = None;
        status.current_volume_attributes_class_name = None;
        return status;
    };
    let Some(spec) = &volume.spec else { return status };
    status.access_modes = spec.access_modes.clone();
    if before.as_deref() != Some(phase) {
        let size = volume.annotations().get(SIZE_BEFORE_RESIZE);
        match size.filter(|size| size.parse::<api::quantity::Quantity>().is_ok()) {
            Some(size) => {
                let capacity = status.capacity.get_or_insert_default();
                capacity.insert("storage".to_owned(), Quantity(size.clone()));
            }
            None => status.capacity = spec.capacity.clone(),
        }
    }
    if before.as_deref() == Some("Pending") && phase == "Bound" {
        status.current_volume_attributes_class_name = spec.volume_attributes_class_name.clone();
    }
    status
}

#[cfg(test)]
mod tests;
