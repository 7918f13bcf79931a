//! Tests with kube-rs against a control plane of their own each.

mod control_plane;

use control_plane::ControlPlane;
use futures::{StreamExt, TryStreamExt};
use k8s_openapi::{
    api::{apps::v1::Deployment, core::v1::Pod},
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api, Client, CustomResource, CustomResourceExt, Resource, ResourceExt,
    api::{DeleteParams, ListParams, PostParams},
    runtime::{WatchStreamExt, reflector, wait, watcher},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(30);

fn deployment(replicas: i32) -> Deployment {
    let labels = json!({"app": "web"});
    let template = json!({
        "metadata": {"labels": labels},
        "spec": {"containers": [{"name": "web", "image": "nginx"}]},
    });
    let deployment = json!({
        "metadata": {"name": "web"},
        "spec": {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template},
    });
    serde_json::from_value(deployment).expect("a deployment")
}

/// Follows the pods of the namespace until they satisfy the condition.
async fn until_pods(client: &Client, condition: impl Fn(&[Pod]) -> bool) -> Vec<Pod> {
    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    let (reader, writer) = reflector::store();
    let mut changes = watcher(pods, watcher::Config::default()).reflect(writer).boxed();
    let found = async {
        while changes.try_next().await.expect("a watch").is_some() {
            let found: Vec<Pod> = reader.state().iter().map(|pod| Pod::clone(pod)).collect();
            if condition(&found) {
                return found;
            }
        }
        panic!("the watch ended");
    };
    tokio::time::timeout(PATIENCE, found).await.expect("pods in time")
}

#[tokio::test]
async fn a_deployment_runs_its_pods() {
    let plane = ControlPlane::start().await;
    let deployments: Api<Deployment> = Api::default_namespaced(plane.client());
    deployments.create(&PostParams::default(), &deployment(3)).await.expect("a deployment");
    let is_running = |pod: &Pod| pod.status.as_ref().is_some_and(|it| it.phase.as_deref() == Some("Running"));
    let pods =
        until_pods(&plane.client(), |pods| pods.iter().filter(|pod| is_running(pod)).count() == 3).await;
    assert!(pods.iter().all(|pod| pod.spec.as_ref().is_some_and(|spec| spec.node_name.is_some())));
}

#[tokio::test]
async fn deleting_a_deployment_deletes_what_it_owns() {
    let plane = ControlPlane::start().await;
    let deployments: Api<Deployment> = Api::default_namespaced(plane.client());
    deployments.create(&PostParams::default(), &deployment(2)).await.expect("a deployment");
    until_pods(&plane.client(), |pods| pods.len() == 2).await;
    deployments.delete("web", &DeleteParams::background()).await.expect("a delete");
    until_pods(&plane.client(), <[Pod]>::is_empty).await;
}

#[derive(CustomResource, Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[kube(group = "example.com", version = "v1", kind = "Shirt", namespaced)]
struct ShirtSpec {
    #[schemars(range(max = 3))]
    size: i32,
}

#[tokio::test]
async fn custom_resources_are_validated() {
    let plane = ControlPlane::start().await;
    let definitions: Api<CustomResourceDefinition> = Api::all(plane.client());
    definitions.create(&PostParams::default(), &Shirt::crd()).await.expect("a definition");
    let is_served = wait::conditions::is_crd_established();
    let name = format!("{}.{}", Shirt::plural(&()), Shirt::group(&()));
    let established = wait::await_condition(definitions, &name, is_served);
    tokio::time::timeout(PATIENCE, established).await.expect("in time").expect("a watch");
    let shirts: Api<Shirt> = Api::default_namespaced(plane.client());
    let create = async |size| {
        shirts.create(&PostParams::default(), &Shirt::new(&format!("s{size}"), ShirtSpec { size })).await
    };
    create(2).await.expect("a valid shirt");
    let refused = create(4).await.expect_err("an invalid shirt");
    assert!(matches!(refused, kube::Error::Api(status) if status.code == 422));
    let stored = shirts.list(&ListParams::default()).await.expect("a list");
    assert_eq!(stored.iter().map(ResourceExt::name_any).collect::<Vec<_>>(), ["s2"]);
}
