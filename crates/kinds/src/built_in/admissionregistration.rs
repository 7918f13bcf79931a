//! The kinds of `admissionregistration.k8s.io`.

pub(crate) mod admission_policy;
pub(crate) mod admission_policy_binding;
pub(crate) mod webhook_configuration;

const GROUP: &str = "admissionregistration.k8s.io";
