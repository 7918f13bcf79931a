//! Claims and volumes that are used stay.

use super::{claim, claim_state, pod, volumes};
use k8s_openapi::api::{
    core::v1::{PersistentVolume, PersistentVolumeClaim, Pod},
    storage::v1::VolumeAttributesClass,
};
use serde_json::json;

#[test]
fn a_claim_in_use_stays_until_its_pods_are_gone() {
    testkit::run(|cluster| async move {
        let _running = cluster.control_plane().start();
        claim(&cluster, "data", "1Gi", "").await;
        pod(&cluster, "one", "data").await;
        pod(&cluster, "two", "data").await;
        cluster.settle().await;
        cluster.delete::<PersistentVolumeClaim>("default", "data").await;
        cluster.settle().await;
        assert!(claim_state(&cluster, "data").await.starts_with("Bound"));
        // No further pod gets it.
        pod(&cluster, "late", "data").await;
        cluster.settle().await;
        let late: Pod = cluster.get("default", "late").await;
        assert_eq!(late.spec.unwrap().node_name, None);
        cluster.delete::<Pod>("default", "one").await;
        cluster.settle().await;
        assert!(cluster.find::<PersistentVolumeClaim>("default", "data").await.is_some());
        cluster.delete::<Pod>("default", "two").await;
        cluster.settle().await;
        assert!(cluster.find::<PersistentVolumeClaim>("default", "data").await.is_none());
        assert!(volumes(&cluster).await.is_empty());
    });
}

#[test]
fn a_volume_in_use_stays_until_its_claim_is_gone() {
    testkit::run(|cluster| async move {
        let _running = cluster.control_plane().start();
        claim(&cluster, "data", "1Gi", "").await;
        pod(&cluster, "web", "data").await;
        cluster.settle().await;
        let name = volumes(&cluster).await.remove(0);
        cluster.delete::<PersistentVolume>(None, &name).await;
        cluster.settle().await;
        assert_eq!(claim_state(&cluster, "data").await, format!("Bound {name}"));
        cluster.delete::<Pod>("default", "web").await;
        cluster.delete::<PersistentVolumeClaim>("default", "data").await;
        cluster.settle().await;
        assert!(volumes(&cluster).await.is_empty());
    });
}

#[test]
fn finalizers_that_were_removed_come_back() {
    testkit::run(|cluster| async move {
        let _running = cluster.control_plane().start();
        claim(&cluster, "data", "1Gi", "").await;
        cluster.settle().await;
        let none = json!({"metadata": {"finalizers": null}});
        cluster.patch::<PersistentVolumeClaim>("default", "data", &none).await;
        cluster.settle().await;
        let claim: PersistentVolumeClaim = cluster.get("default", "data").await;
        assert_eq!(claim.metadata.finalizers.unwrap(), ["kubernetes.io/pvc-protection"]);
    });
}

#[test]
fn a_class_of_attributes_stays_while_a_claim_names_it() {
    testkit::run(|cluster| async move {
        let _running = cluster.control_plane().start();
        let class = "{apiVersion: storage.k8s.io/v1, kind: VolumeAttributesClass, metadata: {name: gold},
            driverName: example.com, parameters: {iops: '9'}}";
        cluster.apply(class).await;
        claim(&cluster, "data", "1Gi", "volumeAttributesClassName: gold").await;
        cluster.settle().await;
        cluster.delete::<VolumeAttributesClass>(None, "gold").await;
        cluster.settle().await;
        assert!(cluster.find::<VolumeAttributesClass>(None, "gold").await.is_some());
        cluster.delete::<PersistentVolumeClaim>("default", "data").await;
        cluster.settle().await;
        assert!(cluster.find::<VolumeAttributesClass>(None, "gold").await.is_none());
    });
}
