//! What becomes of a claim: it is bound, gets a class, waits, asks for a volume, or has lost its volume.

use crate::storage::{
    claim_facts::{self, BIND_COMPLETED, SELECTED_NODE},
    volume_facts,
};
use k8s_openapi::api::{
    core::v1::{PersistentVolume, PersistentVolumeClaim},
    storage::v1::StorageClass,
};
use kube::ResourceExt;
use operator::event::EventType;
use std::sync::Arc;

/// Kubernetes: provisioners with this prefix are part of its controller manager, or nowhere.
const IN_TREE: &str = "kubernetes.io/";

/// A claim and what decides about it.
#[derive(Clone, Copy, Debug)]
pub(super) struct ClaimState<'a> {
    pub(super) claim: &'a PersistentVolumeClaim,
    /// The volume that it names.
    pub(super) named_volume: Option<&'a Arc<PersistentVolume>>,
    /// Volumes that refer to it, and those of its class that refer to no claim.
    pub(super) volumes: &'a [Arc<PersistentVolume>],
    pub(super) class: Option<&'a StorageClass>,
    pub(super) default_class: Option<&'a str>,
    /// The names of pods that use it and have no node yet.
    pub(super) unscheduled_pods: &'a [String],
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum ClaimPlan {
    Bind(Arc<PersistentVolume>),
    /// The claim does not say which class it wants, and there is a default class.
    AssignClass(String),
    /// It stays pending; the event says why.
    Wait(Option<Notice>),
    /// The provisioner of this name is asked for a volume.
    Provision(String),
    /// It was bound, and its volume is gone or is another claim's.
    Lose(Notice),
    /// Two claims fight for a volume: tried again, after the event.
    Fail(Notice),
}

/// An event on the claim.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Notice {
    pub(super) event_type: EventType,
    pub(super) reason: &'static str,
    pub(super) message: String,
}

impl Notice {
    pub(super) fn normal(reason: &'static str, message: impl Into<String>) -> Notice {
        Notice { event_type: EventType::Normal, reason, message: message.into() }
    }

    pub(super) fn warning(reason: &'static str, message: impl Into<String>) -> Notice {
        Notice { event_type: EventType::Warning, reason, message: message.into() }
    }
}

pub(super) fn plan(state: &ClaimState<'_>) -> ClaimPlan {
    let claim = state.claim;
    match (claim.annotations().contains_key(BIND_COMPLETED), claim_facts::volume(claim)) {
        (true, _) => plan_bound(state),
        (false, "") => plan_without_volume(state),
        (false, _) => plan_with_named_volume(state),
    }
}

/// The claim was bound before.
fn plan_bound(state: &ClaimState<'_>) -> ClaimPlan {
    let lost = |reason, message: &str| ClaimPlan::Lose(Notice::warning(reason, message));
    if claim_facts::volume(state.claim).is_empty() {
        let message = "Bound claim has lost reference to PersistentVolume. Data on the volume is lost!";
        return lost("ClaimLost", message);
    }
    let Some(volume) = state.named_volume else {
        let message = "Bound claim has lost its PersistentVolume. Data on the volume is lost!";
        return lost("ClaimLost", message);
    };
    let owner = volume_facts::claim_reference(volume).map(volume_facts::claim_uid);
    if owner.is_none_or(|uid| Some(uid) == state.claim.metadata.uid.as_deref()) {
        return ClaimPlan::Bind(Arc::clone(volume));
    }
    let message = "Two claims are bound to the same volume, this one is bound incorrectly";
    lost("ClaimMisbound", message)
}

/// The user wants this volume and no other.
fn plan_with_named_volume(state: &ClaimState<'_>) -> ClaimPlan {
    let claim = state.claim;
    let Some(volume) = state.named_volume else { return ClaimPlan::Wait(None) };
    if volume_facts::is_for(volume, claim) {
        return ClaimPlan::Bind(Arc::clone(volume));
    }
    let name = volume.name_any();
    if volume_facts::claim_reference(volume).is_some() {
        let notice =
            Notice::warning("FailedBinding", format!("volume {name:?} already bound to a different claim."));
        let is_by_user = !claim.annotations().contains_key(volume_facts::BOUND_BY_CONTROLLER);
        return if is_by_user { ClaimPlan::Wait(Some(notice)) } else { ClaimPlan::Fail(notice) };
    }
    match volume_facts::mismatch(volume, claim) {
        None => ClaimPlan::Bind(Arc::clone(volume)),
        Some(problem) => {
            let message = format!("Cannot bind to requested volume {name:?}: {problem}");
            ClaimPlan::Wait(Some(Notice::warning("VolumeMismatch", message)))
        }
    }
}

fn plan_without_volume(state: &ClaimState<'_>) -> ClaimPlan {
    let claim = state.claim;
    let is_delayed = claim_facts::is_delayed(state.class);
    if let Some(volume) = volume_facts::best(state.volumes, claim, is_delayed) {
        return ClaimPlan::Bind(Arc::clone(volume));
    }
    if let (false, Some(class)) = (claim_facts::has_class(claim), state.default_class) {
        return ClaimPlan::AssignClass(class.to_owned());
    }
    if is_delayed && !claim.annotations().contains_key(SELECTED_NODE) {
        return ClaimPlan::Wait(Some(waits_for_pod(state.unscheduled_pods)));
    }
    match (claim_facts::class(claim), state.class) {
        ("", _) => {
            let message = "no persistent volumes available for this claim and no storage class is set";
            ClaimPlan::Wait(Some(Notice::normal("FailedBinding", message)))
        }
        (name, None) => {
            let message = format!("storageclass.storage.k8s.io {name:?} not found");
            ClaimPlan::Wait(Some(Notice::warning("ProvisioningFailed", message)))
        }
        (_, Some(class)) if class.provisioner.starts_with(IN_TREE) => {
            let message = format!("no volume plugin matched name: {}", class.provisioner);
            ClaimPlan::Wait(Some(Notice::warning("ProvisioningFailed", message)))
        }
        (_, Some(class)) => ClaimPlan::Provision(class.provisioner.clone()),
    }
}

fn waits_for_pod(unscheduled: &[String]) -> Notice {
    match unscheduled {
        [] => {
            let message = "waiting for first consumer to be created before binding";
            Notice::normal("WaitForFirstConsumer", message)
        }
        [pod] => Notice::normal("WaitForPodScheduled", format!("waiting for pod {pod} to be scheduled")),
        pods => {
            let message = format!("waiting for pods {} to be scheduled", pods.join(","));
            Notice::normal("WaitForPodScheduled", message)
        }
    }
}

#[cfg(test)]
mod tests;
