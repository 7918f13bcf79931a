//! Node objects and leases of simulated nodes.

use crate::rig::{container, pod, start, start_with, state};
use k8s_openapi::api::{
    coordination::v1::Lease,
    core::v1::{Node, Pod},
};
use node::Settings;
use serde_json::json;
use std::time::Duration;
use testkit::Cluster;

async fn renewed(cluster: &Cluster, node: &str) -> jiff::Timestamp {
    let lease: Lease = cluster.get("kube-node-lease", node).await;
    lease.spec.unwrap().renew_time.unwrap().0
}

async fn heartbeat(cluster: &Cluster, node: &str) -> jiff::Timestamp {
    let node: Node = cluster.get(None, node).await;
    let conditions = node.status.unwrap().conditions.unwrap();
    conditions.into_iter().find(|it| it.type_ == "Ready").unwrap().last_heartbeat_time.unwrap().0
}

#[test]
fn nodes_register_with_what_a_kubelet_reports() {
    testkit::run(|cluster| async move {
        let _running = start_with(&cluster, &Settings { count: 3, zones: 2, ..Settings::default() });
        cluster.settle().await;
        let nodes: Vec<Node> = cluster.list(None).await;
        assert_eq!(nodes.len(), 3);
        let node: Node = cluster.get(None, "node-2").await;
        let labels = node.metadata.labels.unwrap();
        assert_eq!(labels["kubernetes.io/hostname"], "node-2");
        assert_eq!(labels["topology.kubernetes.io/zone"], "zone-0");
        let status = node.status.unwrap();
        assert_eq!(status.capacity.as_ref().unwrap()["pods"].0, "110");
        let conditions: Vec<String> =
            status.conditions.unwrap().iter().map(|it| format!("{}={}", it.type_, it.status)).collect();
        assert_eq!(
            conditions,
            ["MemoryPressure=False", "DiskPressure=False", "PIDPressure=False", "Ready=True"]
        );
        let lease: Lease = cluster.get("kube-node-lease", "node-2").await;
        let spec = lease.spec.unwrap();
        assert_eq!(spec.holder_identity.as_deref(), Some("node-2"));
        assert_eq!(spec.lease_duration_seconds, Some(40));
        assert_eq!(lease.metadata.owner_references.unwrap()[0].name, "node-2");
    });
}

#[test]
fn heartbeats_go_on_until_the_node_fails() {
    testkit::run(|cluster| async move {
        let _running = start(&cluster, 1);
        cluster.create(&pod("web", container("nginx"), "app: {exitCode: 1, after: 30m}")).await;
        // The image that was pulled is reported with the next renewal of the lease.
        cluster.advance(Duration::from_secs(15)).await;
        let (first_lease, first_report) =
            (renewed(&cluster, "node-0").await, heartbeat(&cluster, "node-0").await);
        cluster.advance(Duration::from_secs(270)).await;
        assert!(renewed(&cluster, "node-0").await.duration_since(first_lease).as_secs() >= 255);
        assert_eq!(heartbeat(&cluster, "node-0").await, first_report);
        cluster.advance(Duration::from_secs(45)).await;
        assert!(heartbeat(&cluster, "node-0").await > first_report);

        let annotation =
            |value: Option<&str>| json!({"metadata": {"annotations": {"setpoint.dev/node": value}}});
        cluster.patch::<Node>(None, "node-0", &annotation(Some("stopped"))).await;
        cluster.settle().await;
        let (lease, report) = (renewed(&cluster, "node-0").await, heartbeat(&cluster, "node-0").await);
        cluster.create(&pod("late", container("nginx"), "")).await;
        cluster.delete::<Pod>("default", "web").await;
        cluster.advance(Duration::from_secs(3600)).await;
        assert_eq!(renewed(&cluster, "node-0").await, lease, "a failed node does not renew its lease");
        assert_eq!(heartbeat(&cluster, "node-0").await, report);
        assert_eq!(state(&cluster, "web").await, "Running ready/0", "nobody stops its pods");
        assert_eq!(state(&cluster, "late").await, "Pending");

        cluster.patch::<Node>(None, "node-0", &annotation(None)).await;
        cluster.settle().await;
        assert!(renewed(&cluster, "node-0").await > lease);
        assert_eq!(state(&cluster, "late").await, "Running ready/0");
        assert!(cluster.find::<Pod>("default", "web").await.is_none());
    });
}

#[test]
fn a_node_that_a_user_creates_can_be_simulated() {
    testkit::run(|cluster| async move {
        let _running = start(&cluster, 0);
        let node: Node = serde_json::from_value(json!({
            "metadata": {"name": "edge", "annotations": {"setpoint.dev/node": "simulated"}},
            "spec": {"podCIDR": "10.9.0.0/24"},
            "status": {"capacity": {"cpu": "2", "memory": "1Gi", "pods": "5"}}}))
        .unwrap();
        cluster.create(&node).await;
        let mut spec = container("nginx");
        spec["nodeName"] = json!("edge");
        cluster.create(&pod("web", spec, "")).await;
        cluster.settle().await;
        let node: Node = cluster.get(None, "edge").await;
        assert_eq!(node.status.unwrap().allocatable.unwrap()["pods"].0, "5");
        let web: Pod = cluster.get("default", "web").await;
        assert_eq!(web.status.unwrap().pod_ip.as_deref(), Some("10.9.0.2"));
    });
}

#[test]
fn a_deleted_node_stays_deleted() {
    testkit::run(|cluster| async move {
        let _running = start(&cluster, 1);
        cluster.settle().await;
        cluster.delete::<Node>(None, "node-0").await;
        cluster.advance(Duration::from_secs(60)).await;
        assert!(cluster.find::<Node>(None, "node-0").await.is_none());
    });
}

#[test]
fn a_pod_whose_host_port_is_taken_is_rejected_until_the_port_is_free() {
    testkit::run(|cluster| async move {
        let _running = start(&cluster, 1);
        let mut with_port = container("nginx");
        with_port["containers"][0]["ports"] = json!([{"containerPort": 80, "hostPort": 80}]);
        cluster.create(&pod("first", with_port.clone(), "")).await;
        cluster.settle().await;
        cluster.create(&pod("second", with_port.clone(), "")).await;
        cluster.settle().await;
        let second: Pod = cluster.get("default", "second").await;
        let status = second.status.unwrap();
        assert_eq!(status.reason.as_deref(), Some("NodePorts"));
        assert_eq!(
            status.message.as_deref(),
            Some(
                "Pod was rejected: Predicate NodePorts failed: node(s) didn't have free ports for the requested pod \
                 ports"
            )
        );
        cluster.delete::<Pod>("default", "first").await;
        cluster.advance(Duration::from_secs(60)).await;
        cluster.create(&pod("third", with_port, "")).await;
        cluster.settle().await;
        assert_eq!(state(&cluster, "third").await, "Running ready/0");
    });
}
