//! Simulated storage, with all control loops and the scheduler.

use super::{CLASS, PROVISIONER, annotation, claim, claim_state, grow, pod, volume_state, volumes};
use crate::rig;
use k8s_openapi::api::{
    apps::v1::StatefulSet,
    core::v1::{Namespace, Node, PersistentVolume, PersistentVolumeClaim, Pod},
    storage::v1::StorageClass,
};
use kube::ResourceExt;
use serde_json::{Value, json};
use std::time::Duration;
use testkit::Cluster;

fn set(more: &str) -> String {
    format!(
        "{{apiVersion: apps/v1, kind: StatefulSet, metadata: {{name: db}}, spec: {{replicas: 3, serviceName: db, {more}
           selector: {{matchLabels: {{app: db}}}}, template: {{metadata: {{labels: {{app: db}}}}, spec: {{
             containers: [{{name: c, image: postgres, volumeMounts: [{{name: data, mountPath: /data}}]}}]}}}},
           volumeClaimTemplates: [{{metadata: {{name: data}}, spec: {{
             accessModes: [ReadWriteOnce], resources: {{requests: {{storage: 1Gi}}}}}}}}]}}}}"
    )
}

async fn ready(cluster: &Cluster) -> Option<i32> {
    cluster.get::<StatefulSet>("default", "db").await.status.unwrap().ready_replicas
}

#[test]
fn beside_all_other_loops_a_claim_tells_which_pod_it_waits_for() {
    testkit::run(|cluster| async move {
        let _running = cluster.control_plane().nodes(1).start();
        cluster.settle().await;
        claim(&cluster, "data", "1Gi", "").await;
        cluster.settle().await;
        let waits = "WaitForFirstConsumer: waiting for first consumer to be created before binding";
        assert_eq!(rig::events(&cluster, "PersistentVolumeClaim", "data").await, [waits]);
        // No node has the label.
        let pod = "{apiVersion: v1, kind: Pod, metadata: {name: web}, spec: {nodeSelector: {disk: ssd}, \
            containers: [{name: c, image: nginx}], volumes: [{name: v, persistentVolumeClaim: {claimName: data}}]}}";
        cluster.apply(pod).await;
        cluster.settle().await;
        let events = rig::events(&cluster, "PersistentVolumeClaim", "data").await;
        assert_eq!(events, [waits, "WaitForPodScheduled: waiting for pod web to be scheduled"]);
    });
}

#[test]
fn beside_all_other_loops_a_deleted_claim_of_an_ephemeral_volume_is_made_again() {
    testkit::run(|cluster| async move {
        let _running = cluster.control_plane().nodes(1).start();
        cluster.settle().await;
        // No node has the label: no pod on a node holds up the deletion of the claim.
        let pod = "{apiVersion: v1, kind: Pod, metadata: {name: web}, spec: {nodeSelector: {disk: ssd}, \
            containers: [{name: c, image: nginx}], volumes: [{name: v, ephemeral: {volumeClaimTemplate: {spec: { \
            accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}}}]}}";
        cluster.apply(pod).await;
        cluster.settle().await;
        let before: PersistentVolumeClaim = cluster.get("default", "web-v").await;
        cluster.delete::<PersistentVolumeClaim>("default", "web-v").await;
        cluster.settle().await;
        let after: PersistentVolumeClaim = cluster.get("default", "web-v").await;
        assert_ne!(before.uid(), after.uid());
    });
}

