//! Objects that a rule needs to know, read from the store as they are now.

use crate::{Inner, call::Call, convert, refusal::Refusal, stored::Stored};
use serde_json::Value;
use store::Range;

/// An object of a built-in resource, as it is kept.
pub(crate) async fn object(
    inner: &Inner,
    resource: (&str, &str, &str),
    namespace: &str,
    name: &str,
) -> Result<Option<Value>, Refusal> {
    stored(inner, resource, namespace, name).await?.map(|stored| stored.value()).transpose()
}

/// The same, for who wants to know little of it.
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

/// All objects of a built-in resource in a namespace, or everywhere if that is empty.
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

/// The latest state of an object of the resource that a call is about, if there is one.
pub(crate) async fn of_call(call: &Call, name: &str) -> Result<Option<Stored>, Refusal> {
    let read = call.inner.store.get(call.key(name), None).await?;
    Ok(read.entry.map(|entry| Stored::new(entry.value, entry.revision)))
}

/// The same; not found where there is none.
pub(crate) async fn find(call: &Call, name: &str) -> Result<Stored, Refusal> {
    of_call(call, name).await?.ok_or_else(|| call.not_found(name))
}

/// The latest state of the object that a call names: as it is stored, and in the version of the call.
pub(crate) async fn current(call: &Call) -> Result<(Stored, Value), Refusal> {
    let stored = find(call, &call.target.name).await?;
    let value = convert::in_request_version(call, &stored).await?;
    Ok((stored, value))
}
