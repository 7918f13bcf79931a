//! ReplicaSets and ReplicationControllers.

use crate::rig;
use k8s_openapi::api::{
    apps::v1::ReplicaSet,
    core::v1::{Pod, ReplicationController},
};
use kube::ResourceExt;
use serde_json::json;

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
