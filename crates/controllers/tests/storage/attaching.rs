//! Volumes of drivers that attach them.

use super::{claim, claim_state, pod, volumes};
use k8s_openapi::api::{
    core::v1::{Node, Pod},
    storage::v1::{CSIDriver, VolumeAttachment},
};
use serde_json::json;

#[test]
fn the_volume_of_a_driver_that_attaches_gets_an_attachment_while_a_pod_uses_it() {
    testkit::run(|cluster| async move {
        let _running = cluster.control_plane().start();
        cluster
            .apply(
                "{apiVersion: v1, kind: PersistentVolume, metadata: {name: disk}, spec: {accessModes: [ReadWriteOnce],
                   capacity: {storage: 1Gi}, csi: {driver: example.com, volumeHandle: vol-1}}}",
            )
            .await;
        claim(&cluster, "data", "1Gi", "storageClassName: ''").await;
        pod(&cluster, "web", "data").await;
        cluster.settle().await;
        assert_eq!(claim_state(&cluster, "data").await, "Bound disk");
        let attachments: Vec<VolumeAttachment> = cluster.list(None).await;
        let [attachment] = attachments.as_slice() else { panic!("{attachments:?}") };
        let spec = json!({"attacher": "example.com", "nodeName": "node-0", "source": {"persistentVolumeName": "disk"}});
        assert_eq!(serde_json::to_value(&attachment.spec).unwrap(), spec);
        let attached = async || {
            let node: Node = cluster.get(None, "node-0").await;
            let volumes = node.status.unwrap().volumes_attached.unwrap_or_default();
            volumes.into_iter().map(|volume| volume.name).collect::<Vec<_>>()
        };
        assert!(attached().await.is_empty());
        let name = attachment.metadata.name.clone().unwrap();
        cluster.patch_status::<VolumeAttachment>(None, &name, &json!({"status": {"attached": true}})).await;
        cluster.settle().await;
        assert_eq!(attached().await, ["kubernetes.io/csi/example.com^vol-1"]);
        cluster.delete::<Pod>("default", "web").await;
        cluster.settle().await;
        assert!(cluster.list::<VolumeAttachment>(None).await.is_empty());
        assert!(attached().await.is_empty());
    });
}

#[test]
fn simulated_volumes_are_not_attached() {
    testkit::run(|cluster| async move {
        let _running = cluster.control_plane().start();
        claim(&cluster, "data", "1Gi", "").await;
        pod(&cluster, "web", "data").await;
        cluster.settle().await;
        assert_eq!(volumes(&cluster).await.len(), 1);
        assert_eq!(cluster.list::<CSIDriver>(None).await.len(), 1);
        assert!(cluster.list::<VolumeAttachment>(None).await.is_empty());
    });
}
