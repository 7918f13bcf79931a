//! The kinds of a cloud's own operator, and a fake of that operator.

use kube::CustomResource;
use operator::{Context, Controller, Failure, Key, Next, all, status};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A storage account in the cloud.
#[derive(CustomResource, Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "cloud.example.com",
    version = "v1",
    kind = "StorageAccount",
    namespaced,
    derive = "PartialEq",
    status = "StorageAccountStatus"
)]
pub struct StorageAccountSpec {
    /// Whose name the account acts in.
    pub identity: Identity,
    /// The key that it is encrypted with; without, the cloud's own.
    pub encryption: Option<Encryption>,
}

/// Whose name an account acts in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Identity {
    /// One that the cloud makes for it.
    SystemAssigned,
}

/// A key in a vault.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Encryption {
    /// The vault.
    pub key_vault: String,
    /// The key within it.
    pub key_name: String,
}

/// What the cloud says about the account.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StorageAccountStatus {
    /// The identity that the cloud has made, some time after the account.
    pub principal_id: Option<String>,
    /// The key that is in use.
    pub encrypted_with: Option<Encryption>,
}

/// The permission of an identity to use a vault.
#[derive(CustomResource, Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "cloud.example.com",
    version = "v1",
    kind = "KeyVaultAccess",
    plural = "keyvaultaccesses",
    namespaced,
    derive = "PartialEq",
    status = "KeyVaultAccessStatus"
)]
#[serde(rename_all = "camelCase")]
pub struct KeyVaultAccessSpec {
    /// The vault.
    pub vault: String,
    /// Who may use it.
    pub principal_id: String,
}

/// What the cloud says about the permission.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KeyVaultAccessStatus {
    /// Who may use the vault now.
    pub granted_to: Option<String>,
}

/// A fake cloud: creates what is requested after a while.
pub fn controllers(delay: std::time::Duration) -> [Controller; 2] {
    [
        Controller::new("cloud-accounts", all::<StorageAccount>()).reconcile(delay, serve_account),
        Controller::new("cloud-accesses", all::<KeyVaultAccess>()).reconcile((), serve_access),
    ]
}

async fn serve_account(context: Context<std::time::Duration>, key: Key) -> Result<Next, Failure> {
    let Some(account) = context.get::<StorageAccount>(&key)? else { return Ok(Next::Settled) };
    let born = account.metadata.creation_timestamp.as_ref().map(|time| time.0);
    let age = born.map(|born| context.wall().duration_since(born)).unwrap_or_default();
    let (age, delay) = (age.unsigned_abs(), *context.state());
    if age < delay {
        return Ok(Next::CheckAfter(delay - age));
    }
    let uid = account.metadata.uid.clone().unwrap_or_default();
    let observed = StorageAccountStatus {
        principal_id: Some(format!("principal-of-{uid}")),
        encrypted_with: account.spec.encryption.clone(),
    };
    status::set(&context.namespaced::<StorageAccount>(&key), account.as_ref(), &observed).await?;
    Ok(Next::Settled)
}

async fn serve_access(context: Context<()>, key: Key) -> Result<Next, Failure> {
    let Some(access) = context.get::<KeyVaultAccess>(&key)? else { return Ok(Next::Settled) };
    let observed = KeyVaultAccessStatus { granted_to: Some(access.spec.principal_id.clone()) };
    status::set(&context.namespaced::<KeyVaultAccess>(&key), access.as_ref(), &observed).await?;
    Ok(Next::Settled)
}
