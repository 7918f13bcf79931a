//! The phases, forwards and backwards, with a control plane in the test.

use example_secure_storage::{
    KeyVaultAccess, SecureStorage, SecureStorageSpec, StorageAccount, cloud, controller, plan,
};
use kube::ResourceExt;
use operator::{Manager, Running, definition, owner};
use serde_json::json;
use std::time::Duration;
use testkit::Cluster;

const VAULTED: &str = "{apiVersion: example.com/v1, kind: SecureStorage, metadata: {name: photos}, spec: {keyVault: vault, keyName: key}}";
const CLOUD_DELAY: Duration = Duration::from_secs(30);

fn start(cluster: &Cluster) -> Running {
    let client = cluster.client_as("secure-storage", &["system:masters"]);
    cluster.run(Manager::new("secure-storage", cluster.world(), client).controller(controller()))
}

async fn begin(cluster: &Cluster) -> Running {
    for kind in [
        definition::of::<SecureStorage>(),
        definition::of::<StorageAccount>(),
        definition::of::<KeyVaultAccess>(),
    ] {
        assert_eq!(definition::review(&kind), []);
        cluster.apply(&definition::yaml(&kind)).await;
    }
    let manager = Manager::new("cloud", cluster.world(), cluster.client());
    let manager = cloud::controllers(CLOUD_DELAY).into_iter().fold(manager, Manager::controller);
    cluster.run(manager)
}

async fn phase(cluster: &Cluster) -> String {
    let storage: SecureStorage = cluster.get("default", "photos").await;
    storage.status.and_then(|status| status.phase).unwrap_or_default()
}

async fn account(cluster: &Cluster) -> StorageAccount {
    cluster.get("default", "photos-storage").await
}

#[test]
fn it_waits_for_the_identity_and_then_goes_through() {
    testkit::run(|cluster| async move {
        let _cloud = begin(&cluster).await;
        let _operator = start(&cluster);
        cluster.apply(VAULTED).await;
        cluster.settle().await;
        assert_eq!(phase(&cluster).await, "WaitForIdentity");
        assert_eq!(account(&cluster).await.spec.encryption, None, "nobody may read the key yet");
        cluster.advance(CLOUD_DELAY).await;
        assert_eq!(phase(&cluster).await, "Ready");
        assert!(account(&cluster).await.spec.encryption.is_some());
        let storage: SecureStorage = cluster.get("default", "photos").await;
        assert!(owner::is_controlled_by(&account(&cluster).await, &storage));
    });
}

#[test]
fn a_lost_account_sends_it_back_to_the_first_phase() {
    testkit::run(|cluster| async move {
        let _cloud = begin(&cluster).await;
        let _operator = start(&cluster);
        cluster.apply(VAULTED).await;
        cluster.advance(CLOUD_DELAY).await;
        let first = account(&cluster).await.uid();
        cluster.delete::<StorageAccount>("default", "photos-storage").await;
        cluster.settle().await;
        assert_ne!(account(&cluster).await.uid(), first);
        assert_eq!(phase(&cluster).await, "WaitForIdentity");
        assert!(cluster.find::<KeyVaultAccess>("default", "photos-storage").await.is_none(), "pruned");
        cluster.advance(CLOUD_DELAY).await;
        assert_eq!(phase(&cluster).await, "Ready");
    });
}

#[test]
fn a_new_key_is_put_to_use() {
    testkit::run(|cluster| async move {
        let _cloud = begin(&cluster).await;
        let _operator = start(&cluster);
        cluster.apply(VAULTED).await;
        cluster.advance(CLOUD_DELAY).await;
        cluster.patch::<SecureStorage>("default", "photos", &json!({"spec": {"keyName": "next"}})).await;
        cluster.settle().await;
        let status = account(&cluster).await.status.unwrap_or_default();
        assert_eq!(status.encrypted_with.map(|key| key.key_name), Some("next".to_owned()));
        assert_eq!(phase(&cluster).await, "Ready");
    });
}

#[test]
fn a_crash_at_any_write_ends_where_it_should() {
    let restart = async |cluster: &Cluster| (begin(cluster).await, start(cluster));
    let crashes = testkit::crash_everywhere("secure-storage", restart, |cluster| async move {
        cluster.apply(VAULTED).await;
        cluster.advance(CLOUD_DELAY * 2).await;
        assert_eq!(phase(&cluster).await, "Ready");
        assert_eq!(cluster.list::<StorageAccount>("default").await.len(), 1);
    });
    assert!(crashes.writes >= 4, "{crashes}");
}

#[test]
fn the_phase_is_what_the_world_says() {
    let storage = SecureStorage::new(
        "photos",
        SecureStorageSpec { key_vault: "vault".to_owned(), key_name: "key".to_owned() },
    );
    // The status of the account and of the access, and the phase that follows.
    for (account_status, access_status, expected) in [
        (None, None, "CreateStorageAccount"),
        (Some(json!({})), None, "WaitForIdentity"),
        (Some(json!({"principalId": "p"})), None, "GrantKeyVaultAccess"),
        (Some(json!({"principalId": "p"})), Some(json!({"grantedTo": "q"})), "GrantKeyVaultAccess"),
        (Some(json!({"principalId": "p"})), Some(json!({"grantedTo": "p"})), "EncryptWithCustomerKey"),
        (
            Some(json!({"principalId": "p", "encryptedWith": {"keyVault": "vault", "keyName": "key"}})),
            Some(json!({"grantedTo": "p"})),
            "Ready",
        ),
        // The permission was revoked: later steps do not count.
        (
            Some(json!({"principalId": "p", "encryptedWith": {"keyVault": "vault", "keyName": "key"}})),
            None,
            "GrantKeyVaultAccess",
        ),
    ] {
        let account = account_status.map(|status| {
            let object = json!({"apiVersion": "cloud.example.com/v1", "kind": "StorageAccount", "metadata": {"name": "a"},
                "spec": {"identity": "SystemAssigned"}, "status": status});
            serde_json::from_value(object).unwrap()
        });
        let access = access_status.map(|status| {
            let object = json!({"apiVersion": "cloud.example.com/v1", "kind": "KeyVaultAccess", "metadata": {"name": "a"},
                "spec": {"vault": "vault", "principalId": "p"}, "status": status});
            serde_json::from_value(object).unwrap()
        });
        let made = plan(&storage, "a", account.as_ref(), access.as_ref());
        assert_eq!(made.progress.name(), expected);
    }
}
