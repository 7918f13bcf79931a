//! The loop over volumes: their phases, and what becomes of them without their claims.

use super::{
    WORKERS, bind,
    reclaim::Reclaim,
    volume_plan::{self, VolumePlan},
};
use crate::storage::{claim_facts, volume_facts};
use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use kube::{
    ResourceExt,
    api::{DeleteParams, Preconditions},
};
use operator::{Context, Controller, Failure, Key, Next, all, cache::View};
use std::sync::Arc;

/// The index of volumes by the claim that they are for.
const BY_CLAIM: &str = "claim-of-volume";

pub(super) fn controller() -> Controller {
    Controller::new("persistentvolume-binder-volumes", all::<PersistentVolume>())
        .index(BY_CLAIM, |volume| {
            let reference = volume_facts::claim_reference(volume);
            reference.map(|it| volume_facts::claim_key(it).to_string()).into_iter().collect()
        })
        .watches_through(all::<PersistentVolumeClaim>(), volumes_of_claim)
        .workers(WORKERS)
        .reconcile((), reconcile)
}

/// The volumes that are for a claim, and the one that it names.
fn volumes_of_claim(volumes: &View<PersistentVolume>, claim: &PersistentVolumeClaim) -> Vec<Key> {
    let found = volumes.indexed(BY_CLAIM, Key::of(claim).as_str()).unwrap_or_default();
    let named = Some(claim_facts::volume(claim)).filter(|name| !name.is_empty());
    found.iter().map(|volume| Key::of(&**volume)).chain(named.map(|name| Key::new(None, name))).collect()
}

async fn reconcile(context: Context<()>, key: Key) -> Result<Next, Failure> {
    let Some(volume) = context.get::<PersistentVolume>(&key)? else { return Ok(Next::Settled) };
    let claim = claim(&context, &volume).await?;
    match volume_plan::plan(&volume, claim.as_deref()) {
        VolumePlan::SetPhase(phase) => {
            bind::set_volume_phase(&context, PersistentVolume::clone(&volume), phase, None).await?;
        }
        VolumePlan::WaitForClaim => return Ok(Next::WaitFor("its claim to be bound")),
        VolumePlan::ReportMode => {
            if let Some(claim) = claim {
                report_mode(&context, &volume, &claim);
            }
            return Ok(Next::WaitFor("a claim of its mode"));
        }
        VolumePlan::Unbind => bind::unbind(&context, &volume).await?,
        VolumePlan::Release(reclaim) => release(&context, &volume, reclaim).await?,
    }
    Ok(Next::Settled)
}

/// The claim that the volume refers to by name and UID. The server is asked before a claim counts as gone: the volume
/// of a claim that a late watch has not shown must not be deleted.
async fn claim(
    context: &Context<()>,
    volume: &PersistentVolume,
) -> Result<Option<Arc<PersistentVolumeClaim>>, Failure> {
    let Some(reference) = volume_facts::claim_reference(volume) else { return Ok(None) };
    let uid = volume_facts::claim_uid(reference);
    if uid.is_empty() {
        return Ok(None);
    }
    let key = volume_facts::claim_key(reference);
    let is_it = |claim: &Arc<PersistentVolumeClaim>| claim.metadata.uid.as_deref() == Some(uid);
    let cached = context.get::<PersistentVolumeClaim>(&key)?.filter(is_it);
    if cached.is_some() || volume_plan::is_released(volume) {
        return Ok(cached);
    }
    let claims = context.namespaced::<PersistentVolumeClaim>(&key);
    Ok(claims.get_opt(key.name()).await?.map(Arc::new).filter(is_it))
}

async fn release(context: &Context<()>, volume: &PersistentVolume, reclaim: Reclaim) -> Result<(), Failure> {
    let mut volume = volume.clone();
    if !volume_plan::is_released(&volume) {
        match bind::set_volume_phase(context, volume, "Released", None).await? {
            Some(released) => volume = released,
            None => return Ok(()),
        }
    }
    match reclaim {
        Reclaim::Keep | Reclaim::LeaveToProvisioner => Ok(()),
        Reclaim::Delete => delete(context, &volume).await,
        Reclaim::Fail { reason, message } => {
            if volume_facts::phase(&volume) != "Failed" {
                bind::set_volume_phase(context, volume.clone(), "Failed", Some(&message)).await?;
                context.events().warning(&volume, reason, "", message);
            }
            Ok(())
        }
    }
}

async fn delete(context: &Context<()>, volume: &PersistentVolume) -> Result<(), Failure> {
    let preconditions = Preconditions { uid: volume.uid(), resource_version: None };
    let parameters = DeleteParams::default().preconditions(preconditions);
    match context.cluster::<PersistentVolume>().delete(&volume.name_any(), &parameters).await {
        Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => Ok(()),
        other => Ok(other.map(drop)?),
    }
}

fn report_mode(context: &Context<()>, volume: &PersistentVolume, claim: &PersistentVolumeClaim) {
    let (reason, name, claim_name) = ("VolumeMismatch", volume.name_any(), claim.name_any());
    let note = format!(
        "Cannot bind PersistentVolume to requested PersistentVolumeClaim {claim_name:?} due to incompatible volumeMode."
    );
    context.events().warning(volume, reason, "", note);
    let note = format!(
        "Cannot bind PersistentVolume {name:?} to requested PersistentVolumeClaim due to incompatible volumeMode."
    );
    context.events().warning(claim, reason, "", note);
}
