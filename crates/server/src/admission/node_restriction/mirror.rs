//! Pods that a kubelet may create: mirror pods, which may not reference API objects.

use super::super::Review;
use crate::{lookup, refusal::Refusal};
use api::{go, kind::GroupResource, object};
use serde_json::Value;

const MIRROR: &str = "kubernetes.io/config.mirror";

pub(super) async fn check(review: &Review<'_>, node: &str) -> Result<(), Refusal> {
    let (pod, quoted) = (&review.object, go::quote(node));
    if object::annotation(pod, MIRROR).is_none() {
        return Err(review.forbidden(format!(
            "pod does not have \"{MIRROR}\" annotation, node {quoted} can only create mirror pods"
        )));
    }
    let refuse = |text: &str| Err(review.forbidden(format!("node {quoted} {text}")));
    if pod["spec"]["nodeName"] != node {
        return refuse("can only create pods with spec.nodeName set to itself");
    }
    let owners: Vec<_> = object::owner_references(pod).collect();
    let owner = match &owners[..] {
        [owner] => *owner,
        [] => return refuse("can only create pods with an owner reference set to itself"),
        _ => return refuse("can only create pods with a single owner reference set to itself"),
    };
    if owner["apiVersion"] != "v1" || owner["kind"] != "Node" || owner["name"] != node {
        return refuse("can only create pods with an owner reference set to itself");
    }
    if owner["controller"] != true {
        return refuse("can only create pods with a controller owner reference set to itself");
    }
    if owner["blockOwnerDeletion"] == true {
        return refuse("must not set blockOwnerDeletion on an owner reference");
    }
    let found = lookup::object(&review.call.inner, ("", "v1", "nodes"), "", node).await?;
    let found = found.ok_or_else(|| Refusal::not_found(&GroupResource::new("", "node"), node))?;
    let (said, uid) = (owner["uid"].as_str().unwrap_or_default(), object::uid(&found));
    if said != uid {
        return Err(review.forbidden(format!("node {node} UID mismatch: expected {said} got {uid}")));
    }
    match needs(&pod["spec"]) {
        Some(what) => refuse(&format!("can not create pods that reference {what}")),
        None => Ok(()),
    }
}

/// The kind of API object that a pod references, if any.
fn needs(spec: &Value) -> Option<&'static str> {
    if spec["serviceAccountName"].as_str().is_some_and(|name| !name.is_empty()) {
        return Some("serviceaccounts");
    }
    let lists = ["containers", "initContainers", "ephemeralContainers"];
    let containers: Vec<_> = lists.iter().flat_map(|list| spec[list].as_array()).flatten().collect();
    let volumes = || spec["volumes"].as_array().into_iter().flatten();
    let reads = |variable: &str, source: &str| {
        containers.iter().any(|container| {
            let list = |field: &str| container[field].as_array().into_iter().flatten();
            list("env").any(|it| it["valueFrom"][variable].is_object())
                || list("envFrom").any(|it| it[source].is_object())
        })
    };
    let mounts = |field: &str| {
        volumes().any(|volume| {
            let mut projected = volume["projected"]["sources"].as_array().into_iter().flatten();
            volume[field].is_object() || projected.any(|source| source[field].is_object())
        })
    };
    let has_pull_secrets = spec["imagePullSecrets"].as_array().is_some_and(|list| !list.is_empty());
    if has_pull_secrets || reads("secretKeyRef", "secretRef") || mounts("secret") || names_secret(spec) {
        return Some("secrets");
    }
    if reads("configMapKeyRef", "configMapRef") || mounts("configMap") {
        return Some("configmaps");
    }
    if spec["resourceClaims"].as_array().is_some_and(|list| !list.is_empty()) {
        return Some("resourceclaims");
    }
    volumes().find_map(of_volume)
}

/// Older volume types reference secrets, too.
fn names_secret(spec: &Value) -> bool {
    let places = [
        "azureFile/secretName",
        "cephfs/secretRef",
        "cinder/secretRef",
        "csi/nodePublishSecretRef",
        "flexVolume/secretRef",
        "iscsi/secretRef",
        "rbd/secretRef",
        "scaleIO/secretRef",
        "storageos/secretRef",
    ];
    let mut volumes = spec["volumes"].as_array().into_iter().flatten();
    volumes.any(|volume| {
        places.iter().any(|place| volume.pointer(&format!("/{place}")).is_some_and(|it| !it.is_null()))
    })
}

fn of_volume(volume: &Value) -> Option<&'static str> {
    let plain = [
        ("csi", "csidrivers (via CSI volumes)"),
        ("glusterfs", "endpoints (via glusterFS volumes)"),
        ("persistentVolumeClaim", "persistentvolumeclaims"),
        ("ephemeral", "persistentvolumeclaims (via ephemeral volumes)"),
        ("azureFile", "secrets (via azureFile volumes)"),
    ];
    let projected = [
        ("serviceAccountToken", "serviceaccounts (via projected volumes)"),
        ("clusterTrustBundle", "clustertrustbundles"),
        ("podCertificate", "podcertificates"),
    ];
    let sources = volume["projected"]["sources"].as_array().into_iter().flatten();
    let found = plain.iter().find(|(field, _)| volume[field].is_object()).map(|(_, what)| *what);
    found.or_else(|| {
        let mut all =
            sources.flat_map(|source| projected.iter().filter(|(field, _)| source[field].is_object()));
        all.next().map(|(_, what)| *what)
    })
}
