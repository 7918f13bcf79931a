//! The status of a quota: what is used of what it limits is counted when the quota is written.

use crate::{
    Inner,
    admission::resource_quota::{self, status},
    call::{Call, Committed},
    refusal::Refusal,
    request::Target,
    served::Served,
    stored::{Stored, at_rest},
    write::{self, Attempt},
};
use store::Batch;

pub(super) fn concerns(served: &Served, _: &Target) -> bool {
    served.is("", "resourcequotas")
}

/// Writes into the status of quotas what is used of them. A status that a client has written is counted again: it may
/// be wrong.
pub(super) async fn after(call: &Call, commits: &[Committed]) -> Result<(), Refusal> {
    let is_trusted = call.target.subresource != "status";
    for commit in commits.iter().filter(|commit| commit.after.is_some()) {
        let (namespace, name) = (&*commit.namespace, &*commit.name);
        let _lock = resource_quota::namespace_lock(&call.inner, namespace).write().await;
        let mut count = CountUsage { inner: &call.inner, served: &call.served, namespace, name, is_trusted };
        write::try_again(&mut count).await?;
    }
    Ok(())
}

/// Writes what is used into the status of a quota.
struct CountUsage<'a> {
    inner: &'a Inner,
    served: &'a Served,
    namespace: &'a str,
    name: &'a str,
    /// Whether a status that speaks of what the quota limits now is right.
    is_trusted: bool,
}

impl Attempt for CountUsage<'_> {
    type Done = ();

    async fn attempt(&mut self) -> Result<Option<()>, Refusal> {
        let CountUsage { inner, served, namespace, name, is_trusted } = *self;
        let read = inner.store.get(served.key(namespace, name).into(), None).await;
        let Some(entry) = read?.entry else { return Ok(Some(())) };
        let quota = Stored::new(entry.value.clone(), entry.revision).value()?;
        let hard = status::hard(&quota);
        let known = status::known_usage(&quota, &hard);
        if hard.is_empty() || is_trusted && known.is_some() {
            return Ok(Some(()));
        }
        let used = status::count(inner, namespace, &quota, &hard).await?;
        if known.as_ref() == Some(&used) {
            return Ok(Some(()));
        }
        let json = at_rest(served, &mut status::with_usage(quota, &used));
        let batch = Batch::new().replace(entry.key, json, entry.revision);
        Ok(write::commit(inner, batch).await?.then_some(()))
    }
}
