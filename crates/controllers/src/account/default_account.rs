//! Every namespace has the service account `default`, which its pods run as.

use super::{create_default, is_active};
use k8s_openapi::api::core::v1::{Namespace, ServiceAccount};
use kube::{ResourceExt, core::PartialObjectMeta};
use operator::{Context, Controller, Failure, Key, Next, all};

const NAME: &str = "default";

pub(crate) fn controller() -> Controller {
    Controller::new("service-account-controller", all::<Namespace>())
        .watches(all::<ServiceAccount>().metadata_only(), namespace_of)
        .reconcile((), reconcile)
}

/// The namespace of an account with the default name.
fn namespace_of(account: &PartialObjectMeta<ServiceAccount>) -> Vec<Key> {
    let namespace = account.namespace().filter(|_| account.name_any() == NAME);
    namespace.map(|namespace| Key::new(None, &namespace)).into_iter().collect()
}

async fn reconcile(context: Context<()>, key: Key) -> Result<Next, Failure> {
    let Some(namespace) = context.get::<Namespace>(&key)? else { return Ok(Next::Settled) };
    let own = Key::new(Some(key.name()), NAME);
    let accounts = context.view::<PartialObjectMeta<ServiceAccount>>()?;
    if is_active(&namespace) && !accounts.contains(&own) {
        let mut account = ServiceAccount::default();
        account.metadata.name = Some(NAME.to_owned());
        create_default(&context.namespaced(&own), &account).await?;
    }
    Ok(Next::Settled)
}
