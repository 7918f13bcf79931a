//! Objects that a rule needs to know, read from the store as they are now.

use crate::{Inner, stored::Stored, verbs::store_failed};
use api::status::Status;
use serde_json::Value;
use store::Range;

/// An object of a built-in resource, as it is kept.
pub(crate) async fn object(
    inner: &Inner,
    resource: (&str, &str, &str),
    namespace: &str,
    name: &str,
) -> Result<Option<Value>, Status> {
    stored(inner, resource, namespace, name).await?.map(|stored| stored.value()).transpose()
}

/// The same, for who wants to know little of it.
pub(crate) async fn stored(
    inner: &Inner,
    (group, version, resource): (&str, &str, &str),
    namespace: &str,
    name: &str,
) -> Result<Option<Stored>, Status> {
    let Some(served) = inner.registry.find(group, version, resource) else { return Ok(None) };
    let read = inner.store.get(served.key(namespace, name).into(), None).await;
    let entry = read.map_err(|error| store_failed(&error))?.entry;
    Ok(entry.map(|entry| Stored::new(entry.value, entry.revision)))
}

/// All objects of a built-in resource in a namespace, or everywhere if that is empty.
pub(crate) async fn objects(
    inner: &Inner,
    (group, version, resource): (&str, &str, &str),
    namespace: &str,
) -> Result<Vec<Value>, Status> {
    let Some(served) = inner.registry.find(group, version, resource) else { return Ok(Vec::new()) };
    let page = inner.store.range(Range::prefix(served.prefix(namespace))).await;
    let entries = page.map_err(|error| store_failed(&error))?.entries;
    entries.into_iter().map(|entry| Stored::new(entry.value, entry.revision).value()).collect()
}
