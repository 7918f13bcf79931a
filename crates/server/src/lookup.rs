//! Reads current objects from the store, for admission and verbs.

use crate::{Inner, call::Call, refusal::Refusal, stored::Stored};
use serde_json::Value;
use store::Range;

/// An object of a built-in resource, in its storage version.
pub(crate) async fn object(
    inner: &Inner,
    resource: (&str, &str, &str),
    namespace: &str,
    name: &str,
) -> Result<Option<Value>, Refusal> {
    stored(inner, resource, namespace, name).await?.map(|stored| stored.value()).transpose()
}

/// Its stored bytes, for callers that need little of it.
pub(crate) async fn stored(
    inner: &Inner,
    (group, version, resource): (&str, &str, &str),
    namespace: &str,
    name: &str,
) -> Result<Option<Stored>, Refusal> {
    let Some(served) = inner.registry.find(group, version, resource) else { return Ok(None) };
    let read = inner.store.get(served.key(namespace, name).into(), None).await;
    let entry = read?.entry;
    Ok(entry.map(|entry| Stored::new(entry.value, entry.revision)))
}

/// All objects of a built-in resource in a namespace, or in all if that is empty.
pub(crate) async fn objects(
    inner: &Inner,
    (group, version, resource): (&str, &str, &str),
    namespace: &str,
) -> Result<Vec<Value>, Refusal> {
    let Some(served) = inner.registry.find(group, version, resource) else { return Ok(Vec::new()) };
    let page = inner.store.range(Range::prefix(served.prefix(namespace))).await;
    let entries = page?.entries;
    entries.into_iter().map(|entry| Stored::new(entry.value, entry.revision).value()).collect()
}

/// The current object of a name of the call's resource, if it exists.
pub(crate) async fn of_call(call: &Call, name: &str) -> Result<Option<Stored>, Refusal> {
    let read = call.inner.store.get(call.key(name), None).await?;
    Ok(read.entry.map(|entry| Stored::new(entry.value, entry.revision)))
}

/// The current object of a name; a NotFound error if it does not exist.
pub(crate) async fn find(call: &Call, name: &str) -> Result<Stored, Refusal> {
    of_call(call, name).await?.ok_or_else(|| call.not_found(name))
}
