//! `setpoint up --dns`: applies the objects of CoreDNS without force, so that fields that another field manager owns stay.

use crate::{
    client::{
        api::{APPLY, Api, Call, JSON},
        failure::{ClientError, ClientResult},
        manifest::{self, Manifest},
    },
    real_node::facts,
    up::in_process::Destination,
};
use http::Method;
use server::Server;
use std::time::Duration;
use world::{Task, World};

const MANIFEST: &str = include_str!("../../templates/coredns.yaml");
/// What the manifest has in place of the address of its Service.
const ADDRESS: &str = "CLUSTER_DNS_ADDRESS";
/// Before an object that could not be applied is tried again: a webhook of the cluster may need a pod that only now starts.
const PAUSE: Duration = Duration::from_secs(5);

/// Applies all objects, and those that fail again and again, until the task is dropped.
pub(super) fn start(world: &World, server: &Server) -> Task<()> {
    let clients = Destination::Server(server.clone());
    let api = Api::of_client(clients.user("setpoint", "kubernetes-admin", &["system:masters"]));
    let waits = world.clone();
    world.spawn("the cluster's DNS", async move {
        while let Err(error) = apply(&api).await {
            let problem = error.to_string();
            tracing::warn!(problem, "the objects of the cluster's DNS cannot be applied; it is tried again");
            waits.sleep(PAUSE).await;
        }
    })
}

async fn apply(api: &Api) -> ClientResult<()> {
    let address = facts::dns(api).await?;
    let address = address.ok_or_else(|| ClientError::error("the range of services has no tenth address"))?;
    let mut failures = Vec::new();
    for Manifest { object, .. } in objects(&address.to_string())? {
        let [kind, name] =
            [&object["kind"], &object["metadata"]["name"]].map(|it| it.as_str().unwrap_or_default());
        let path = format!("{}/{name}?fieldManager=setpoint&fieldValidation=Strict", collection(kind));
        let body = object.to_string().into_bytes();
        let call = Call { method: Method::PATCH, path: &path, accept: JSON, content_type: APPLY, body };
        match api.json(call).await {
            // An apply that would take fields from others.
            Err(error) if error.is_conflict() => {
                tracing::info!(
                    kind,
                    name,
                    "an object of the cluster's DNS has been changed, and stays as it is"
                );
            }
            Err(error) => failures.push(error),
            Ok(_) => {}
        }
    }
    ClientError::all(failures)
}

fn objects(address: &str) -> ClientResult<Vec<Manifest>> {
    manifest::objects("coredns.yaml", MANIFEST.replace(ADDRESS, address).as_bytes())
}

/// Where objects of the manifest are.
fn collection(kind: &str) -> &'static str {
    match kind {
        "ClusterRole" => "/apis/rbac.authorization.k8s.io/v1/clusterroles",
        "ClusterRoleBinding" => "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
        "Deployment" => "/apis/apps/v1/namespaces/kube-system/deployments",
        "ConfigMap" => "/api/v1/namespaces/kube-system/configmaps",
        "ServiceAccount" => "/api/v1/namespaces/kube-system/serviceaccounts",
        _ => "/api/v1/namespaces/kube-system/services",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_object_of_the_manifest_is_applied_where_its_kind_is() {
        let objects = objects("10.96.0.10").unwrap();
        let places: Vec<_> = objects
            .iter()
            .map(|Manifest { object, .. }| {
                let kind = object["kind"].as_str().unwrap();
                let collection = collection(kind);
                let is_there = collection.ends_with(&format!("/{}s", kind.to_lowercase()));
                let of_namespace = object["metadata"]["namespace"] == "kube-system";
                assert!(is_there && of_namespace == collection.contains("/kube-system/"), "{object}");
                format!("{collection}/{}", object["metadata"]["name"].as_str().unwrap())
            })
            .collect();
        assert_eq!(places.len(), 6, "{places:?}");
        assert_eq!(objects[5].object["spec"]["clusterIP"], "10.96.0.10");
        assert!(objects.iter().all(|it| !it.object.to_string().contains(ADDRESS)));
    }
}
