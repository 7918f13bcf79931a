//! A namespace is held until it is empty, and labelled with its name.

use serde_json::json;

use super::Circumstances;
use crate::defaults::member::{self, Members};

const HOLD: &str = "kubernetes";
const NAME_LABEL: &str = "kubernetes.io/metadata.name";

pub(super) fn create(namespace: &mut Members, _: &Circumstances<'_>) {
    namespace.insert("status".to_owned(), json!({"phase": "Active"}));
    let finalizers = member::list(member::made(namespace, "spec"), "finalizers");
    if !finalizers.contains(&json!(HOLD)) {
        finalizers.push(HOLD.into());
    }
    label(namespace);
}

/// Finalizers are written through `finalize` only.
pub(super) fn update(namespace: &mut Members, old: &Members, _: &Circumstances<'_>) {
    let finalizers = old.get("spec").and_then(|spec| spec.get("finalizers")).cloned();
    match finalizers {
        Some(finalizers) => drop(member::made(namespace, "spec").insert("finalizers".to_owned(), finalizers)),
        None => drop(namespace.remove("spec")),
    }
    label(namespace);
}

pub(super) fn finalize(namespace: &mut Members, old: &Members) {
    match old.get("status") {
        Some(status) => drop(namespace.insert("status".to_owned(), status.clone())),
        None => drop(namespace.remove("status")),
    }
}

fn label(namespace: &mut Members) {
    let metadata = member::made(namespace, "metadata");
    if let Some(name) = metadata.get("name").filter(|name| name.as_str() != Some("")).cloned() {
        member::made(metadata, "labels").insert(NAME_LABEL.to_owned(), name);
    }
}
