//! CertificateSigningRequests: those of nodes are approved, approved ones are signed, old ones deleted.

pub(crate) mod approving;
mod authority;
pub(crate) mod cleaner;
mod request;
mod serving_names;
mod signer;
pub(crate) mod signing;
mod subject;
mod usage;

pub use authority::{SigningAuthority, UnusableAuthority};

use k8s_openapi::api::certificates::v1::{CertificateSigningRequest, CertificateSigningRequestCondition};

// Kubernetes: the types of conditions.
const APPROVED: &str = "Approved";
const DENIED: &str = "Denied";
const FAILED: &str = "Failed";

/// Kubernetes: so many.
const WORKERS: usize = 5;

fn conditions(csr: &CertificateSigningRequest) -> &[CertificateSigningRequestCondition] {
    csr.status.as_ref().and_then(|status| status.conditions.as_deref()).unwrap_or_default()
}

fn has(csr: &CertificateSigningRequest, condition: &str) -> bool {
    conditions(csr).iter().any(|it| it.type_ == condition)
}

fn is_true(csr: &CertificateSigningRequest, condition: &str) -> bool {
    conditions(csr).iter().any(|it| it.type_ == condition && it.status == "True")
}

/// The issued certificate, as PEM; empty if there is none.
fn issued(csr: &CertificateSigningRequest) -> &[u8] {
    csr.status
        .as_ref()
        .and_then(|status| status.certificate.as_ref())
        .map_or(&[], |certificate| &certificate.0)
}
