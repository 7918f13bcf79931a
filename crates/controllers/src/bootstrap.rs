//! Bootstrap tokens, with which new nodes join: they sign `cluster-info`, and end when they expire.

pub(crate) mod signer;
mod token;
pub(crate) mod token_cleaner;

use k8s_openapi::api::core::v1::Secret;
use operator::{Source, all};

// Kubernetes: where bootstrap tokens are, and what they are called.
const TOKEN_NAMESPACE: &str = "kube-system";
const TOKEN_TYPE: &str = "bootstrap.kubernetes.io/token";

fn tokens() -> Source<Secret> {
    all::<Secret>().in_namespace(TOKEN_NAMESPACE).with_fields(&format!("type={TOKEN_TYPE}"))
}
