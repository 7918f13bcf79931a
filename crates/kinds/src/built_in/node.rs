//! The kinds of `node.k8s.io`.

pub(crate) mod runtime_class;

const GROUP: &str = "node.k8s.io";
