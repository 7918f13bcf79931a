//! EndpointSlices, Endpoints, and the mirror of Endpoints that people write.

use crate::rig;
use k8s_openapi::api::{
    core::v1::{Endpoints, Node, Pod, Service},
    discovery::v1::EndpointSlice,
};
use kube::ResourceExt;
use serde_json::json;
use testkit::Cluster;

const LOOPS: [&str; 3] =
    ["endpoints-controller", "endpointslice-controller", "endpointslice-mirroring-controller"];

const SERVICE: &str = "{apiVersion: v1, kind: Service, metadata: {name: web, labels: {tier: front}}, \
    spec: {selector: {app: web}, ports: [{name: http, port: 80, targetPort: 8080}]}}";

async fn node(cluster: &Cluster, name: &str) {
    let node = json!({"apiVersion": "v1", "kind": "Node",
        "metadata": {"name": name, "labels": {"topology.kubernetes.io/zone": "a"}}});
    cluster.create::<Node>(&serde_json::from_value(node).unwrap()).await;
}

/// A pod that runs on a node, as a kubelet would report it.
async fn pod(cluster: &Cluster, name: &str, node: &str, ip: &str, ready: &str) {
    cluster
        .apply(&format!(
            "{{apiVersion: v1, kind: Pod, metadata: {{name: {name}, labels: {{app: web}}}}, \
             spec: {{nodeName: {node}, containers: [{{name: c, image: nginx}}]}}}}"
        ))
        .await;
    status(cluster, name, ip, ready).await;
}

async fn status(cluster: &Cluster, name: &str, ip: &str, ready: &str) {
    let status = json!({"status": {"phase": "Running", "podIP": ip, "podIPs": [{"ip": ip}],
        "conditions": [{"type": "Ready", "status": ready, "lastTransitionTime": "2026-01-01T00:00:09Z"}]}});
    cluster.patch_status::<Pod>("default", name, &status).await;
}

async fn slices(cluster: &Cluster, service: &str) -> Vec<EndpointSlice> {
    let mut slices: Vec<EndpointSlice> = cluster.list("default").await;
    slices.retain(|slice| slice.labels().get("kubernetes.io/service-name").is_some_and(|it| it == service));
    slices
}

#[test]
fn the_pods_of_a_service_are_in_its_slices_and_endpoints() {
    testkit::run(|cluster| async move {
        let _running = rig::start(&cluster, &LOOPS);
        node(&cluster, "n1").await;
        cluster.apply(SERVICE).await;
        cluster.settle().await;
        let empty = slices(&cluster, "web").await;
        assert_eq!(empty.len(), 1, "a service without pods has one empty slice");
        pod(&cluster, "web-0", "n1", "10.1.0.1", "True").await;
        pod(&cluster, "web-1", "n1", "10.1.0.2", "False").await;
        cluster.settle().await;
        let slices = slices(&cluster, "web").await;
        assert_eq!((slices.len(), slices[0].uid()), (1, empty[0].uid()));
        let endpoints = slices[0].endpoints.clone().unwrap();
        assert_eq!(endpoints.len(), 2);
        assert_eq!(endpoints[0].addresses, ["10.1.0.1"]);
        assert_eq!(endpoints[0].zone.as_deref(), Some("a"));
        let conditions = endpoints[1].conditions.clone().unwrap();
        assert_eq!((conditions.ready, conditions.serving), (Some(false), Some(false)));
        assert_eq!(slices[0].labels()["tier"], "front");
        assert_eq!(slices[0].owner_references()[0].kind, "Service");
        let old: Endpoints = cluster.get("default", "web").await;
        let subset = &old.subsets.as_ref().unwrap()[0];
        assert_eq!(subset.addresses.as_ref().unwrap()[0].ip, "10.1.0.1");
        assert_eq!(subset.not_ready_addresses.as_ref().unwrap()[0].ip, "10.1.0.2");
        assert_eq!(subset.ports.as_ref().unwrap()[0].port, 8080);
        let at = "endpoints.kubernetes.io/last-change-trigger-time";
        assert_eq!(old.annotations()[at], "2026-01-01T00:00:09Z");
    });
}