#[test]
fn a_stateful_set_with_claims_becomes_ready() {
    testkit::run(|cluster| async move {
        let _running = cluster.control_plane().nodes(2).start();
        cluster.settle().await;
        let start = cluster.world().now();
        cluster.apply(&set("")).await;
        cluster.settle().await;
        assert_eq!(ready(&cluster).await, Some(3));
        let took = cluster.world().now().since(start);
        assert!(took < Duration::from_secs(1), "no pod waits for a pause of the scheduler: {took:?}");
        for ordinal in 0..3 {
            let name = format!("data-db-{ordinal}");
            let claim: PersistentVolumeClaim = cluster.get("default", &name).await;
            let volume = format!("pvc-{}", claim.uid().unwrap());
            assert_eq!(claim_state(&cluster, &name).await, format!("Bound {volume}"));
            assert_eq!(volume_state(&cluster, &volume).await, format!("Bound {name}"));
            let pod: Pod = cluster.get("default", &format!("db-{ordinal}")).await;
            let node = pod.spec.unwrap().node_name;
            assert_eq!(Some(annotation(&cluster, &name, "volume.kubernetes.io/selected-node").await), node);
            let volume: PersistentVolume = cluster.get(None, &volume).await;
            assert_eq!(
                volume.finalizers(),
                ["external-provisioner.volume.kubernetes.io/finalizer", "kubernetes.io/pv-protection"]
            );
            let reasons: Vec<String> = rig::events(&cluster, "PersistentVolumeClaim", &name).await;
            let reasons: Vec<&str> = reasons.iter().map(|event| event.split(':').next().unwrap()).collect();
            for reason in ["ExternalProvisioning", "Provisioning", "ProvisioningSucceeded"] {
                assert!(reasons.contains(&reason), "{reason} in {reasons:?}");
            }
        }
        // Nothing is left to do but heartbeats.
        let quiet = async || {
            let mut claims = cluster.list::<PersistentVolumeClaim>("default").await;
            claims.iter_mut().map(|claim| claim.resource_version()).collect::<Vec<_>>()
        };
        let before = quiet().await;
        cluster.advance(Duration::from_secs(300)).await;
        assert_eq!(quiet().await, before);
    });
}

#[test]
fn claims_and_volumes_go_with_the_set_if_its_policy_says_so() {
    testkit::run(|cluster| async move {
        let _running = cluster.control_plane().start();
        let policy = "persistentVolumeClaimRetentionPolicy: {whenDeleted: Delete, whenScaled: Delete},";
        cluster.apply(&set(policy)).await;
        cluster.settle().await;
        assert_eq!(volumes(&cluster).await.len(), 3);
        cluster.patch::<StatefulSet>("default", "db", &json!({"spec": {"replicas": 1}})).await;
        cluster.settle().await;
        assert_eq!(cluster.list::<PersistentVolumeClaim>("default").await.len(), 1);
        assert_eq!(volumes(&cluster).await.len(), 1);
        cluster.patch::<StatefulSet>("default", "db", &json!({"spec": {"replicas": 2}})).await;
        cluster.settle().await;
        assert_eq!(ready(&cluster).await, Some(2));
        cluster.delete::<StatefulSet>("default", "db").await;
        cluster.settle().await;
        assert!(cluster.list::<Pod>("default").await.is_empty());
        assert!(cluster.list::<PersistentVolumeClaim>("default").await.is_empty());
        assert!(volumes(&cluster).await.is_empty());
    });
}

#[test]
fn claims_outlive_the_set_and_come_back_to_it() {
    testkit::run(|cluster| async move {
        let _running = cluster.control_plane().start();
        cluster.apply(&set("")).await;
        cluster.settle().await;
        let before = volumes(&cluster).await;
        cluster.delete::<StatefulSet>("default", "db").await;
        cluster.settle().await;
        assert!(cluster.list::<Pod>("default").await.is_empty());
        assert_eq!(volumes(&cluster).await, before);
        cluster.apply(&set("")).await;
        cluster.settle().await;
        assert_eq!(ready(&cluster).await, Some(3));
        assert_eq!(volumes(&cluster).await, before);
    });
}

#[test]
fn a_class_that_does_not_wait_gets_its_volume_at_once() {
    testkit::run(|cluster| async move {
        let _running = cluster.control_plane().start();
        let class = format!(
            "{{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {{name: now}}, provisioner: {},
               reclaimPolicy: Retain}}",
            PROVISIONER
        );
        cluster.apply(&class).await;
        claim(&cluster, "data", "1Gi", "storageClassName: now").await;
        cluster.settle().await;
        let volume = volumes(&cluster).await.remove(0);
        assert_eq!(claim_state(&cluster, "data").await, format!("Bound {volume}"));
        cluster.delete::<PersistentVolumeClaim>("default", "data").await;
        cluster.settle().await;
        assert_eq!(volume_state(&cluster, &volume).await, "Released data");
        // From now on it may go.
        let policy = json!({"spec": {"persistentVolumeReclaimPolicy": "Delete"}});
        cluster.patch::<PersistentVolume>(None, &volume, &policy).await;
        cluster.settle().await;
        assert!(volumes(&cluster).await.is_empty());
    });
}

