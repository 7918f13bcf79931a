//! Pods without a node that cares for them.

use crate::rig;
use k8s_openapi::api::core::v1::{Node, Pod};
use serde_json::json;
use std::time::Duration;
use testkit::{Cluster, Fault};

async fn pod(cluster: &Cluster, name: &str, node: &str) {
    let spec = json!({"nodeName": node, "containers": [{"name": "c", "image": "nginx"}]});
    cluster
        .apply_object(&json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}))
        .await;
}

#[test]
fn pods_of_a_node_that_is_gone_are_deleted_after_a_while() {
    testkit::run(|cluster| async move {
        let _running = rig::start(&cluster, &["pod-garbage-collector-controller"]);
        cluster.apply("{apiVersion: v1, kind: Node, metadata: {name: node-1}}").await;
        pod(&cluster, "web", "node-1").await;
        cluster.advance(Duration::from_secs(60)).await;
        cluster.delete::<Node>(None, "node-1").await;
        cluster.advance(Duration::from_secs(35)).await;
        assert!(cluster.find::<Pod>("default", "web").await.is_some());
        cluster.advance(Duration::from_secs(10)).await;
        assert!(cluster.find::<Pod>("default", "web").await.is_none());
        let writes = cluster.trace();
        let patch = writes.of("patch", "pods/status");
        assert_eq!(patch.len(), 1, "it has failed before it is deleted");
    });
}

#[test]
fn a_node_that_comes_back_keeps_its_pods() {
    testkit::run(|cluster| async move {
        let _running = rig::start(&cluster, &["pod-garbage-collector-controller"]);
        cluster.apply("{apiVersion: v1, kind: Node, metadata: {name: node-1}}").await;
        pod(&cluster, "web", "node-1").await;
        cluster.delete::<Node>(None, "node-1").await;
        cluster.advance(Duration::from_secs(30)).await;
        cluster.apply("{apiVersion: v1, kind: Node, metadata: {name: node-1}}").await;
        cluster.advance(Duration::from_secs(300)).await;
        assert!(cluster.find::<Pod>("default", "web").await.is_some());
    });
}

#[test]
fn pods_that_end_on_a_node_out_of_service_are_deleted() {
    testkit::run(|cluster| async move {
        let _running = rig::start(&cluster, &["pod-garbage-collector-controller"]);
        cluster.apply("{apiVersion: v1, kind: Node, metadata: {name: node-1}}").await;
        pod(&cluster, "web", "node-1").await;
        cluster.delete::<Pod>("default", "web").await;
        cluster.advance(Duration::from_secs(300)).await;
        assert!(cluster.find::<Pod>("default", "web").await.is_some());
        let taint = json!({"spec": {"taints": [{"key": "node.kubernetes.io/out-of-service", "effect": "NoExecute"}]}});
        // The first attempt fails.
        cluster.inject(Fault::on("delete", "pods").named("web").nth(1).error(500, "InternalError"));
        cluster.patch::<Node>(None, "node-1", &taint).await;
        cluster.settle().await;
        assert!(cluster.find::<Pod>("default", "web").await.is_none());
    });
}
