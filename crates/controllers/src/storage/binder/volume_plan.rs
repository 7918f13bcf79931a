//! What becomes of a volume: its phase follows its claim, and without its claim it is reclaimed.

use super::reclaim::{self, Reclaim};
use crate::storage::{claim_facts, volume_facts};
use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use kube::ResourceExt;

#[derive(Clone, Debug, PartialEq)]
pub(super) enum VolumePlan {
    SetPhase(&'static str),
    /// The loop over claims binds the claim to it.
    WaitForClaim,
    /// It is reserved for a claim that asks for another mode.
    ReportMode,
    /// Its claim is gone, or has another volume.
    Release(Reclaim),
    /// Its claim has another volume: its reference is removed, or only the UID if a user has written the reference.
    Unbind,
}

/// `claim` is the one with the name and the UID that the volume refers to; `None` if it is gone.
pub(super) fn plan(volume: &PersistentVolume, claim: Option<&PersistentVolumeClaim>) -> VolumePlan {
    let uid = volume_facts::claim_reference(volume).map(volume_facts::claim_uid);
    if uid.is_none_or(str::is_empty) {
        return VolumePlan::SetPhase("Available");
    }
    let Some(claim) = claim else { return VolumePlan::Release(reclaim::plan(volume)) };
    match claim_facts::volume(claim) {
        "" if !volume_facts::has_same_mode(volume, claim) => VolumePlan::ReportMode,
        "" => VolumePlan::WaitForClaim,
        name if name == volume.name_any() => VolumePlan::SetPhase("Bound"),
        _ => {
            let is_provisioned = volume.annotations().contains_key(volume_facts::PROVISIONED_BY);
            if is_provisioned && reclaim::policy(volume) == "Delete" {
                VolumePlan::Release(reclaim::plan(volume))
            } else {
                VolumePlan::Unbind
            }
        }
    }
}

/// Whether its claim was found to be gone before.
pub(super) fn is_released(volume: &PersistentVolume) -> bool {
    matches!(volume_facts::phase(volume), "Released" | "Failed")
}

#[cfg(test)]
mod tests;
