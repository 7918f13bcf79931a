//! The volume that is made for a claim.

use super::PROVISIONER;
use k8s_openapi::{
    api::{
        core::v1::{
            CSIPersistentVolumeSource, Node, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm,
            ObjectReference, PersistentVolume, PersistentVolumeClaim, PersistentVolumeSpec,
            VolumeNodeAffinity,
        },
        storage::v1::StorageClass,
    },
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use kube::{Resource, ResourceExt};

/// Kubernetes: names the maker of the volume.
pub(super) const PROVISIONED_BY: &str = "pv.kubernetes.io/provisioned-by";
/// Kubernetes: keeps the volume until its provisioner has deleted the storage.
pub(super) const FINALIZER: &str = "external-provisioner.volume.kubernetes.io/finalizer";
const ZONE: &str = "topology.kubernetes.io/zone";
const FILE_SYSTEM: &str = "csi.storage.k8s.io/fstype";

/// The name depends on the claim alone: however often it is tried, a claim gets one volume.
pub(super) fn name(claim: &PersistentVolumeClaim) -> String {
    format!("pvc-{}", claim.uid().unwrap_or_default())
}

/// A volume of the claim's size that is bound to it. As a disk of a cloud, it stays in the zone of the node.
pub(super) fn new_volume(
    claim: &PersistentVolumeClaim,
    class: &StorageClass,
    node: Option<&Node>,
) -> PersistentVolume {
    let wanted = claim.spec.clone().unwrap_or_default();
    let requests = wanted.resources.and_then(|resources| resources.requests).unwrap_or_default();
    let policy = class.reclaim_policy.clone().unwrap_or_else(|| "Delete".to_owned());
    let metadata = ObjectMeta {
        name: Some(name(claim)),
        annotations: Some([(PROVISIONED_BY.to_owned(), PROVISIONER.to_owned())].into()),
        finalizers: (policy == "Delete").then(|| vec![FINALIZER.to_owned()]),
        ..ObjectMeta::default()
    };
    let parameters = class.parameters.as_ref();
    let source = CSIPersistentVolumeSource {
        driver: PROVISIONER.to_owned(),
        volume_handle: name(claim),
        fs_type: parameters.and_then(|it| it.get(FILE_SYSTEM)).cloned(),
        ..CSIPersistentVolumeSource::default()
    };
    let claim_ref = ObjectReference { resource_version: claim.resource_version(), ..claim.object_ref(&()) };
    let spec = PersistentVolumeSpec {
        access_modes: wanted.access_modes,
        capacity: Some(requests.into_iter().filter(|(name, _)| name == "storage").collect()),
        claim_ref: Some(claim_ref),
        csi: Some(source),
        mount_options: class.mount_options.clone(),
        node_affinity: node.and_then(zone_of),
        persistent_volume_reclaim_policy: Some(policy),
        storage_class_name: Some(class.name_any()),
        volume_attributes_class_name: wanted.volume_attributes_class_name,
        volume_mode: wanted.volume_mode,
        ..PersistentVolumeSpec::default()
    };
    PersistentVolume { metadata, spec: Some(spec), status: None }
}

fn zone_of(node: &Node) -> Option<VolumeNodeAffinity> {
    let zone = node.labels().get(ZONE)?;
    let requirement = NodeSelectorRequirement {
        key: ZONE.to_owned(),
        operator: "In".to_owned(),
        values: Some(vec![zone.clone()]),
    };
    let term = NodeSelectorTerm { match_expressions: Some(vec![requirement]), match_fields: None };
    Some(VolumeNodeAffinity { required: Some(NodeSelector { node_selector_terms: vec![term] }) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_volume_is_as_its_claim_and_class_ask() {
        let claim = json!({"metadata": {"name": "data", "namespace": "default", "uid": "1", "resourceVersion": "7"},
            "spec": {"accessModes": ["ReadWriteOnce"], "volumeMode": "Block", "resources": {"requests": {
                "storage": "5Gi", "other": "1"}}}});
        let claim: PersistentVolumeClaim = serde_json::from_value(claim).unwrap();
        let node = json!({"metadata": {"name": "node-0", "labels": {ZONE: "a"}}});
        let node: Node = serde_json::from_value(node).unwrap();
        for (policy, finalizers) in [("Delete", json!([FINALIZER])), ("Retain", json!(null))] {
            let class = json!({"metadata": {"name": "c"}, "provisioner": PROVISIONER, "reclaimPolicy": policy,
                "mountOptions": ["ro"], "parameters": {FILE_SYSTEM: "xfs"}});
            let class: StorageClass = serde_json::from_value(class).unwrap();
            let mut volume = serde_json::to_value(new_volume(&claim, &class, Some(&node))).unwrap();
            assert_eq!(volume["metadata"]["finalizers"].take(), finalizers);
            let expected = json!({"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "5Gi"},
                "claimRef": {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": "default",
                    "name": "data", "uid": "1", "resourceVersion": "7"},
                "csi": {"driver": PROVISIONER, "volumeHandle": "pvc-1", "fsType": "xfs"},
                "mountOptions": ["ro"], "persistentVolumeReclaimPolicy": policy, "storageClassName": "c",
                "nodeAffinity": {"required": {"nodeSelectorTerms": [
                    {"matchExpressions": [{"key": ZONE, "operator": "In", "values": ["a"]}]}]}},
                "volumeMode": "Block"});
            assert_eq!(volume["spec"], expected);
            assert_eq!(volume["metadata"]["name"], "pvc-1");
        }
    }
}
