//! NodeRestriction: a kubelet may write only its own node and its own pods.

mod audience;
mod mirror;

use super::{Operation, Review, certificate};
use crate::{authorize, lookup, refusal::Refusal};
use api::{go, kind::GroupResource, object};
use serde_json::Value;
use std::collections::BTreeSet;

const LEASES: &str = "kube-node-lease";

/// Labels with Kubernetes' own prefixes that a kubelet may set.
const OWN_LABELS: [&str; 11] = [
    "kubernetes.io/hostname",
    "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region",
    "beta.kubernetes.io/instance-type",
    "node.kubernetes.io/instance-type",
    "kubernetes.io/os",
    "kubernetes.io/arch",
    "beta.kubernetes.io/os",
    "beta.kubernetes.io/arch",
];
const OWN_PREFIXES: [&str; 2] = ["kubelet.kubernetes.io", "node.kubernetes.io"];
const RESTRICTED_PREFIX: &str = "node-restriction.kubernetes.io";

/// Signers of kubelet certificates.
const NODE_SIGNERS: [&str; 2] =
    ["kubernetes.io/kubelet-serving", "kubernetes.io/kube-apiserver-client-kubelet"];

pub(super) async fn check(review: &Review<'_>) -> Result<(), Refusal> {
    let caller = review.call.caller();
    let Some(node) = authorize::node_identity(caller) else { return Ok(()) };
    if node.is_empty() {
        let user = go::quote(&caller.name);
        return Err(review.forbidden(format!("could not determine node from user {user}")));
    }
    let subresource = review.call.target.subresource.as_str();
    let resource = &review.call.served.resource;
    match (&*resource.group, &*resource.name, subresource) {
        ("", "pods", "") => check_pod(review, node).await,
        ("", "pods", "status") => check_pod_status(review, node),
        ("", "pods", "eviction") => check_eviction(review, node).await,
        ("", "pods", other) => Err(review.forbidden(format!(
            "unexpected pod subresource {}, only 'status' and 'eviction' are allowed",
            go::quote(other)
        ))),
        ("", "nodes", _) => check_node(review, node),
        ("", "persistentvolumeclaims", "status") => check_claim_status(review, node),
        ("", "persistentvolumeclaims", _) => Err(review.forbidden("may only update PVC status")),
        ("", "serviceaccounts", "token") => audience::check(review, node).await,
        ("coordination.k8s.io", "leases", _) if review.namespace() != LEASES => {
            Err(review.forbidden(format!("can only access leases in the \"{LEASES}\" system namespace")))
        }
        ("coordination.k8s.io", "leases", _) if review.name() != node => {
            Err(review.forbidden("can only access node lease with the same name as the requesting node"))
        }
        ("storage.k8s.io", "csinodes", _) if review.name() != node => {
            Err(review.forbidden("can only access CSINode with the same name as the requesting node"))
        }
        ("resource.k8s.io", "resourceslices", _) => check_slice(review, node),
        ("certificates.k8s.io", "certificatesigningrequests", _) => check_request(review, node),
        _ => Ok(()),
    }
}

fn unexpected(review: &Review<'_>) -> Refusal {
    review.forbidden(format!("unexpected operation \"{}\"", review.operation.text()))
}

/// The stored pod of the request.
async fn pod(review: &Review<'_>, name: &str) -> Result<Value, Refusal> {
    let found = lookup::object(&review.call.inner, ("", "v1", "pods"), review.namespace(), name).await?;
    // Kubernetes: the text has the singular `pod`.
    found.ok_or_else(|| Refusal::not_found(&GroupResource::new("", "pod"), name))
}

async fn check_pod(review: &Review<'_>, node: &str) -> Result<(), Refusal> {
    let quoted = go::quote(node);
    match review.operation {
        Operation::Create => mirror::check(review, node).await,
        Operation::Delete if pod(review, review.name()).await?["spec"]["nodeName"] != node => {
            let text = format!("node {quoted} can only delete pods with spec.nodeName set to itself");
            Err(review.forbidden(text))
        }
        Operation::Delete | Operation::Connect => Ok(()),
        Operation::Update => Err(review.forbidden(format!(
            "unexpected operation \"UPDATE\", node {quoted} can only create and delete mirror pods"
        ))),
    }
}

fn check_pod_status(review: &Review<'_>, node: &str) -> Result<(), Refusal> {
    let Some(old) = review.old.filter(|_| review.operation == Operation::Update) else {
        return Err(unexpected(review));
    };
    let (new, quoted) = (&review.object, go::quote(node));
    let refuse = |text: &str| Err(review.forbidden(format!("node {quoted} {text}")));
    if old["spec"]["nodeName"] != node {
        return refuse("can only update pod status for pods with spec.nodeName set to itself");
    }
    let labels = |of: &Value| object::labels(of).cloned().unwrap_or_default();
    if labels(old) != labels(new) {
        return refuse("cannot update labels through pod status");
    }
    let claims = |of: &Value| of["status"]["resourceClaimStatuses"].as_array().cloned().unwrap_or_default();
    if claims(old) != claims(new) {
        return refuse("cannot update resource claim statues");
    }
    if old["status"]["extendedResourceClaimStatus"] != new["status"]["extendedResourceClaimStatus"] {
        return refuse("cannot update extended resource claim status");
    }
    Ok(())
}

