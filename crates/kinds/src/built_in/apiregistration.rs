//! The kinds of `apiregistration.k8s.io`.

pub(crate) mod api_service;

const GROUP: &str = "apiregistration.k8s.io";
