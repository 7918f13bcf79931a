//! CertificateApproval, CertificateSigning, CertificateSubjectRestriction, ClusterTrustBundleAttest: who may speak for
//! a signer, and what nobody gets a certificate for.

use super::{Operation, Review};
use crate::authorize::{self, Attributes, OnResource};
use api::{go, object, status::Status};
use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::Value;
use x509_parser::{certification_request::X509CertificationRequest, pem::parse_x509_pem, prelude::FromDer};

const GROUP: &str = "certificates.k8s.io";
const REQUESTS: &str = "certificatesigningrequests";
const BUNDLES: &str = "clustertrustbundles";
const CLIENT_SIGNER: &str = "kubernetes.io/kube-apiserver-client";

/// Whom a certificate is asked for.
#[derive(Debug, Default)]
pub(super) struct Subject {
    pub(super) common_name: String,
    pub(super) organizations: Vec<String>,
}

pub(super) async fn check(review: &Review<'_>) -> Result<(), Status> {
    if review.call.served.is(GROUP, REQUESTS) {
        match (review.call.target.subresource.as_str(), review.operation, review.old) {
            ("approval", Operation::Update, Some(old)) => {
                demand(review, "approve", signer(old), "approve requests with").await?;
            }
            ("status", Operation::Update, Some(old)) if is_signed(&review.object, old) => {
                demand(review, "sign", signer(old), "sign requests with").await?;
            }
            ("", Operation::Create, _) => check_subject(review)?,
            _ => {}
        }
    }
    let is_claim = match (review.operation, review.old) {
        (Operation::Create, _) => true,
        (Operation::Update, Some(old)) => without_links(&review.object) != without_links(old),
        _ => false,
    };
    if review.call.served.is(GROUP, BUNDLES) && is_claim && !signer(&review.object).is_empty() {
        demand(review, "attest", signer(&review.object), "attest for").await?;
    }
    Ok(())
}

fn signer(object: &Value) -> &str {
    object["spec"]["signerName"].as_str().unwrap_or_default()
}

fn is_signed(new: &Value, old: &Value) -> bool {
    ["certificate", "conditions"].iter().any(|field| new["status"][field] != old["status"][field])
}

/// Kubernetes: the garbage collector may always do its work.
fn without_links(object: &Value) -> Value {
    let mut object = object.clone();
    for field in ["ownerReferences", "finalizers", "managedFields", "resourceVersion", "generation"] {
        object::metadata_mut(&mut object).remove(field);
    }
    object
}

/// A verb on a signer, or on all signers of its domain.
async fn demand(review: &Review<'_>, verb: &str, signer: &str, what: &str) -> Result<(), Status> {
    let domain = format!("{}/*", signer.split('/').next().unwrap_or_default());
    for name in [signer, &domain] {
        let wanted = OnResource { verb, group: GROUP, resource: "signers", name, ..OnResource::default() };
        let caller = review.call.permit.caller();
        if authorize::allows(&review.call.inner, caller, &Attributes::Resource(wanted)).await?.is_allowed {
            return Ok(());
        }
    }
    Err(review.forbidden(format!("user not permitted to {what} signerName {}", go::quote(signer))))
}

/// Nobody becomes a master by asking for it.
fn check_subject(review: &Review<'_>) -> Result<(), Status> {
    if signer(&review.object) != CLIENT_SIGNER {
        return Ok(());
    }
    let subject = subject(&review.object);
    let subject = subject.map_err(|problem| review.forbidden(format!("failed to parse CSR: {problem}")))?;
    if subject.organizations.iter().any(|group| group == authorize::MASTERS) {
        let text = format!("use of {CLIENT_SIGNER} signer with system:masters group is not allowed");
        return Err(review.forbidden(text));
    }
    Ok(())
}

/// Reads whom a request is for.
pub(super) fn subject(request: &Value) -> Result<Subject, &'static str> {
    const NOT_PEM: &str = "PEM block type must be CERTIFICATE REQUEST";
    let text = request["spec"]["request"].as_str().unwrap_or_default();
    let text = STANDARD.decode(text).map_err(|_| NOT_PEM)?;
    let (_, pem) = parse_x509_pem(&text).map_err(|_| NOT_PEM)?;
    if pem.label != "CERTIFICATE REQUEST" {
        return Err(NOT_PEM);
    }
    let parsed = X509CertificationRequest::from_der(&pem.contents);
    let (_, parsed) = parsed.map_err(|_| "asn1: structure error: the request is not well-formed")?;
    let name = &parsed.certification_request_info.subject;
    let texts =
        |attribute: &x509_parser::x509::AttributeTypeAndValue<'_>| attribute.as_str().ok().map(str::to_owned);
    Ok(Subject {
        common_name: name.iter_common_name().filter_map(texts).last().unwrap_or_default(),
        organizations: name.iter_organization().filter_map(texts).collect(),
    })
}
