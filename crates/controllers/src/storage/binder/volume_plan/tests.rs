//! Tables of cases.

use super::*;
use serde_json::{Value, json};

fn volume(annotations: &Value, spec: &Value) -> PersistentVolume {
    let volume = json!({"metadata": {"name": "pv", "annotations": annotations}, "spec": spec});
    serde_json::from_value(volume).unwrap()
}

#[test]
fn the_phase_of_a_volume_follows_its_claim() {
    let claim = |spec: Value| -> Option<PersistentVolumeClaim> {
        let meta = json!({"name": "data", "namespace": "default", "uid": "1"});
        Some(serde_json::from_value(json!({"metadata": meta, "spec": spec})).unwrap())
    };
    let reserved = json!({"claimRef": {"name": "data", "namespace": "default"}});
    let bound = |policy: &str| {
        json!({"claimRef": {"name": "data", "namespace": "default", "uid": "1"},
        "persistentVolumeReclaimPolicy": policy, "csi": {"driver": "d", "volumeHandle": "h"}})
    };
    let (none, provisioned) = (json!({}), json!({volume_facts::PROVISIONED_BY: "example.com/disk"}));
    for (annotations, spec, claim, expected) in [
        (&none, json!({}), None, VolumePlan::SetPhase("Available")),
        (&none, reserved.clone(), None, VolumePlan::SetPhase("Available")),
        (&none, reserved, claim(json!({})), VolumePlan::SetPhase("Available")),
        (&none, bound("Retain"), claim(json!({})), VolumePlan::WaitForClaim),
        (&none, bound("Retain"), claim(json!({"volumeMode": "Block"})), VolumePlan::ReportMode),
        (&none, bound("Retain"), claim(json!({"volumeName": "pv"})), VolumePlan::SetPhase("Bound")),
        (&none, bound("Retain"), None, VolumePlan::Release(Reclaim::Keep)),
        (&provisioned, bound("Delete"), None, VolumePlan::Release(Reclaim::LeaveToProvisioner)),
        (&none, bound("Retain"), claim(json!({"volumeName": "other"})), VolumePlan::Unbind),
        (&none, bound("Delete"), claim(json!({"volumeName": "other"})), VolumePlan::Unbind),
        (&provisioned, bound("Retain"), claim(json!({"volumeName": "other"})), VolumePlan::Unbind),
        (
            &provisioned,
            bound("Delete"),
            claim(json!({"volumeName": "other"})),
            VolumePlan::Release(Reclaim::LeaveToProvisioner),
        ),
    ] {
        let volume = volume(annotations, &spec);
        assert_eq!(plan(&volume, claim.as_ref()), expected, "{volume:?} {claim:?}");
    }
}

#[test]
fn the_policy_decides_about_a_volume_whose_claim_is_gone() {
    let by = |name: &str| json!({volume_facts::PROVISIONED_BY: name});
    let host = |path: &str| json!({"hostPath": {"path": path}});
    let fails = |reason, message: &str| Reclaim::Fail { reason, message: message.to_owned() };
    let csi = json!({"csi": {"driver": "d", "volumeHandle": "h"}});
    for (policy, annotations, source, expected) in [
        ("Retain", by("example.com/disk"), csi.clone(), Reclaim::Keep),
        ("Delete", by("example.com/disk"), host("/data"), Reclaim::LeaveToProvisioner),
        ("Delete", json!({}), csi, Reclaim::LeaveToProvisioner),
        ("Delete", json!({}), host("/tmp/disk"), Reclaim::Delete),
        (
            "Delete",
            json!({}),
            host("/tmp/"),
            fails(
                "VolumeFailedDelete",
                "host_path deleter only supports /tmp/.+ but received provided /tmp/",
            ),
        ),
        (
            "Delete",
            json!({}),
            json!({"nfs": {"path": "/", "server": "s"}}),
            fails(
                "VolumeFailedDelete",
                "error getting deleter volume plugin for volume \"pv\": no deletable volume plugin matched",
            ),
        ),
        (
            "Delete",
            json!({}),
            json!({"local": {"path": "/"}}),
            fails(
                "VolumeFailedDelete",
                "error getting deleter volume plugin for volume \"pv\": no volume plugin matched",
            ),
        ),
        (
            "Recycle",
            json!({}),
            host("/tmp/x"),
            fails("VolumeFailedRecycle", "No recycler plugin found for the volume!"),
        ),
        (
            "Burn",
            json!({}),
            host("/tmp/x"),
            fails("VolumeUnknownReclaimPolicy", "Volume has unrecognized PersistentVolumeReclaimPolicy"),
        ),
    ] {
        let mut spec = source;
        spec["persistentVolumeReclaimPolicy"] = json!(policy);
        let volume = volume(&annotations, &spec);
        assert_eq!(reclaim::plan(&volume), expected, "{volume:?}");
    }
}
