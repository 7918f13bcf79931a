//! What every namespace has for its pods: a service account, the CA of the server, tokens in secrets.

pub(crate) mod default_account;
pub(crate) mod root_ca;
pub(crate) mod token_cleaner;
pub(crate) mod token_secret;

use k8s_openapi::api::core::v1::Namespace;
use kube::{Api, api::PostParams};
use operator::{Failure, Kind, retry};
use serde::Serialize;

// Kubernetes: annotations of a token's secret.
const ACCOUNT_NAME: &str = "kubernetes.io/service-account.name";
const ACCOUNT_UID: &str = "kubernetes.io/service-account.uid";
/// Kubernetes: the type of a token's secret.
const TOKEN_TYPE: &str = "kubernetes.io/service-account-token";

fn is_active(namespace: &Namespace) -> bool {
    let phase = namespace.status.as_ref().and_then(|status| status.phase.as_deref());
    namespace.metadata.deletion_timestamp.is_none() && phase == Some("Active")
}

/// Creates an object that each namespace should have. `AlreadyExists` and `NamespaceTerminating` count as success.
async fn create_default<K: Kind + Serialize>(api: &Api<K>, object: &K) -> Result<(), Failure> {
    match api.create(&PostParams::default(), object).await {
        Err(error) if retry::is_conflict(&error) || crate::pod::is_namespace_terminating(&error) => Ok(()),
        result => Ok(result.map(drop)?),
    }
}
