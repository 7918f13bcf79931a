//! What the tests do with a cluster, and read of it.

use example_mysql_cluster::{
    NAME, controller, definition,
    v1::{MySQLCluster, MySQLClusterStatus},
};
use k8s_openapi::api::{
    batch::v1::Job,
    core::v1::{Pod, Service},
    events::v1::Event,
};
use kube::ResourceExt;
use operator::{Manager, Running, definition as definitions};
use serde_json::json;
use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};
use testkit::Cluster;

pub(crate) const SAMPLE: &str = include_str!("../manifests/sample.yaml");
pub(crate) const SHOP: &str = "shop";
pub(crate) const OLD: &str = "8.4.6";
pub(crate) const NEW: &str = "8.4.7";
pub(crate) const SECOND: Duration = Duration::from_secs(1);
pub(crate) const MINUTE: Duration = Duration::from_secs(60);

pub(crate) async fn start(cluster: &Cluster) -> Running {
    cluster.apply(&definitions::yaml(&definition())).await;
    let client = cluster.client_as(NAME, &["system:masters"]);
    cluster.run(Manager::new(NAME, cluster.world(), client).controller(controller()))
}

/// A control plane, the operator, and a cluster whose members are all ready.
pub(crate) async fn install(cluster: &Cluster) -> (Running, Running) {
    let control_plane = cluster.control_plane().nodes(4).start();
    let operator = start(cluster).await;
    // Or the first node to be ready gets all members.
    cluster.settle().await;
    cluster.apply(SAMPLE).await;
    until(cluster, |status| status.phase.as_deref() == Some("Running")).await;
    (control_plane, operator)
}

pub(crate) async fn shop(cluster: &Cluster) -> MySQLCluster {
    cluster.get("default", SHOP).await
}

pub(crate) async fn status(cluster: &Cluster) -> MySQLClusterStatus {
    shop(cluster).await.status.unwrap_or_default()
}

/// Lets time pass, a second at a time; returns how much.
pub(crate) async fn until(cluster: &Cluster, is_done: impl Fn(&MySQLClusterStatus) -> bool) -> Duration {
    for passed in 0..600 {
        let status = status(cluster).await;
        if is_done(&status) {
            return SECOND * passed;
        }
        cluster.advance(SECOND).await;
    }
    panic!("never: {:#?}\n{}", status(cluster).await, cluster.trace());
}

pub(crate) async fn patch(cluster: &Cluster, spec: serde_json::Value) {
    cluster.patch::<MySQLCluster>("default", SHOP, &json!({"spec": spec})).await;
}

/// Members by name: their version, and whether they are ready.
pub(crate) async fn members(cluster: &Cluster) -> BTreeMap<String, (String, bool)> {
    let pods = cluster.list::<Pod>("default").await.into_iter();
    let pods = pods.filter(|pod| pod.labels().get("mysql.example.com/role").unwrap() == "member");
    let member = |pod: Pod| {
        let version = pod.labels()["mysql.example.com/version"].clone();
        let conditions = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
        let is_ready = conditions.clone().any(|it| it.type_ == "Ready" && it.status == "True");
        (pod.name_any(), (version, is_ready && pod.metadata.deletion_timestamp.is_none()))
    };
    pods.map(member).collect()
}

/// The pod that the Service of the primary selects.
pub(crate) async fn primary(cluster: &Cluster) -> String {
    let service: Service = cluster.get("default", "shop-primary").await;
    let pod = service.spec.unwrap().selector.unwrap()["statefulset.kubernetes.io/pod-name"].clone();
    assert_eq!(status(cluster).await.primary, Some(pod.clone()));
    pod
}

pub(crate) async fn primary_now(cluster: &Cluster) -> String {
    let service: Service = cluster.get("default", "shop-primary").await;
    service.spec.unwrap().selector.unwrap()["statefulset.kubernetes.io/pod-name"].clone()
}

pub(crate) async fn reasons(cluster: &Cluster) -> BTreeSet<String> {
    cluster
        .list::<Event>("default")
        .await
        .into_iter()
        .filter_map(|event| {
            let is_own = event.regarding.as_ref()?.kind.as_deref() == Some("MySQLCluster");
            event.reason.filter(|_| is_own)
        })
        .collect()
}

pub(crate) async fn backups(cluster: &Cluster) -> Vec<String> {
    let jobs = cluster.list::<Job>("default").await.into_iter();
    jobs.filter(|job| job.labels()["mysql.example.com/role"] == "backup").map(|job| job.name_any()).collect()
}
