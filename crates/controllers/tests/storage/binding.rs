//! Claims and volumes that users have made, without a provisioner.

use super::{annotation, claim, claim_state, pod, volume, volume_state, volumes};
use crate::rig;
use k8s_openapi::api::{
    core::v1::{PersistentVolume, PersistentVolumeClaim},
    storage::v1::StorageClass,
};
use kube::ResourceExt;
use serde_json::json;

const BINDER: &[&str] = &[
    "persistentvolume-binder-controller",
    "persistentvolume-protection-controller",
    "persistentvolumeclaim-protection-controller",
];

#[test]
fn a_claim_gets_the_smallest_volume_and_says_so() {
    testkit::run(|cluster| async move {
        let _running = rig::start(&cluster, BINDER);
        claim(&cluster, "data", "5Gi", "").await;
        cluster.settle().await;
        assert_eq!(claim_state(&cluster, "data").await, "Pending");
        let text =
            "FailedBinding: no persistent volumes available for this claim and no storage class is set";
        assert_eq!(rig::events(&cluster, "PersistentVolumeClaim", "data").await, [text]);
        volume(&cluster, "tiny", "1Gi", "").await;
        volume(&cluster, "other-class", "5Gi", "storageClassName: x").await;
        volume(&cluster, "fits", "6Gi", "").await;
        cluster.settle().await;
        assert_eq!(claim_state(&cluster, "data").await, "Bound fits");
        assert_eq!(volume_state(&cluster, "fits").await, "Bound data");
        assert_eq!(volume_state(&cluster, "tiny").await, "Available");
        let bound: PersistentVolumeClaim = cluster.get("default", "data").await;
        let annotations =
            json!({"pv.kubernetes.io/bind-completed": "yes", "pv.kubernetes.io/bound-by-controller": "yes"});
        assert_eq!(json!(bound.annotations()), annotations);
        let expected =
            json!({"phase": "Bound", "accessModes": ["ReadWriteOnce"], "capacity": {"storage": "6Gi"}});
        assert_eq!(serde_json::to_value(bound.status).unwrap(), expected);
        let fits: PersistentVolume = cluster.get(None, "fits").await;
        assert_eq!(json!(fits.annotations()), json!({"pv.kubernetes.io/bound-by-controller": "yes"}));
        assert_eq!(fits.finalizers(), ["kubernetes.io/pv-protection"]);
        // Nothing is left to do.
        let revision = cluster.revision().await;
        cluster.advance(std::time::Duration::from_secs(3600)).await;
        assert_eq!(cluster.revision().await, revision);
    });
}

#[test]
fn users_reserve_volumes_from_either_side() {
    testkit::run(|cluster| async move {
        let _running = rig::start(&cluster, BINDER);
        volume(&cluster, "for-a", "50Gi", "claimRef: {namespace: default, name: a}").await;
        volume(&cluster, "small", "1Gi", "").await;
        volume(&cluster, "wanted", "50Gi", "").await;
        cluster.settle().await;
        assert_eq!(volume_state(&cluster, "for-a").await, "Available a");
        claim(&cluster, "a", "1Gi", "").await;
        claim(&cluster, "b", "1Gi", "volumeName: wanted").await;
        claim(&cluster, "c", "1Gi", "volumeName: for-a").await;
        claim(&cluster, "d", "2Gi", "volumeName: small").await;
        cluster.settle().await;
        assert_eq!(claim_state(&cluster, "a").await, "Bound for-a");
        assert_eq!(claim_state(&cluster, "b").await, "Bound wanted");
        assert_eq!(claim_state(&cluster, "c").await, "Pending for-a");
        assert_eq!(claim_state(&cluster, "d").await, "Pending small");
        assert_eq!(annotation(&cluster, "b", "pv.kubernetes.io/bound-by-controller").await, "");
        assert_eq!(annotation(&cluster, "b", "pv.kubernetes.io/bind-completed").await, "yes");
        let taken = "FailedBinding: volume \"for-a\" already bound to a different claim.";
        assert_eq!(rig::events(&cluster, "PersistentVolumeClaim", "c").await, [taken]);
        let small = "VolumeMismatch: Cannot bind to requested volume \"small\": requested PV is too small";
        assert_eq!(rig::events(&cluster, "PersistentVolumeClaim", "d").await, [small]);
    });
}