async fn check_eviction(review: &Review<'_>, node: &str) -> Result<(), Refusal> {
    if review.operation != Operation::Create {
        return Err(review.forbidden(format!("unexpected operation {}", review.operation.text())));
    }
    match pod(review, review.name()).await?["spec"]["nodeName"] == node {
        true => Ok(()),
        false => {
            let text = format!("node {node} can only evict pods with spec.nodeName set to itself");
            Err(review.forbidden(text))
        }
    }
}

fn check_node(review: &Review<'_>, node: &str) -> Result<(), Refusal> {
    let (new, quoted) = (&review.object, go::quote(node));
    if review.name() != node {
        let other = go::quote(review.name());
        return Err(review.forbidden(format!("node {quoted} is not allowed to modify node {other}")));
    }
    let refuse = |text: &str| Err(review.forbidden(format!("node {quoted} is not allowed to {text}")));
    let source = &new["spec"]["configSource"];
    match (review.operation, review.old) {
        (Operation::Create, _) => {
            if !source.is_null() {
                return refuse("create pods with a non-nil configSource");
            }
            match forbidden_labels(new, None).join(", ").as_str() {
                "" => Ok(()),
                labels => refuse(&format!("set the following labels: {labels}")),
            }
        }
        (Operation::Update, Some(old)) => {
            let list = |of: &Value| of.as_array().cloned().unwrap_or_default();
            if !source.is_null() && *source != old["spec"]["configSource"] {
                return refuse("update configSource to a new non-nil configSource");
            }
            if list(&new["spec"]["taints"]) != list(&old["spec"]["taints"]) {
                return refuse("modify taints");
            }
            if list(&new["metadata"]["ownerReferences"]) != list(&old["metadata"]["ownerReferences"]) {
                return refuse("modify ownerReferences");
            }
            match forbidden_labels(new, Some(old)).join(", ").as_str() {
                "" => Ok(()),
                labels => Err(review.forbidden(format!("is not allowed to modify labels: {labels}"))),
            }
        }
        _ => Ok(()),
    }
}

/// Changed labels that a kubelet may not change.
fn forbidden_labels<'a>(new: &'a Value, old: Option<&'a Value>) -> Vec<&'a str> {
    let keys = |of: &'a Value| object::labels(of).into_iter().flatten().map(|(key, _)| key.as_str());
    let all: BTreeSet<_> = keys(new).chain(old.into_iter().flat_map(keys)).collect();
    let is_changed = |key: &str| object::label(new, key) != old.and_then(|old| object::label(old, key));
    all.into_iter().filter(|key| is_changed(key) && !is_own_label(key)).collect()
}

fn is_own_label(key: &str) -> bool {
    let prefix = key.split_once('/').map(|(prefix, _)| prefix).unwrap_or_default();
    let is_under = |domain: &str| {
        prefix == domain || prefix.strip_suffix(domain).is_some_and(|rest| rest.ends_with('.'))
    };
    let is_reserved = is_under("kubernetes.io") || is_under("k8s.io");
    let is_allowed = OWN_LABELS.contains(&key) || OWN_PREFIXES.into_iter().any(is_under);
    !is_under(RESTRICTED_PREFIX) && (!is_reserved || is_allowed)
}

fn check_claim_status(review: &Review<'_>, node: &str) -> Result<(), Refusal> {
    let Some(old) = review.old.filter(|_| review.operation == Operation::Update) else {
        return Err(unexpected(review));
    };
    let others = |claim: &Value| {
        let mut claim = claim.clone();
        for field in ["resourceVersion", "managedFields"] {
            object::metadata_mut(&mut claim).remove(field);
        }
        for field in ["capacity", "conditions", "allocatedResourceStatuses", "allocatedResources"] {
            claim["status"].as_object_mut().and_then(|status| status.remove(field));
        }
        claim
    };
    let (new, old) = (others(&review.object), others(old));
    let changed = |part: &&str| new[part] != old[part];
    let changed: Vec<_> = ["metadata", "spec", "status"].into_iter().filter(changed).collect();
    if changed.is_empty() {
        return Ok(());
    }
    Err(review.forbidden(format!(
        "node {} is not allowed to update fields other than status.quantity and status.conditions: {}",
        go::quote(node),
        changed.join(", ")
    )))
}

fn check_slice(review: &Review<'_>, node: &str) -> Result<(), Refusal> {
    let (slice, verb) = match (review.operation, review.old) {
        (Operation::Create, _) => (&review.object, "create"),
        (Operation::Delete, Some(old)) => (old, "delete"),
        _ => return Ok(()),
    };
    if slice["spec"]["nodeName"] == node {
        return Ok(());
    }
    let text = format!("can only {verb} ResourceSlice with the same NodeName as the requesting node");
    Err(review.forbidden(text))
}

fn check_request(review: &Review<'_>, node: &str) -> Result<(), Refusal> {
    let signer = review.object["spec"]["signerName"].as_str().unwrap_or_default();
    if review.operation != Operation::Create || !NODE_SIGNERS.contains(&signer) {
        return Ok(());
    }
    let subject = certificate::subject(&review.object);
    let subject = subject.map_err(|problem| review.forbidden(format!("unable to parse csr: {problem}")))?;
    if subject.common_name == format!("system:node:{node}") {
        return Ok(());
    }
    Err(review.forbidden(format!("can only create a node CSR with CN=system:node:{node}")))
}
