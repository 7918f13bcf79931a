//! Generic ephemeral volumes.

use super::{claim, volumes};
use crate::rig;
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use kube::ResourceExt;

const POD: &str =
    "{apiVersion: v1, kind: Pod, metadata: {name: web}, spec: {containers: [{name: c, image: nginx}],
    volumes: [{name: scratch, ephemeral: {volumeClaimTemplate: {metadata: {labels: {kind: scratch}}, spec: {
      accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}}}]}}";

async fn phase(cluster: &testkit::Cluster) -> String {
    cluster.get::<Pod>("default", "web").await.status.unwrap().phase.unwrap()
}

#[test]
fn a_pod_gets_a_claim_for_its_ephemeral_volume_and_takes_it_along() {
    testkit::run(|cluster| async move {
        let _running = cluster.control_plane().start();
        cluster.apply(POD).await;
        cluster.settle().await;
        assert_eq!(phase(&cluster).await, "Running");
        let claim: PersistentVolumeClaim = cluster.get("default", "web-scratch").await;
        assert_eq!(claim.labels()["kind"], "scratch");
        let owner = &claim.owner_references()[0];
        assert_eq!((owner.kind.as_str(), owner.name.as_str(), owner.controller), ("Pod", "web", Some(true)));
        assert_eq!(volumes(&cluster).await.len(), 1);
        cluster.delete::<Pod>("default", "web").await;
        cluster.settle().await;
        assert!(cluster.find::<PersistentVolumeClaim>("default", "web-scratch").await.is_none());
        assert!(volumes(&cluster).await.is_empty());
    });
}

#[test]
fn a_claim_of_the_same_name_that_is_not_the_pods_is_left_alone() {
    testkit::run(|cluster| async move {
        let _running = cluster.control_plane().start();
        claim(&cluster, "web-scratch", "1Gi", "").await;
        cluster.apply(POD).await;
        cluster.settle().await;
        assert_eq!(phase(&cluster).await, "Pending");
        let text = "FailedBinding: ephemeral volume scratch: PVC default/web-scratch was not created for pod default/web \
            (pod is not owner)";
        let events = rig::events(&cluster, "Pod", "web").await;
        assert!(events.iter().any(|event| event == text), "{events:?}");
        cluster.delete::<PersistentVolumeClaim>("default", "web-scratch").await;
        cluster.settle().await;
        assert_eq!(phase(&cluster).await, "Running");
    });
}
