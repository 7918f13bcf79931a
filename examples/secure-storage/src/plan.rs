//! What to apply, given what is observed: without client, clock or state.

use crate::{
    KeyVaultAccess, KeyVaultAccessSpec, SecureStorage, StorageAccount, StorageAccountSpec,
    cloud::{Encryption, Identity},
};
use operator::phase::{self, Progress, Step};

/// What to apply now, and the progress so far.
#[derive(Debug)]
pub struct Plan {
    pub account: StorageAccount,
    pub access: Option<KeyVaultAccess>,
    pub progress: Progress,
}

/// The observed state of the steps.
struct Seen {
    has_account: bool,
    has_identity: bool,
    is_granted: bool,
    is_encrypted: bool,
}

const STEPS: &[Step<Seen>] = &[
    Step { name: "CreateStorageAccount", is_done: |seen| seen.has_account },
    Step { name: "WaitForIdentity", is_done: |seen| seen.has_identity },
    Step { name: "GrantKeyVaultAccess", is_done: |seen| seen.is_granted },
    Step { name: "EncryptWithCustomerKey", is_done: |seen| seen.is_encrypted },
];

pub fn plan(
    storage: &SecureStorage,
    name: &str,
    account: Option<&StorageAccount>,
    access: Option<&KeyVaultAccess>,
) -> Plan {
    let status = account.and_then(|account| account.status.as_ref());
    let principal = status.and_then(|status| status.principal_id.as_deref());
    let granted =
        access.and_then(|access| access.status.as_ref()).and_then(|status| status.granted_to.as_deref());
    let key =
        Encryption { key_vault: storage.spec.key_vault.clone(), key_name: storage.spec.key_name.clone() };
    let seen = Seen {
        has_account: account.is_some(),
        has_identity: principal.is_some(),
        is_granted: principal.is_some() && granted == principal,
        is_encrypted: status.and_then(|status| status.encrypted_with.as_ref()) == Some(&key),
    };
    Plan {
        account: StorageAccount::new(
            name,
            StorageAccountSpec {
                identity: Identity::SystemAssigned,
                // Encryption before the vault grants access would make the data unreadable.
                encryption: seen.is_granted.then_some(key),
            },
        ),
        access: principal.map(|principal| {
            let (vault, principal_id) = (storage.spec.key_vault.clone(), principal.to_owned());
            KeyVaultAccess::new(name, KeyVaultAccessSpec { vault, principal_id })
        }),
        progress: phase::progress(STEPS, &seen),
    }
}
