//! Requests of nodes for certificates are approved if the requester may ask for such; those for serving certificates only
//! for the node's own addresses.

use super::{
    APPROVED, DENIED, WORKERS, has, issued, request, request::CertificateRequest, serving_names, signer,
};
use k8s_openapi::api::{
    authorization::v1::{ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec},
    certificates::v1::{CertificateSigningRequest, CertificateSigningRequestCondition},
    core::v1::Node,
    rbac::v1::{ClusterRole, ClusterRoleBinding},
};
use kube::api::PostParams;
use operator::{
    Context, Controller, Failure, Key, Next, all,
    cache::View,
    predicate::{self, Predicate},
    retry,
};
use std::sync::Arc;

/// The index of requests that are neither approved nor denied.
const UNDECIDED: &str = "undecided";

pub(crate) fn controller() -> Controller {
    Controller::new("csrapproving", all::<CertificateSigningRequest>())
        .index(UNDECIDED, |csr| if is_undecided(csr) { vec![String::new()] } else { Vec::new() })
        // A requester may get the permission after the request.
        .watches_through(all::<ClusterRole>(), |requests, _| undecided(requests))
        .watches_through(all::<ClusterRoleBinding>(), |requests, _| undecided(requests))
        // A kubelet may ask for its serving certificate before its Node has the addresses, or while another one has them.
        .watches_through(all::<Node>().when(has_moved()), |requests, _| undecided_serving(requests))
        .workers(WORKERS)
        .reconcile((), reconcile)
}

/// A permission with which a node certificate is approved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Permission {
    subresource: &'static str,
    message: &'static str,
}

// Kubernetes: permissions and messages.
const OWN: Permission = Permission {
    subresource: "selfnodeclient",
    message: "Auto approving self kubelet client certificate after SubjectAccessReview.",
};
const ANY: Permission = Permission {
    subresource: "nodeclient",
    message: "Auto approving kubelet client certificate after SubjectAccessReview.",
};

// Not in Kubernetes, where someone else has to approve serving certificates.
const OWN_SERVING: Permission = Permission {
    subresource: "selfnodeserver",
    message: "Auto approving self kubelet serving certificate for the addresses of its Node after SubjectAccessReview.",
};

async fn reconcile(context: Context<()>, key: Key) -> Result<Next, Failure> {
    let Some(csr) = context.get::<CertificateSigningRequest>(&key)? else { return Ok(Next::Settled) };
    let nodes =
        if csr.spec.signer_name == signer::KUBELET_SERVING { context.view()?.list()? } else { Vec::new() };
    let plan = plan(&csr, &nodes);
    if let Some(problem) = plan.problem {
        tracing::info!(request = key.name(), problem, "serving certificate is not approved");
    }
    for permission in plan.permissions {
        if !is_allowed(&context, &csr, *permission).await? {
            continue;
        }
        let mut approved = CertificateSigningRequest::clone(&csr);
        let conditions = approved.status.get_or_insert_default().conditions.get_or_insert_default();
        conditions.push(CertificateSigningRequestCondition {
            type_: APPROVED.to_owned(),
            status: "True".to_owned(),
            reason: Some("AutoApproved".to_owned()),
            message: Some(permission.message.to_owned()),
            ..CertificateSigningRequestCondition::default()
        });
        let requests = context.cluster::<CertificateSigningRequest>();
        return match requests
            .replace_subresource("approval", key.name(), &PostParams::default(), &approved)
            .await
        {
            Err(error) if retry::is_missing(&error) => Ok(Next::Settled),
            result => Ok(result.map(|_| Next::Settled)?),
        };
    }
    Ok(Next::Settled)
}

/// What it takes to approve a request.
#[derive(Debug, Default)]
struct ApprovalPlan {
    /// One of these is enough; none if the request is not that of a node, or decided.
    permissions: &'static [Permission],
    /// Why it takes someone else to approve it.
    problem: Option<String>,
}

fn plan(csr: &CertificateSigningRequest, nodes: &[Arc<Node>]) -> ApprovalPlan {
    if !is_undecided(csr) {
        return ApprovalPlan::default();
    }
    let Ok(request) = request::parse(&csr.spec.request.0) else { return ApprovalPlan::default() };
    let usages = csr.spec.usages.as_deref().unwrap_or_default();
    let only = |permissions: &'static [Permission]| ApprovalPlan { permissions, problem: None };
    match csr.spec.signer_name.as_str() {
        signer::KUBELET_CLIENT if signer::check_kubelet_client(&request, usages).is_err() => {
            ApprovalPlan::default()
        }
        signer::KUBELET_CLIENT if is_own(csr, &request) => only(&[OWN, ANY]),
        signer::KUBELET_CLIENT => only(&[ANY]),
        signer::KUBELET_SERVING => match serving_names::check(csr, &request, nodes) {
            Ok(()) => only(&[OWN_SERVING]),
            Err(problem) => ApprovalPlan { permissions: &[], problem: Some(problem) },
        },
        _ => ApprovalPlan::default(),
    }
}

