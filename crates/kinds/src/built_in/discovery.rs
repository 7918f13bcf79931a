//! The kinds of `discovery.k8s.io`.

pub(crate) mod endpoint_slice;

const GROUP: &str = "discovery.k8s.io";
