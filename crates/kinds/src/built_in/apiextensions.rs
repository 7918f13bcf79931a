//! The kinds of `apiextensions.k8s.io`.

pub(crate) mod custom_resource_definition;

const GROUP: &str = "apiextensions.k8s.io";
