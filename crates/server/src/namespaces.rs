//! What follows from a new namespace: an account that its pods run as, and the authority that they trust.
//!
//! In Kubernetes two controllers do this a moment later. Here it happens within the request, as with definitions, until
//! controllers run in the same process.

use crate::{
    Inner, authorize, lookup,
    request::{Options, Target, Verb},
    verbs::{Call, create},
};
use api::{object, status::Status};
use serde_json::{Value, json};
use std::sync::Arc;

const ACCOUNT: &str = "default";
const AUTHORITY: &str = "kube-root-ca.crt";

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
        Verb::Delete if call.served.is("", "configmaps") && name == AUTHORITY => namespace,
        _ => return,
    };
    if let Err(status) = Box::pin(furnish(&call.inner, concerned)).await {
        tracing::warn!(namespace = concerned, problem = status.message, "a namespace is not furnished");
    }
}

async fn furnish(inner: &Arc<Inner>, namespace: &str) -> Result<(), Status> {
    make(inner, namespace, "serviceaccounts", &json!({"metadata": {"name": ACCOUNT}})).await?;
    let Some(authority) = &inner.authority else { return Ok(()) };
    let description = "Contains a CA bundle that can be used to verify the kube-apiserver when using internal \
                       endpoints such as the internal service IP or kubernetes.default.svc. No other usage is \
                       guaranteed across distributions of Kubernetes clusters.";
    let map = json!({
        "metadata": {"name": AUTHORITY, "annotations": {"kubernetes.io/description": description}},
        "data": {"ca.crt": authority},
    });
    make(inner, namespace, "configmaps", &map).await
}

/// Creates an object that is not there yet.
async fn make(inner: &Arc<Inner>, namespace: &str, resource: &str, object: &Value) -> Result<(), Status> {
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
    let options = Options { field_manager: "kube-controller-manager".to_owned(), ..Options::default() };
    let call = Call::by_server(inner, authorize::itself(), served, target, options);
    match create::create(&call, object.to_string().into()).await {
        // Somebody else was faster, or the namespace is gone again.
        Err(status) if !matches!(status.code, 403 | 404 | 409) => Err(status),
        _ => Ok(()),
    }
}
