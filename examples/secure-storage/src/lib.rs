//! Phases computed from observed state: a storage account, its identity, the key vault's permission,
//! encryption with the customer's key. Each reconcile continues from the state that it observes.

pub mod cloud;
mod plan;

pub use cloud::{KeyVaultAccess, KeyVaultAccessSpec, StorageAccount, StorageAccountSpec};
pub use plan::{Plan, plan};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::CustomResource;
use operator::{
    Context, Controller, Failure, Key, Next, all,
    apply::{Force, Set},
    condition, name, status,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

const NAME: &str = "secure-storage";

/// Storage that is encrypted with a key of the customer's.
#[derive(CustomResource, Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "example.com",
    version = "v1",
    kind = "SecureStorage",
    namespaced,
    status = "SecureStorageStatus",
    printcolumn = r#"{"name":"Phase","type":"string","jsonPath":".status.phase"}"#
)]
#[serde(rename_all = "camelCase")]
pub struct SecureStorageSpec {
    /// The vault that holds the key.
    #[schemars(length(min = 1, max = 63))]
    pub key_vault: String,
    /// The key within it.
    #[schemars(length(min = 1, max = 63))]
    pub key_name: String,
}

/// What is known about it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SecureStorageStatus {
    /// The generation of the object that this speaks of.
    pub observed_generation: Option<i64>,
    /// How far it is, for people: nothing is ever decided by it.
    pub phase: Option<String>,
    #[serde(default)]
    #[schemars(schema_with = "operator::condition::schema")]
    pub conditions: Vec<Condition>,
}

pub fn controller() -> Controller {
    Controller::new(NAME, all::<SecureStorage>())
        .owns(all::<StorageAccount>())
        .owns(all::<KeyVaultAccess>())
        .applies::<StorageAccount>()
        .applies::<KeyVaultAccess>()
        .reconcile((), reconcile)
}

async fn reconcile(context: Context<()>, key: Key) -> Result<Next, Failure> {
    let Some(storage) = context.get::<SecureStorage>(&key)? else { return Ok(Next::Settled) };
    if storage.metadata.deletion_timestamp.is_some() {
        return Ok(Next::Settled); // its children are garbage-collected
    }
    let child = Key::new(key.namespace(), &name::child(key.name(), "storage"));
    let (account, access) = (context.get::<StorageAccount>(&child)?, context.get::<KeyVaultAccess>(&child)?);
    let Plan { account, access, progress } =
        plan(&storage, child.name(), account.as_deref(), access.as_deref());

    let mut set = Set::of(storage.as_ref(), NAME)?;
    set.add(account)?;
    if let Some(access) = access {
        set.add(access)?;
    }
    set.apply(&context.client(), Force::Yes).await?;

    let mut observed = storage.status.clone().unwrap_or_default();
    condition::set(&mut observed.conditions, progress.report("Ready").of(storage.as_ref()), context.wall());
    observed.observed_generation = storage.metadata.generation;
    observed.phase = Some(progress.name().to_owned());
    status::set(&context.namespaced::<SecureStorage>(&key), &storage, &observed).await?;
    // A change of its children triggers a reconcile: no polling.
    Ok(progress.phase.map_or(Next::Settled, Next::WaitFor))
}
