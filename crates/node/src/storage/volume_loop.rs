//! Deletes volumes that are released and shall be deleted, and keeps a finalizer on the others.

use super::{
    PROVISIONER,
    new_volume::{FINALIZER, PROVISIONED_BY},
};
use k8s_openapi::api::core::v1::PersistentVolume;
use kube::{
    ResourceExt,
    api::{DeleteParams, PostParams, Preconditions},
};
use operator::{Context, Controller, Failure, Key, Next, all};

/// So many volumes at once.
const WORKERS: usize = 16;

pub(super) fn controller() -> Controller {
    Controller::new("simulated-volumes", all::<PersistentVolume>()).workers(WORKERS).reconcile((), reconcile)
}

/// What becomes of a volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum VolumePlan {
    Keep,
    Delete,
    AddFinalizer,
    RemoveFinalizer,
}

fn plan(volume: &PersistentVolume) -> VolumePlan {
    if volume.annotations().get(PROVISIONED_BY).is_none_or(|it| it != PROVISIONER) {
        return VolumePlan::Keep;
    }
    let policy = volume.spec.as_ref().and_then(|spec| spec.persistent_volume_reclaim_policy.as_deref());
    let phase = volume.status.as_ref().and_then(|status| status.phase.as_deref());
    let is_marked = volume.finalizers().iter().any(|it| it == FINALIZER);
    let (deletes, is_deleting) = (policy == Some("Delete"), volume.metadata.deletion_timestamp.is_some());
    match (deletes, is_deleting, is_marked) {
        // Its storage holds nothing: only a claim that is bound to it keeps it.
        (true, true, true) if phase != Some("Bound") => VolumePlan::RemoveFinalizer,
        (true, false, _) if phase == Some("Released") => VolumePlan::Delete,
        (true, false, false) => VolumePlan::AddFinalizer,
        (false, _, true) => VolumePlan::RemoveFinalizer,
        _ => VolumePlan::Keep,
    }
}

async fn reconcile(context: Context<()>, key: Key) -> Result<Next, Failure> {
    let Some(volume) = context.get::<PersistentVolume>(&key)? else { return Ok(Next::Settled) };
    let volumes = context.cluster::<PersistentVolume>();
    let mut changed = PersistentVolume::clone(&volume);
    match plan(&volume) {
        VolumePlan::Keep => return Ok(Next::Settled),
        VolumePlan::Delete => {
            // Only as it was seen: a volume that was taken back by hand must stay.
            let preconditions =
                Preconditions { uid: volume.uid(), resource_version: volume.resource_version() };
            let parameters = DeleteParams::default().preconditions(preconditions);
            return match volumes.delete(key.name(), &parameters).await {
                Err(kube::Error::Api(status)) if status.code == 404 => Ok(Next::Settled),
                other => Ok(other.map(|_| Next::Settled)?),
            };
        }
        VolumePlan::AddFinalizer => changed.finalizers_mut().push(FINALIZER.to_owned()),
        VolumePlan::RemoveFinalizer => changed.finalizers_mut().retain(|it| it != FINALIZER),
    }
    match volumes.replace(key.name(), &PostParams::default(), &changed).await {
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(Next::Settled),
        other => Ok(other.map(|_| Next::Settled)?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn released_volumes_are_deleted_if_their_policy_says_so() {
        for (provisioner, policy, phase, is_deleting, is_marked, expected) in [
            (PROVISIONER, "Delete", "Bound", false, true, VolumePlan::Keep),
            (PROVISIONER, "Delete", "Bound", false, false, VolumePlan::AddFinalizer),
            (PROVISIONER, "Delete", "Released", false, true, VolumePlan::Delete),
            (PROVISIONER, "Delete", "Released", true, true, VolumePlan::RemoveFinalizer),
            (PROVISIONER, "Delete", "Released", true, false, VolumePlan::Keep),
            (PROVISIONER, "Delete", "Bound", true, true, VolumePlan::Keep),
            (PROVISIONER, "Retain", "Bound", false, true, VolumePlan::RemoveFinalizer),
            (PROVISIONER, "Retain", "Released", false, false, VolumePlan::Keep),
            (PROVISIONER, "Retain", "Released", true, true, VolumePlan::RemoveFinalizer),
            ("other", "Delete", "Released", false, true, VolumePlan::Keep),
        ] {
            let volume = json!({"metadata": {"name": "pv", "annotations": {PROVISIONED_BY: provisioner},
                "deletionTimestamp": is_deleting.then_some("2026-01-01T00:00:00Z"),
                "finalizers": if is_marked { vec![FINALIZER] } else { vec![] }},
                "spec": {"persistentVolumeReclaimPolicy": policy}, "status": {"phase": phase}});
            let volume: PersistentVolume = serde_json::from_value(volume).unwrap();
            assert_eq!(plan(&volume), expected, "{volume:?}");
        }
    }
}
