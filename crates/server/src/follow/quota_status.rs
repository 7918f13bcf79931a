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

pub(super) fn concerns(served: &Served, target: &Target) -> bool {
    served.is("", "resourcequotas") && target.subresource != "status"
}

/// Writes into the status of quotas what is used of them.
pub(super) async fn after(call: &Call, commits: &[Committed]) -> Result<(), Refusal> {
    for commit in commits.iter().filter(|commit| commit.after.is_some()) {
        count_usage(&call.inner, &call.served, &commit.namespace, &commit.name).await?;
    }
    Ok(())
}

async fn count_usage(inner: &Inner, served: &Served, namespace: &str, name: &str) -> Result<(), Refusal> {
    let _lock = resource_quota::namespace_lock(inner, namespace).write().await;
    write::try_again(&mut CountUsage { inner, served, namespace, name }).await.map(drop)
}

/// Writes what is used into the status of a quota.
struct CountUsage<'a> {
    inner: &'a Inner,
    served: &'a Served,
    namespace: &'a str,
    name: &'a str,
}

impl Attempt for CountUsage<'_> {
    type Done = ();

    async fn attempt(&mut self) -> Result<Option<()>, Refusal> {
        let CountUsage { inner, served, namespace, name } = *self;
        let read = inner.store.get(served.key(namespace, name).into(), None).await;
        let Some(entry) = read?.entry else { return Ok(Some(())) };
        let quota = Stored::new(entry.value.clone(), entry.revision).value()?;
        let hard = status::hard(&quota);
        if hard.is_empty() || status::known_usage(&quota, &hard).is_some() {
            return Ok(Some(()));
        }
        let used = status::count(inner, namespace, &quota, &hard).await?;
        let json = at_rest(served, &mut status::with_usage(quota, &used));
        let batch = Batch::new().replace(entry.key, json, entry.revision);
        Ok(write::commit(inner, batch).await?.then_some(()))
    }
}