fn is_own(csr: &CertificateSigningRequest, request: &CertificateRequest) -> bool {
    csr.spec.username.as_deref() == Some(request.subject.common_name())
}

fn is_undecided(csr: &CertificateSigningRequest) -> bool {
    issued(csr).is_empty() && !has(csr, APPROVED) && !has(csr, DENIED)
}

fn undecided(requests: &View<CertificateSigningRequest>) -> Vec<Key> {
    let found = requests.indexed(UNDECIDED, "").unwrap_or_default();
    found.iter().map(|csr| Key::of(&**csr)).collect()
}

/// Nodes report much, and seldom another address.
fn has_moved() -> Predicate {
    let addresses = |node: &Node| node.status.as_ref().and_then(|status| status.addresses.clone());
    predicate::typed(move |before, after| addresses(before) != addresses(after))
}

/// The undecided requests for serving certificates: they wait for an address of their Node, or for another Node to lose it.
fn undecided_serving(requests: &View<CertificateSigningRequest>) -> Vec<Key> {
    let found = requests.indexed(UNDECIDED, "").unwrap_or_default();
    let serving = found.iter().filter(|csr| csr.spec.signer_name == signer::KUBELET_SERVING);
    serving.map(|csr| Key::of(&**csr)).collect()
}

async fn is_allowed(
    context: &Context<()>,
    csr: &CertificateSigningRequest,
    permission: Permission,
) -> Result<bool, Failure> {
    let attributes = ResourceAttributes {
        group: Some("certificates.k8s.io".to_owned()),
        resource: Some("certificatesigningrequests".to_owned()),
        subresource: Some(permission.subresource.to_owned()),
        verb: Some("create".to_owned()),
        version: Some("*".to_owned()),
        ..ResourceAttributes::default()
    };
    let spec = SubjectAccessReviewSpec {
        user: csr.spec.username.clone(),
        uid: csr.spec.uid.clone(),
        groups: csr.spec.groups.clone(),
        extra: csr.spec.extra.clone(),
        resource_attributes: Some(attributes),
        ..SubjectAccessReviewSpec::default()
    };
    let review = SubjectAccessReview { spec, ..SubjectAccessReview::default() };
    let reviews = context.cluster::<SubjectAccessReview>();
    let answer = reviews.create(&PostParams::default(), &review).await?;
    Ok(answer.status.is_some_and(|status| status.allowed))
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::ByteString;
    use rcgen::{CertificateParams, DnType, KeyPair};
    use serde_json::json;

    #[test]
    fn a_node_needs_the_permission_for_itself_or_for_any_node() {
        let pem = |name: &str| {
            let mut params = CertificateParams::default();
            params.distinguished_name.push(DnType::CommonName, name);
            params.distinguished_name.push(DnType::OrganizationName, "system:nodes");
            let pem = params.serialize_request(&KeyPair::generate().unwrap()).unwrap().pem().unwrap();
            ByteString(pem.into_bytes())
        };
        let (node, jane) = (pem("system:node:a"), pem("jane"));
        let kubelet = "kubernetes.io/kube-apiserver-client-kubelet";
        for (signer, request, user, decision, expected) in [
            (kubelet, &node, "system:node:a", None, &["selfnodeclient", "nodeclient"][..]),
            (kubelet, &node, "system:bootstrap:abcdef", None, &["nodeclient"]),
            (kubelet, &node, "system:node:a", Some("Approved"), &[]),
            (kubelet, &node, "system:node:a", Some("Denied"), &[]),
            (kubelet, &jane, "jane", None, &[]),
            ("kubernetes.io/kube-apiserver-client", &node, "system:node:a", None, &[]),
            ("kubernetes.io/kubelet-serving", &node, "system:node:a", None, &[]),
        ] {
            let conditions: Vec<_> =
                decision.iter().map(|it| json!({"type": it, "status": "True"})).collect();
            let spec = json!({"request": request, "signerName": signer, "username": user,
                "usages": ["client auth", "digital signature"]});
            let csr = json!({"spec": spec, "status": {"conditions": conditions}});
            let csr = serde_json::from_value(csr).unwrap();
            let found: Vec<&str> = plan(&csr, &[]).permissions.iter().map(|it| it.subresource).collect();
            assert_eq!(found, expected, "{signer} {user} {decision:?}");
        }
    }
}
