//! What the reclaim policy means for a volume whose claim is gone.

use crate::storage::volume_facts;
use k8s_openapi::api::core::v1::PersistentVolume;
use kube::ResourceExt;

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Reclaim {
    /// An administrator decides.
    Keep,
    /// The provisioner that has made the storage deletes it, and then the volume.
    LeaveToProvisioner,
    /// There is no storage that would have to be deleted.
    Delete,
    Fail {
        reason: &'static str,
        message: String,
    },
}

pub(super) fn policy(volume: &PersistentVolume) -> &str {
    let policy = volume.spec.as_ref().and_then(|spec| spec.persistent_volume_reclaim_policy.as_deref());
    policy.unwrap_or_default()
}

pub(super) fn plan(volume: &PersistentVolume) -> Reclaim {
    match policy(volume) {
        "Retain" => Reclaim::Keep,
        "Delete" => delete(volume),
        // Kubernetes empties hostPath and NFS volumes in a pod; that is deprecated, and not done here.
        "Recycle" => Reclaim::Fail {
            reason: "VolumeFailedRecycle",
            message: "No recycler plugin found for the volume!".to_owned(),
        },
        _ => Reclaim::Fail {
            reason: "VolumeUnknownReclaimPolicy",
            message: "Volume has unrecognized PersistentVolumeReclaimPolicy".to_owned(),
        },
    }
}

fn delete(volume: &PersistentVolume) -> Reclaim {
    let fail = |message: String| Reclaim::Fail { reason: "VolumeFailedDelete", message };
    let provisioner = volume.annotations().get(volume_facts::PROVISIONED_BY).map(String::as_str);
    if provisioner.is_some_and(|it| !it.is_empty() && !it.starts_with("kubernetes.io/")) {
        return Reclaim::LeaveToProvisioner;
    }
    let Some(spec) = &volume.spec else { return Reclaim::Keep };
    if spec.csi.is_some() {
        return Reclaim::LeaveToProvisioner;
    }
    if let Some(path) = spec.host_path.as_ref().map(|source| source.path.as_str()) {
        // Kubernetes: other directories of a host are not a volume's to delete.
        let is_temporary = path.strip_prefix("/tmp/").is_some_and(|rest| !rest.is_empty());
        return match is_temporary {
            true => Reclaim::Delete,
            false => fail(format!("host_path deleter only supports /tmp/.+ but received provided {path}")),
        };
    }
    let problem =
        if spec.nfs.is_some() { "no deletable volume plugin matched" } else { "no volume plugin matched" };
    fail(format!("error getting deleter volume plugin for volume {:?}: {problem}", volume.name_any()))
}
