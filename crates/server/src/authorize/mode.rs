//! Modes of authorization, by the names of kube-apiserver's `--authorization-mode`.

use std::str::FromStr;

/// Who decides what a user may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuthorizationMode {
    /// Kubelets may read what their pods use.
    Node,
    /// Roles and bindings.
    Rbac,
    /// Everybody may do everything.
    AlwaysAllow,
    /// Only system:masters may do anything.
    AlwaysDeny,
}

/// Why a mode cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadAuthorizationMode {
    // Kubernetes: its text.
    #[error("authorization-mode {0:?} is not a valid mode")]
    Unknown(String),
    #[error("authorization-mode {0:?} has no code here; use Node, RBAC, AlwaysAllow or AlwaysDeny")]
    Absent(String),
}

impl FromStr for AuthorizationMode {
    type Err = BadAuthorizationMode;

    fn from_str(text: &str) -> Result<AuthorizationMode, BadAuthorizationMode> {
        match text {
            "Node" => Ok(AuthorizationMode::Node),
            "RBAC" => Ok(AuthorizationMode::Rbac),
            "AlwaysAllow" => Ok(AuthorizationMode::AlwaysAllow),
            "AlwaysDeny" => Ok(AuthorizationMode::AlwaysDeny),
            "ABAC" | "Webhook" => Err(BadAuthorizationMode::Absent(text.to_owned())),
            _ => Err(BadAuthorizationMode::Unknown(text.to_owned())),
        }
    }
}