#[test]
fn endpoints_follow_their_pods_and_go_with_the_service() {
    testkit::run(|cluster| async move {
        let _running = rig::start(&cluster, &LOOPS);
        node(&cluster, "n1").await;
        cluster.apply(SERVICE).await;
        pod(&cluster, "web-0", "n1", "10.1.0.1", "False").await;
        cluster.settle().await;
        status(&cluster, "web-0", "10.1.0.1", "True").await;
        cluster.settle().await;
        let ready =
            |slice: &EndpointSlice| slice.endpoints.as_ref().unwrap()[0].conditions.clone().unwrap().ready;
        assert_eq!(ready(&slices(&cluster, "web").await[0]), Some(true));
        let before = cluster.revision().await;
        cluster.patch::<Pod>("default", "web-0", &json!({"metadata": {"annotations": {"a": "b"}}})).await;
        cluster.settle().await;
        assert_eq!(cluster.revision().await, before + 1, "an annotation changes no endpoint");
        cluster.patch::<Pod>("default", "web-0", &json!({"metadata": {"labels": {"app": "other"}}})).await;
        cluster.settle().await;
        assert_eq!(slices(&cluster, "web").await[0].endpoints.iter().flatten().count(), 0);
        cluster.delete::<Service>("default", "web").await;
        cluster.settle().await;
        assert!(cluster.find::<Endpoints>("default", "web").await.is_none());
    });
}

const WRITTEN_BY_HAND: &str = "{apiVersion: v1, kind: Endpoints, metadata: {name: db}, \
    subsets: [{addresses: [{ip: 192.0.2.1}], ports: [{port: 5432}]}]}";

#[test]
fn endpoints_that_never_had_a_service_stay() {
    testkit::run(|cluster| async move {
        let _running = rig::start(&cluster, &LOOPS);
        cluster.apply(WRITTEN_BY_HAND).await;
        cluster.settle().await;
        cluster.patch::<Endpoints>("default", "db", &json!({"metadata": {"labels": {"a": "b"}}})).await;
        cluster.settle().await;
        assert!(cluster.find::<Endpoints>("default", "db").await.is_some());
    });
}

#[test]
fn endpoints_written_by_hand_go_with_their_service() {
    testkit::run(|cluster| async move {
        let _running = rig::start(&cluster, &LOOPS);
        cluster
            .apply("{apiVersion: v1, kind: Service, metadata: {name: db}, spec: {ports: [{port: 5432}]}}")
            .await;
        cluster.apply(WRITTEN_BY_HAND).await;
        cluster.settle().await;
        cluster.delete::<Service>("default", "db").await;
        cluster.settle().await;
        assert!(cluster.find::<Endpoints>("default", "db").await.is_none());
    });
}

#[test]
fn endpoints_of_a_service_that_was_deleted_while_the_loop_was_down_go() {
    testkit::run(|cluster| async move {
        let running = rig::start(&cluster, &LOOPS);
        cluster.apply(SERVICE).await;
        cluster.settle().await;
        drop(running);
        cluster.delete::<Service>("default", "web").await;
        let _running = rig::start(&cluster, &LOOPS);
        cluster.settle().await;
        assert!(cluster.find::<Endpoints>("default", "web").await.is_none());
    });
}

#[test]
fn a_pod_on_an_unknown_node_waits_for_the_node() {
    testkit::run(|cluster| async move {
        let _running = rig::start(&cluster, &LOOPS);
        cluster.apply(SERVICE).await;
        pod(&cluster, "web-0", "n9", "10.1.0.1", "True").await;
        cluster.settle().await;
        assert_eq!(slices(&cluster, "web").await[0].endpoints.iter().flatten().count(), 0);
        node(&cluster, "n9").await;
        cluster.settle().await;
        assert_eq!(slices(&cluster, "web").await[0].endpoints.iter().flatten().count(), 1);
    });
}

#[test]
fn endpoints_of_a_service_without_a_selector_are_mirrored() {
    testkit::run(|cluster| async move {
        let _running = rig::start(&cluster, &LOOPS);
        cluster
            .apply("{apiVersion: v1, kind: Service, metadata: {name: db}, spec: {ports: [{port: 5432}]}}")
            .await;
        cluster
            .apply("{apiVersion: v1, kind: Endpoints, metadata: {name: db}, subsets: [{addresses: [{ip: 192.0.2.1}], ports: [{port: 5432}]}]}")
            .await;
        cluster.settle().await;
        let mirrored = slices(&cluster, "db").await;
        assert_eq!(mirrored.len(), 1);
        assert_eq!(
            mirrored[0].labels()["endpointslice.kubernetes.io/managed-by"],
            "endpointslicemirroring-controller.k8s.io"
        );
        assert_eq!(mirrored[0].endpoints.as_ref().unwrap()[0].addresses, ["192.0.2.1"]);
        let before = cluster.revision().await;
        cluster.settle().await;
        assert_eq!(cluster.revision().await, before);
        cluster.patch::<Service>("default", "db", &json!({"spec": {"selector": {"app": "db"}}})).await;
        cluster.settle().await;
        let now = slices(&cluster, "db").await;
        assert!(
            now.iter().all(|slice| slice.labels()["endpointslice.kubernetes.io/managed-by"]
                == "endpointslice-controller.k8s.io"),
            "the mirror is gone"
        );
    });
}
