//! What follows from a new namespace: an account that its pods run as, and the authority that they trust. `kube-system`
//! also has what the real server says of itself there.
//!
//! In Kubernetes two controllers do this a moment later. Here it happens within the request, as with definitions, until
//! controllers run in the same process.

use crate::{
    Inner, authorize, lookup,
    request::{Options, Target, Verb},
    verbs::{Call, create},
};
use api::{object, status::Status, time::Time};
use serde_json::{Value, json};
use std::sync::Arc;

const ACCOUNT: &str = "default";
const AUTHORITY: &str = "kube-root-ca.crt";
const SYSTEM: &str = "kube-system";
// Kubernetes: the controller manager cleans up tokens in secrets only once this says since when their use is tracked.
const TOKEN_TRACKING: &str = "kube-apiserver-legacy-service-account-token-tracking";
// Kubernetes: aggregated API servers read the CA of client certificates from this ConfigMap.
const AUTHENTICATION: &str = "extension-apiserver-authentication";
const BY_CONTROLLERS: &str = "kube-controller-manager";
const BY_SERVER: &str = "kube-apiserver";

/// Gives all namespaces what they should have.
pub(crate) async fn furnish_all(inner: &Arc<Inner>) -> Result<(), Status> {
    for namespace in lookup::objects(inner, ("", "v1", "namespaces"), "").await? {
        if !object::is_deleting(&namespace) {
            furnish(inner, object::name(&namespace)).await?;
        }
    }
    Ok(())
}

/// What must follow once a call has been carried out.
pub(crate) async fn after(call: &Call, verb: Verb) {
    let Target { namespace, name, .. } = &call.target;
    let concerned = match verb {
        Verb::Create | Verb::Patch if call.served.is("", "namespaces") => match call.made().get() {
            Some(made) => made,
            None => return,
        },
        // Kubernetes: these come back.
        Verb::Delete if call.served.is("", "serviceaccounts") && name == ACCOUNT => namespace,
        Verb::Delete
            if call.served.is("", "configmaps")
                && [AUTHORITY, TOKEN_TRACKING, AUTHENTICATION].contains(&name.as_str()) =>
        {
            namespace
        }
        _ => return,
    };
    if let Err(status) = Box::pin(furnish(&call.inner, concerned)).await {
        tracing::warn!(namespace = concerned, problem = status.message, "a namespace is not furnished");
    }
}

async fn furnish(inner: &Arc<Inner>, namespace: &str) -> Result<(), Status> {
    for (resource, manager, object) in wanted(inner, namespace) {
        make(inner, namespace, resource, manager, &object).await?;
    }
    Ok(())
}

/// The objects that a namespace should have, each with its resource and who its fields belong to.
fn wanted(inner: &Inner, namespace: &str) -> Vec<(&'static str, &'static str, Value)> {
    let mut wanted = Vec::new();
    if inner.fills_namespaces {
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
    // Only a server with an advertised address: an in-process server of a test creates no ConfigMaps of its own.
    if namespace == SYSTEM && inner.advertised.is_some() {
        let today = &Time::from(inner.world.wall()).to_string()[.."2006-01-02".len()];
        let tracking = json!({"metadata": {"name": TOKEN_TRACKING}, "data": {"since": today}});
        wanted.push(("configmaps", BY_SERVER, tracking));
        if let Some(authority) = &inner.authority {
            let data = json!({"client-ca-file": authority});
            wanted.push((
                "configmaps",
                BY_SERVER,
                json!({"metadata": {"name": AUTHENTICATION}, "data": data}),
            ));
        }
    }
    wanted
}

/// Creates an object that is not there yet.
async fn make(
    inner: &Arc<Inner>,
    namespace: &str,
    resource: &str,
    manager: &str,
    object: &Value,
) -> Result<(), Status> {
    let Some(served) = inner.registry.find("", "v1", resource) else { return Ok(()) };
    let name = object::name(object);
    if lookup::object(inner, ("", "v1", resource), namespace, name).await?.is_some() {
        return Ok(());
    }
    let target = Target {
        version: "v1".to_owned(),
        resource: resource.to_owned(),
        namespace: namespace.to_owned(),
        ..Target::default()
    };
    let options = Options { field_manager: manager.to_owned(), ..Options::default() };
    let call = Call::by_server(inner, authorize::itself(), served, target, options);
    match create::create(&call, object.to_string().into()).await {
        // Somebody else was faster, or the namespace is gone again.
        Err(status) if !matches!(status.code, 403 | 404 | 409) => Err(status),
        _ => Ok(()),
    }
}