#[test]
fn a_volume_without_its_claim_is_kept_or_deleted_as_its_policy_says() {
    testkit::run(|cluster| async move {
        let _running = rig::start(&cluster, BINDER);
        for (name, policy) in [("kept", "Retain"), ("deleted", "Delete"), ("recycled", "Recycle")] {
            let spec = format!("persistentVolumeReclaimPolicy: {policy}");
            volume(&cluster, name, "1Gi", &spec).await;
            claim(&cluster, name, "1Gi", &format!("volumeName: {name}")).await;
        }
        cluster.settle().await;
        for name in ["kept", "deleted", "recycled"] {
            assert_eq!(claim_state(&cluster, name).await, format!("Bound {name}"));
            cluster.delete::<PersistentVolumeClaim>("default", name).await;
        }
        cluster.settle().await;
        assert!(cluster.list::<PersistentVolumeClaim>("default").await.is_empty());
        assert_eq!(volumes(&cluster).await, ["kept", "recycled"]);
        assert_eq!(volume_state(&cluster, "kept").await, "Released kept");
        assert_eq!(volume_state(&cluster, "recycled").await, "Failed recycled");
        // Another claim of the same name does not get the data of the first.
        claim(&cluster, "kept", "1Gi", "").await;
        cluster.settle().await;
        assert_eq!(claim_state(&cluster, "kept").await, "Pending");
        // An administrator gives it away again.
        cluster.patch::<PersistentVolume>(None, "kept", &json!({"spec": {"claimRef": null}})).await;
        cluster.settle().await;
        assert_eq!(claim_state(&cluster, "kept").await, "Bound kept");
    });
}

#[test]
fn a_claim_whose_volume_is_gone_is_lost() {
    testkit::run(|cluster| async move {
        let _running = rig::start(&cluster, &BINDER[..1]);
        volume(&cluster, "pv", "1Gi", "").await;
        cluster.settle().await;
        claim(&cluster, "data", "1Gi", "").await;
        cluster.settle().await;
        assert_eq!(claim_state(&cluster, "data").await, "Bound pv");
        cluster.patch::<PersistentVolume>(None, "pv", &json!({"metadata": {"finalizers": null}})).await;
        cluster.delete::<PersistentVolume>(None, "pv").await;
        cluster.settle().await;
        assert_eq!(claim_state(&cluster, "data").await, "Lost pv");
        let text = "ClaimLost: Bound claim has lost its PersistentVolume. Data on the volume is lost!";
        assert_eq!(rig::events(&cluster, "PersistentVolumeClaim", "data").await, [text]);
    });
}

#[test]
fn claims_without_a_class_get_the_default_class_when_there_is_one() {
    testkit::run(|cluster| async move {
        let _running = rig::start(&cluster, BINDER);
        claim(&cluster, "data", "1Gi", "").await;
        claim(&cluster, "none", "1Gi", "storageClassName: ''").await;
        cluster.settle().await;
        let class =
            "{apiVersion: storage.k8s.io/v1, kind: StorageClass, provisioner: example.com/disk, metadata: {
            name: fast, annotations: {storageclass.kubernetes.io/is-default-class: 'true'}}}";
        cluster.apply(class).await;
        cluster.settle().await;
        let class_of = async |name: &str| {
            let claim: PersistentVolumeClaim = cluster.get("default", name).await;
            claim.spec.unwrap().storage_class_name
        };
        assert_eq!(class_of("data").await.as_deref(), Some("fast"));
        assert_eq!(class_of("none").await.as_deref(), Some(""));
        for name in
            ["volume.kubernetes.io/storage-provisioner", "volume.beta.kubernetes.io/storage-provisioner"]
        {
            assert_eq!(annotation(&cluster, "data", name).await, "example.com/disk");
        }
        let text = "ExternalProvisioning: Waiting for a volume to be created either by the external provisioner \
            'example.com/disk' or manually by the system administrator. If volume creation is delayed, please verify \
            that the provisioner is running and correctly registered.";
        assert!(rig::events(&cluster, "PersistentVolumeClaim", "data").await.contains(&text.to_owned()));
        let class: StorageClass = cluster.get(None, "fast").await;
        assert_eq!(class.volume_binding_mode.as_deref(), Some("Immediate"));
    });
}

#[test]
fn a_claim_of_a_delayed_class_tells_what_it_waits_for() {
    testkit::run(|cluster| async move {
        let _running = rig::start(&cluster, BINDER);
        let class = "{apiVersion: storage.k8s.io/v1, kind: StorageClass, provisioner: example.com/disk,
            metadata: {name: later}, volumeBindingMode: WaitForFirstConsumer}";
        cluster.apply(class).await;
        claim(&cluster, "data", "1Gi", "storageClassName: later").await;
        cluster.settle().await;
        let first = "WaitForFirstConsumer: waiting for first consumer to be created before binding";
        assert_eq!(rig::events(&cluster, "PersistentVolumeClaim", "data").await, [first]);
        pod(&cluster, "web", "data").await;
        cluster.settle().await;
        let second = "WaitForPodScheduled: waiting for pod web to be scheduled";
        assert_eq!(rig::events(&cluster, "PersistentVolumeClaim", "data").await, [first, second]);
        assert_eq!(annotation(&cluster, "data", "volume.kubernetes.io/storage-provisioner").await, "");
        let node = json!({"metadata": {"annotations": {"volume.kubernetes.io/selected-node": "node-0"}}});
        cluster.patch::<PersistentVolumeClaim>("default", "data", &node).await;
        cluster.settle().await;
        let asked = annotation(&cluster, "data", "volume.kubernetes.io/storage-provisioner").await;
        assert_eq!(asked, "example.com/disk");
    });
}
