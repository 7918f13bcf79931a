//! ServiceAccount: who a pod is to the server.

use api::object;
use serde_json::Value;

use super::GROUP;
use crate::built_in::BuiltIn;
use crate::cells::column::{AGE, NAME};
use crate::defaults::member::{self, Members};
use crate::strategy::Strategy;
use crate::validate::at::At;

const ENFORCE_MOUNTABLE: &str = "kubernetes.io/enforce-mountable-secrets";

pub(crate) static SERVICE_ACCOUNT: BuiltIn = BuiltIn::new(GROUP, "ServiceAccount", "serviceaccounts")
    .strategy(
        Strategy::PLAIN
            .return_deleted_object()
            .on_create(|account, _| keep_names_of_secrets(account))
            .on_update(|account, _, _| keep_names_of_secrets(account)),
    )
    .warnings(warn)
    .columns(&[NAME, AGE]);

/// The secrets of a service account are known by name alone.
fn keep_names_of_secrets(account: &mut Members) {
    for secret in member::items_mut(account, "secrets") {
        secret.retain(|name, _| name == "name");
    }
}

fn warn(new: &At<'_, '_>, old: Option<&Value>, warnings: &mut Vec<String>) {
    let has = |object: &Value| object::annotation(object, ENFORCE_MOUNTABLE).is_some();
    if has(new.value()) && !old.is_some_and(has) {
        warnings.push(format!(
            "metadata.annotations[{ENFORCE_MOUNTABLE}]: deprecated in v1.32+; prefer separate namespaces to isolate access to \
             mounted secrets"
        ));
    }
}