#[test]
fn a_bound_claim_grows() {
    testkit::run(|cluster| async move {
        let _running = cluster.control_plane().start();
        claim(&cluster, "data", "1Gi", "").await;
        pod(&cluster, "web", "data").await;
        cluster.settle().await;
        grow(&cluster, "data", "3Gi").await;
        cluster.settle().await;
        let claim: PersistentVolumeClaim = cluster.get("default", "data").await;
        assert_eq!(claim.status.unwrap().capacity.unwrap()["storage"].0, "3Gi");
        let volume: PersistentVolume = cluster.get(None, &claim.spec.unwrap().volume_name.unwrap()).await;
        assert_eq!(volume.spec.unwrap().capacity.unwrap()["storage"].0, "3Gi");
        let events = rig::events(&cluster, "PersistentVolumeClaim", "data").await;
        let expected = [
            "ExternalExpanding: waiting for an external controller to expand this PVC",
            "VolumeResizeSuccessful: Resize volume succeeded",
        ];
        for text in expected {
            assert!(events.iter().any(|event| event == text), "{text} in {events:?}");
        }
    });
}

#[test]
fn the_default_class_is_created_at_the_start_and_not_restored() {
    testkit::run(|cluster| async move {
        let running = cluster.control_plane().start();
        cluster.settle().await;
        let class: StorageClass = cluster.get(None, CLASS).await;
        assert_eq!(class.annotations()["storageclass.kubernetes.io/is-default-class"], "true");
        let own = "{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: own}, provisioner: example.com/d}";
        cluster.apply(own).await;
        cluster.delete::<StorageClass>(None, CLASS).await;
        cluster.settle().await;
        assert!(cluster.find::<StorageClass>(None, CLASS).await.is_none());
        drop(running);
        let _running = cluster.control_plane().start();
        cluster.settle().await;
        assert!(cluster.find::<StorageClass>(None, CLASS).await.is_none(), "there is another class");
    });
}

#[test]
fn a_volume_keeps_its_pods_in_its_zone() {
    testkit::run(|cluster| async move {
        let _running = cluster.control_plane().nodes(2).start();
        cluster.settle().await;
        for (node, zone) in [("node-0", "a"), ("node-1", "b")] {
            let labels = json!({"metadata": {"labels": {"topology.kubernetes.io/zone": zone}}});
            cluster.patch::<Node>(None, node, &labels).await;
        }
        cluster.settle().await;
        claim(&cluster, "data", "1Gi", "").await;
        pod(&cluster, "first", "data").await;
        cluster.settle().await;
        let node_of = async |name: &str| cluster.get::<Pod>("default", name).await.spec.unwrap().node_name;
        let first = node_of("first").await;
        for number in 0..4 {
            let name = format!("later-{number}");
            pod(&cluster, &name, "data").await;
            cluster.settle().await;
            assert_eq!(node_of(&name).await, first);
        }
        let cordon = json!({"spec": {"unschedulable": true}});
        cluster.patch::<Node>(None, first.as_deref().unwrap(), &cordon).await;
        cluster.settle().await;
        pod(&cluster, "stuck", "data").await;
        cluster.settle().await;
        assert_eq!(node_of("stuck").await, None);
        let events = cluster.list::<k8s_openapi::api::events::v1::Event>("default").await;
        let note =
            events.iter().filter_map(|event| event.note.clone()).find(|note| note.contains("node affinity"));
        assert!(note.unwrap().contains("1 node(s) didn't match PersistentVolume's node affinity"));
    });
}

