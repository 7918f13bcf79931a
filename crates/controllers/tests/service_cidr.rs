//! Ranges of service addresses: ready, and kept while addresses depend on them.

use crate::rig;
use k8s_openapi::api::networking::v1::{IPAddress, ServiceCIDR};
use kube::ResourceExt;
use serde_json::json;
use std::time::Duration;
use testkit::Cluster;

const LOOP: &str = "service-cidr-controller";
const FINALIZER: &str = "networking.k8s.io/service-cidr-finalizer";

async fn add_range(cluster: &Cluster, name: &str, range: &str) {
    let range = json!({"apiVersion": "networking.k8s.io/v1", "kind": "ServiceCIDR",
        "metadata": {"name": name}, "spec": {"cidrs": [range]}});
    cluster.apply_object(&range).await;
}

async fn add_address(cluster: &Cluster, address: &str) {
    let labels = json!({"ipaddress.kubernetes.io/managed-by": "ipallocator.k8s.io",
        "ipaddress.kubernetes.io/ip-family": "IPv4"});
    let parent = json!({"group": "", "resource": "services", "namespace": "default", "name": "web"});
    let address = json!({"apiVersion": "networking.k8s.io/v1", "kind": "IPAddress",
        "metadata": {"name": address, "labels": labels}, "spec": {"parentRef": parent}});
    cluster.apply_object(&address).await;
}

/// `status reason: message` of its condition.
async fn condition(cluster: &Cluster, name: &str) -> String {
    let range: ServiceCIDR = cluster.get(None, name).await;
    let ready = range.status.unwrap_or_default().conditions.unwrap_or_default().remove(0);
    assert_eq!(ready.type_, "Ready");
    format!("{} {}: {}", ready.status, ready.reason, ready.message)
}

#[test]
fn a_range_is_deleted_once_no_address_depends_on_it() {
    testkit::run(|cluster| async move {
        let _running = rig::start(&cluster, &[LOOP]);
        add_range(&cluster, "more", "10.50.0.0/24").await;
        cluster.settle().await;
        assert_eq!(condition(&cluster, "more").await, "True : Kubernetes Service CIDR is ready");
        assert_eq!(cluster.get::<ServiceCIDR>(None, "more").await.finalizers(), [FINALIZER]);
        add_address(&cluster, "10.50.0.7").await;
        cluster.delete::<ServiceCIDR>(None, "more").await;
        cluster.advance(Duration::from_secs(60)).await;
        let blocked = "False Terminating: There are still IPAddresses referencing the ServiceCIDR, please remove them or \
            create a new ServiceCIDR";
        assert_eq!(condition(&cluster, "more").await, blocked);
        cluster.delete::<IPAddress>(None, "10.50.0.7").await;
        cluster.settle().await;
        assert!(cluster.find::<ServiceCIDR>(None, "more").await.is_none());
    });
}

#[test]
fn another_range_takes_over_the_addresses() {
    testkit::run(|cluster| async move {
        let _running = rig::start(&cluster, &[LOOP]);
        add_range(&cluster, "more", "10.50.0.0/24").await;
        add_address(&cluster, "10.50.0.7").await;
        cluster.settle().await;
        cluster.delete::<ServiceCIDR>(None, "more").await;
        cluster.advance(Duration::from_secs(60)).await;
        assert!(cluster.find::<ServiceCIDR>(None, "more").await.is_some());
        add_range(&cluster, "most", "10.50.0.0/16").await;
        cluster.settle().await;
        assert!(cluster.find::<ServiceCIDR>(None, "more").await.is_none());
    });
}

#[test]
fn a_range_waits_for_servers_that_still_allocate_from_it() {
    testkit::run(|cluster| async move {
        let _running = rig::start(&cluster, &[LOOP]);
        add_range(&cluster, "more", "10.50.0.0/24").await;
        cluster.settle().await;
        cluster.delete::<ServiceCIDR>(None, "more").await;
        cluster.advance(Duration::from_secs(5)).await;
        assert!(cluster.find::<ServiceCIDR>(None, "more").await.is_some());
        cluster.advance(Duration::from_secs(6)).await;
        assert!(cluster.find::<ServiceCIDR>(None, "more").await.is_none());
    });
}

#[test]
fn a_range_is_ready_and_goes_wherever_the_loop_crashes() {
    let crashes = testkit::crash_everywhere(
        &rig::user("service-cidrs-controller"),
        async |cluster: &Cluster| rig::start(cluster, &[LOOP]),
        |cluster| async move {
            add_range(&cluster, "more", "10.50.0.0/24").await;
            cluster.settle().await;
            assert_eq!(condition(&cluster, "more").await, "True : Kubernetes Service CIDR is ready");
            cluster.delete::<ServiceCIDR>(None, "more").await;
            cluster.advance(Duration::from_secs(15)).await;
            assert!(cluster.find::<ServiceCIDR>(None, "more").await.is_none());
        },
    );
    assert!(crashes.writes >= 3, "{crashes}");
}
