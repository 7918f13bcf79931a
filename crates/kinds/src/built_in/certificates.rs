//! The kinds of `certificates.k8s.io`.

pub(crate) mod certificate_signing_request;

const GROUP: &str = "certificates.k8s.io";