#[test]
fn a_claim_for_a_node_that_is_gone_gets_another_node() {
    testkit::run(|cluster| async move {
        let _running = cluster.control_plane().start();
        let claim = json!({"metadata": {"name": "data", "namespace": "default", "annotations": {
            "volume.kubernetes.io/selected-node": "gone"}}, "spec": {"accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}}}});
        cluster.create::<PersistentVolumeClaim>(&serde_json::from_value::<_>(claim).unwrap()).await;
        pod(&cluster, "web", "data").await;
        cluster.settle().await;
        assert!(claim_state(&cluster, "data").await.starts_with("Bound"));
        let web: Pod = cluster.get("default", "web").await;
        let status: Value = serde_json::to_value(web.status).unwrap();
        assert_eq!(status["phase"], "Running");
    });
}

#[test]
fn a_set_that_is_created_before_the_default_class_becomes_ready_as_well() {
    testkit::run(|cluster| async move {
        cluster.apply(&set("")).await;
        let _running = cluster.control_plane().start();
        cluster.settle().await;
        assert_eq!(ready(&cluster).await, Some(3));
    });
}

#[test]
fn one_pod_at_a_time_has_a_claim_for_one_pod() {
    testkit::run(|cluster| async move {
        let _running = cluster.control_plane().nodes(2).start();
        cluster
            .apply(
                "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data}, spec: {
                   accessModes: [ReadWriteOncePod], resources: {requests: {storage: 1Gi}}}}",
            )
            .await;
        pod(&cluster, "first", "data").await;
        cluster.settle().await;
        pod(&cluster, "second", "data").await;
        cluster.settle().await;
        let phase =
            async |name: &str| cluster.get::<Pod>("default", name).await.status.unwrap().phase.unwrap();
        assert_eq!(
            (phase("first").await, phase("second").await),
            ("Running".to_owned(), "Pending".to_owned())
        );
        let second: Pod = cluster.get("default", "second").await;
        let message = second.status.unwrap().conditions.unwrap().remove(0).message.unwrap();
        let reason =
            "2 node has pod using PersistentVolumeClaim with the same name and ReadWriteOncePod access mode";
        assert!(message.contains(reason), "{message}");
        cluster.delete::<Pod>("default", "first").await;
        cluster.settle().await;
        assert_eq!(phase("second").await, "Running");
    });
}

#[test]
fn many_claims_at_once_cost_a_few_requests_each() {
    const REPLICAS: usize = 100;
    testkit::simulate(1, |cluster| async move {
        let _running = cluster.control_plane().start();
        cluster.settle().await;
        let requests = || {
            let trace = cluster.trace();
            trace.forgotten + trace.entries.len() as u64
        };
        let before = requests();
        cluster.apply(&set("podManagementPolicy: Parallel,").replace("replicas: 3", "replicas: 100")).await;
        cluster.settle().await;
        assert_eq!(ready(&cluster).await, Some(100));
        let each = (requests() - before) as usize / REPLICAS;
        // Claim and pod; node, provisioner and volume of the claim; phases of both; binding, statuses; ten events.
        assert!(each <= 30, "{each} requests for each claim");
    });
}

#[test]
fn a_namespace_takes_its_claims_and_their_volumes_along() {
    testkit::run(|cluster| async move {
        let _running = cluster.control_plane().start();
        cluster.apply("{apiVersion: v1, kind: Namespace, metadata: {name: shop}}").await;
        cluster
            .apply(&set("").replace("metadata: {name: db}", "metadata: {name: db, namespace: shop}"))
            .await;
        cluster.settle().await;
        assert_eq!(volumes(&cluster).await.len(), 3);
        cluster.delete::<Namespace>(None, "shop").await;
        // The namespace controller looks again after a pause while content is left.
        cluster.advance(Duration::from_secs(60)).await;
        assert!(cluster.find::<Namespace>(None, "shop").await.is_none());
        assert!(volumes(&cluster).await.is_empty());
    });
}

#[test]
fn local_volumes_are_taken_on_the_node_of_the_pod() {
    testkit::run(|cluster| async move {
        let _running = cluster.control_plane().nodes(2).start();
        let class = "{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: local},
            provisioner: kubernetes.io/no-provisioner, volumeBindingMode: WaitForFirstConsumer}";
        cluster.apply(class).await;
        for node in ["node-0", "node-1"] {
            let volume = format!(
                "{{apiVersion: v1, kind: PersistentVolume, metadata: {{name: on-{node}}}, spec: {{
                   storageClassName: local, accessModes: [ReadWriteOnce], capacity: {{storage: 1Gi}},
                   local: {{path: /disk}}, nodeAffinity: {{required: {{nodeSelectorTerms: [{{matchExpressions: [
                     {{key: kubernetes.io/hostname, operator: In, values: [{node}]}}]}}]}}}}}}}}"
            );
            cluster.apply(&volume).await;
        }
        claim(&cluster, "data", "1Gi", "storageClassName: local").await;
        cluster.settle().await;
        assert_eq!(claim_state(&cluster, "data").await, "Pending");
        cluster
            .apply(
                "{apiVersion: v1, kind: Pod, metadata: {name: web}, spec: {containers: [{name: c, image: nginx}],
                   nodeSelector: {kubernetes.io/hostname: node-1},
                   volumes: [{name: v, persistentVolumeClaim: {claimName: data}}]}}",
            )
            .await;
        cluster.settle().await;
        assert_eq!(claim_state(&cluster, "data").await, "Bound on-node-1");
        assert_eq!(volume_state(&cluster, "on-node-0").await, "Available");
        let web: Pod = cluster.get("default", "web").await;
        assert_eq!(web.status.unwrap().phase.as_deref(), Some("Running"));
    });
}
