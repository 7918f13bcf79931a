//! Default objects of a namespace: the ServiceAccount that its pods run as, and the ConfigMap with the CA
//! that they trust. `kube-system` also has kube-apiserver's own ConfigMaps.

use crate::{
    Inner,
    admission::AdmissionPlugin,
    call::{Call, Committed},
    lookup,
    refusal::Refusal,
    request::Target,
    served::Served,
    verbs::create,
    write::{ByServer, KUBE_APISERVER},
};
use api::{object, time::Time};
use serde_json::{Value, json};
use std::sync::Arc;

const ACCOUNT: &str = "default";
const AUTHORITY: &str = "kube-root-ca.crt";
const SYSTEM: &str = "kube-system";
// Kubernetes: the controller manager cleans up token secrets only once this says since when their use is
// tracked.
const TOKEN_TRACKING: &str = "kube-apiserver-legacy-service-account-token-tracking";
// Kubernetes: aggregated API servers read the CA of client certificates from this ConfigMap.
const AUTHENTICATION: &str = "extension-apiserver-authentication";
/// ConfigMaps that kube-apiserver itself keeps.
const OWN_MAPS: [&str; 2] = [TOKEN_TRACKING, AUTHENTICATION];
const BY_CONTROLLERS: &str = "kube-controller-manager";

/// Creates the default objects that are missing, in all namespaces.
pub(super) async fn ensure_all_default_objects(inner: &Arc<Inner>) -> Result<(), Refusal> {
    for namespace in lookup::objects(inner, ("", "v1", "namespaces"), "").await? {
        if !object::is_deleting(&namespace) {
            ensure_default_objects(inner, object::name(&namespace)).await?;
        }
    }
    Ok(())
}

/// New namespaces, and ConfigMaps of the server that are deleted. Other default objects come back by control loops.
pub(super) fn concerns(served: &Served, _: &Target) -> bool {
    ["namespaces", "configmaps"].iter().any(|resource| served.is("", resource))
}

/// Creates the default objects that are missing.
pub(super) async fn after(call: &Call, commits: &[Committed]) -> Result<(), Refusal> {
    for commit in commits {
        let is_created = commit.before.is_none();
        // A delete of the whole collection is left to controllers, as in Kubernetes.
        let is_removed = commit.after.is_none() && !call.target.name.is_empty();
        let namespace = match &*call.served.resource.name {
            "namespaces" if is_created => &commit.name,
            "configmaps" if is_removed && OWN_MAPS.contains(&commit.name.as_str()) => &commit.namespace,
            _ => continue,
        };
        ensure_default_objects(&call.inner, namespace).await?;
    }
    Ok(())
}

async fn ensure_default_objects(inner: &Arc<Inner>, namespace: &str) -> Result<(), Refusal> {
    for (resource, manager, object) in wanted(inner, namespace) {
        create_if_missing(inner, namespace, resource, manager, &object).await?;
    }
    Ok(())
}

/// The default objects of a namespace, each with its resource and field manager.
fn wanted(inner: &Inner, namespace: &str) -> Vec<(&'static str, &'static str, Value)> {
    let mut wanted = Vec::new();
    if inner.fills_namespaces && inner.admission_plugins.has(AdmissionPlugin::ServiceAccount) {
        wanted.push(("serviceaccounts", BY_CONTROLLERS, json!({"metadata": {"name": ACCOUNT}})));
    }
    if let Some(authority) = inner.authority.as_ref().filter(|_| inner.fills_namespaces) {
        let description = "Contains a CA bundle that can be used to verify the kube-apiserver when using internal \
                           endpoints such as the internal service IP or kubernetes.default.svc. No other usage is \
                           guaranteed across distributions of Kubernetes clusters.";
        let map = json!({
            "metadata": {"name": AUTHORITY, "annotations": {"kubernetes.io/description": description}},
            "data": {"ca.crt": authority},
        });
        wanted.push(("configmaps", BY_CONTROLLERS, map));
    }
    // Only with an advertised address: in-process servers of tests create no ConfigMaps of their own.
    if namespace == SYSTEM && inner.advertised.is_some() {
        let today = &Time::from(inner.world.wall()).to_string()[.."2006-01-02".len()];
        let tracking = json!({"metadata": {"name": TOKEN_TRACKING}, "data": {"since": today}});
        wanted.push(("configmaps", KUBE_APISERVER, tracking));
        if let Some(authority) = &inner.authority {
            let data = json!({"client-ca-file": authority});
            wanted.push((
                "configmaps",
                KUBE_APISERVER,
                json!({"metadata": {"name": AUTHENTICATION}, "data": data}),
            ));
        }
    }
    wanted
}

/// Creates an object unless it exists.
async fn create_if_missing(
    inner: &Arc<Inner>,
    namespace: &str,
    resource: &str,
    manager: &str,
    object: &Value,
) -> Result<(), Refusal> {
    let name = object::name(object);
    if lookup::object(inner, ("", "v1", resource), namespace, name).await?.is_some() {
        return Ok(());
    }
    let resource = ("", "v1", resource);
    let write = ByServer { resource, namespace, field_manager: manager, ..ByServer::default() };
    let Some(call) = write.call(inner) else { return Ok(()) };
    match create::create(&call, object.to_string().into()).await {
        // Another writer was faster, or the namespace is being deleted again.
        Ok(_) | Err(Refusal::Conflict(_) | Refusal::NotFound(_) | Refusal::Forbidden(_)) => Ok(()),
        Err(refusal) => Err(refusal),
    }
}
