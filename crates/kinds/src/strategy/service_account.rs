//! The secrets of a service account are known by name alone.

use super::Circumstances;
use crate::defaults::member::{self, Members};

pub(super) fn create(account: &mut Members, _: &Circumstances<'_>) {
    clean_secrets(account);
}

pub(super) fn update(account: &mut Members, _: &Members, _: &Circumstances<'_>) {
    clean_secrets(account);
}

fn clean_secrets(account: &mut Members) {
    for secret in member::items_mut(account, "secrets") {
        secret.retain(|name, _| name == "name");
    }
}
