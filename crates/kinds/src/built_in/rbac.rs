//! The kinds of `rbac.authorization.k8s.io`.

pub(crate) mod role;
pub(crate) mod role_binding;

const GROUP: &str = "rbac.authorization.k8s.io";
