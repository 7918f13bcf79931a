//! ReplicaSets and ReplicationControllers.

use crate::rig;
use k8s_openapi::api::{
    apps::v1::ReplicaSet,
    core::v1::{Pod, ReplicationController},
};
use kube::ResourceExt;
use serde_json::json;
use std::time::Duration;
use testkit::Fault;

const SET: &str = "
apiVersion: apps/v1
kind: ReplicaSet
metadata: {name: web}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template: {metadata: {labels: {app: web}}, spec: {containers: [{name: c, image: nginx}]}}
";

const CONTROLLER: &str = "
apiVersion: v1
kind: ReplicationController
metadata: {name: old}
spec:
  replicas: 2
  selector: {app: old}
  template: {metadata: {labels: {app: old}}, spec: {containers: [{name: c, image: nginx}]}}
";

#[test]
fn a_replica_set_has_as_many_pods_as_it_wants() {
    testkit::run(|cluster| async move {
        let _running = rig::start(&cluster, &["replicaset-controller", "replicationcontroller-controller"]);
        cluster.apply(SET).await;
        cluster.apply(CONTROLLER).await;
        cluster.settle().await;
        let pods: Vec<Pod> = cluster.list("default").await;
        assert_eq!(pods.len(), 5);
        assert!(pods.iter().all(|pod| pod.owner_references()[0].controller == Some(true)));
        let set: ReplicaSet = cluster.get("default", "web").await;
        assert_eq!(set.status.unwrap().replicas, 3);
        let old: ReplicationController = cluster.get("default", "old").await;
        assert_eq!(old.status.unwrap().replicas, 2);
        cluster.patch::<ReplicaSet>("default", "web", &json!({"spec": {"replicas": 1}})).await;
        cluster.settle().await;
        let pods: Vec<Pod> = cluster.list("default").await;
        // Without a node the deletion of a pod takes effect at once.
        assert_eq!(pods.len(), 3);
    });
}

#[test]
fn orphans_that_match_are_adopted_and_children_that_do_not_are_released() {
    testkit::run(|cluster| async move {
        let _running = rig::start(&cluster, &["replicaset-controller"]);
        cluster
            .apply("{apiVersion: v1, kind: Pod, metadata: {name: lone, labels: {app: web}}, spec: {containers: [{name: c, image: nginx}]}}")
            .await;
        cluster.apply(SET).await;
        cluster.settle().await;
        let lone: Pod = cluster.get("default", "lone").await;
        assert_eq!(lone.owner_references().len(), 1);
        cluster.patch::<Pod>("default", "lone", &json!({"metadata": {"labels": {"app": "other"}}})).await;
        cluster.settle().await;
        let lone: Pod = cluster.get("default", "lone").await;
        assert_eq!(lone.owner_references(), []);
        let pods: Vec<Pod> = cluster.list("default").await;
        assert_eq!(pods.len(), 4, "a released pod is replaced");
    });
}

#[test]
fn a_refused_pod_stops_the_batch_and_is_reported() {
    testkit::run(|cluster| async move {
        let _running = rig::start(&cluster, &["replicaset-controller"]);
        let refusal = cluster.inject(Fault::on("create", "pods").always().error(403, "Forbidden"));
        cluster.apply(&SET.replace("replicas: 3", "replicas: 100")).await;
        cluster.world().sleep(Duration::from_millis(100)).await;
        assert!(refusal.hits() < 20, "the first batch has one pod");
        let set: ReplicaSet = cluster.get("default", "web").await;
        let conditions = set.status.unwrap().conditions.unwrap();
        let failure = (conditions[0].type_.as_str(), conditions[0].reason.as_deref());
        assert_eq!(failure, ("ReplicaFailure", Some("FailedCreate")));
        refusal.lift();
        cluster.settle().await;
        let set: ReplicaSet = cluster.get("default", "web").await;
        let status = set.status.unwrap();
        assert_eq!((status.replicas, status.conditions), (100, None));
        let events = rig::events(&cluster, "ReplicaSet", "web").await;
        assert!(events[0].starts_with("FailedCreate: Error creating: "), "{events:?}");
    });
}

#[test]
fn pods_are_terminating_until_their_node_has_ended_them() {
    testkit::run(|cluster| async move {
        let _running = rig::start(&cluster, &["replicaset-controller"]);
        let kubelet = rig::kubelet(&cluster);
        cluster.apply(SET).await;
        cluster.settle().await;
        drop(kubelet);
        cluster.patch::<ReplicaSet>("default", "web", &json!({"spec": {"replicas": 1}})).await;
        cluster.settle().await;
        let status = cluster.get::<ReplicaSet>("default", "web").await.status.unwrap();
        assert_eq!((status.replicas, status.terminating_replicas), (1, Some(2)));
        let _kubelet = rig::kubelet(&cluster);
        cluster.settle().await;
        let status = cluster.get::<ReplicaSet>("default", "web").await.status.unwrap();
        assert_eq!((status.replicas, status.terminating_replicas), (1, Some(0)));
    });
}

#[test]
fn the_pod_with_the_lowest_deletion_cost_goes_first() {
    testkit::run(|cluster| async move {
        let _running = (rig::start(&cluster, &["replicaset-controller"]), rig::kubelet(&cluster));
        cluster.apply(SET).await;
        cluster.settle().await;
        let pods: Vec<Pod> = cluster.list("default").await;
        let cost = json!({"metadata": {"annotations": {"controller.kubernetes.io/pod-deletion-cost": "-5"}}});
        let cheap = pods[1].name_any();
        cluster.patch::<Pod>("default", &cheap, &cost).await;
        cluster.settle().await;
        cluster.patch::<ReplicaSet>("default", "web", &json!({"spec": {"replicas": 2}})).await;
        cluster.settle().await;
        assert!(cluster.find::<Pod>("default", &cheap).await.is_none());
        let events = rig::events(&cluster, "ReplicaSet", "web").await;
        assert!(events.contains(&format!("SuccessfulDelete: Deleted pod: {cheap}")), "{events:?}");
        assert!(events.contains(&format!("SuccessfulCreate: Created pod: {cheap}")), "{events:?}");
    });
}

#[test]
fn ready_pods_are_available_after_min_ready_seconds() {
    testkit::run(|cluster| async move {
        let _running = (rig::start(&cluster, &["replicaset-controller"]), rig::kubelet(&cluster));
        cluster.apply(&SET.replace("replicas: 3", "replicas: 3\n  minReadySeconds: 30")).await;
        cluster.settle().await;
        let counts = async || {
            let status = cluster.get::<ReplicaSet>("default", "web").await.status.unwrap();
            (status.ready_replicas, status.available_replicas)
        };
        assert_eq!(counts().await, (Some(3), None));
        cluster.advance(Duration::from_secs(25)).await;
        assert_eq!(counts().await, (Some(3), None));
        cluster.advance(Duration::from_secs(6)).await;
        assert_eq!(counts().await, (Some(3), Some(3)));
    });
}
