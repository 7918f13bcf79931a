//! `setpoint up --dns`: the cluster has names, on simulated nodes, too.

use crate::{harness::Up, kube_client::with_client_of};
use k8s_openapi::api::{
    apps::v1::Deployment,
    core::v1::{ConfigMap, Service},
};
use kube::{
    Api, Client,
    api::{Patch, PatchParams},
    runtime::wait::await_condition,
};
use serde_json::json;

const SYSTEM: &str = "kube-system";

/// Waits until CoreDNS runs.
async fn is_available(client: &Client) {
    let deployments: Api<Deployment> = Api::namespaced(client.clone(), SYSTEM);
    let has_pods = |deployment: Option<&Deployment>| {
        let status = deployment.and_then(|it| it.status.as_ref());
        status.is_some_and(|status| status.available_replicas.is_some_and(|count| count > 0))
    };
    await_condition(deployments, "coredns", has_pods).await.unwrap();
}

#[test]
fn the_service_of_the_clusters_dns_has_the_address_that_kubelets_are_told() {
    let scratch = tempfile::tempdir().unwrap();
    let arguments = ["--ephemeral", "--dns", "--service-cluster-ip-range", "10.77.0.0/16"];
    with_client_of(Up::start(&arguments, scratch.path()), |client| async move {
        is_available(&client).await;
        let services: Api<Service> = Api::namespaced(client, SYSTEM);
        let spec = services.get("kube-dns").await.unwrap().spec.unwrap();
        assert_eq!(spec.cluster_ip.as_deref(), Some("10.77.0.10"));
    });
}

#[test]
fn what_users_change_in_the_clusters_dns_stays_after_a_restart() {
    let scratch = tempfile::tempdir().unwrap();
    let changed = json!({"data": {"Corefile": ".:53 {\n    whoami\n}\n"}});
    with_client_of(Up::start(&["--dns"], scratch.path()), |client| async move {
        is_available(&client).await;
        let maps: Api<ConfigMap> = Api::namespaced(client.clone(), SYSTEM);
        maps.patch("coredns", &PatchParams::default(), &Patch::Merge(&changed)).await.unwrap();
        let deployments: Api<Deployment> = Api::namespaced(client.clone(), SYSTEM);
        let replicas = json!({"spec": {"replicas": 2}});
        deployments.patch("coredns", &PatchParams::default(), &Patch::Merge(&replicas)).await.unwrap();
        let services: Api<Service> = Api::namespaced(client, SYSTEM);
        services.delete("kube-dns", &kube::api::DeleteParams::default()).await.unwrap();
    });
    with_client_of(Up::start(&["--dns"], scratch.path()), |client| async move {
        let services: Api<Service> = Api::namespaced(client.clone(), SYSTEM);
        await_condition(services, "kube-dns", |it: Option<&Service>| it.is_some()).await.unwrap();
        let maps: Api<ConfigMap> = Api::namespaced(client.clone(), SYSTEM);
        let corefile = maps.get("coredns").await.unwrap().data.unwrap()["Corefile"].clone();
        assert!(corefile.contains("whoami"), "{corefile}");
        let deployments: Api<Deployment> = Api::namespaced(client, SYSTEM);
        let replicas = deployments.get("coredns").await.unwrap().spec.unwrap().replicas;
        assert_eq!(replicas, Some(2));
    });
}
