//! The status of a quota: what is used of what it limits, counted when the quota is written.

use super::{
    super::pod_resources::{self, Amounts},
    place, scope,
    usage::CountedResource,
};
use crate::{
    Inner,
    call::{Call, Committed},
    refusal::Refusal,
    request::Target,
    served::Served,
    stored::{Stored, at_rest},
    write::{self, Attempt},
};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use store::{Batch, Range};

pub(crate) fn concerns(served: &Served, target: &Target) -> bool {
    served.is("", "resourcequotas") && target.subresource != "status"
}

/// Writes into the status of quotas what is used of them.
pub(crate) async fn after(call: &Call, commits: &[Committed]) -> Result<(), Refusal> {
    for commit in commits.iter().filter(|commit| commit.after.is_some()) {
        count_usage(&call.inner, &call.served, &commit.namespace, &commit.name).await?;
    }
    Ok(())
}

async fn count_usage(inner: &Inner, served: &Served, namespace: &str, name: &str) -> Result<(), Refusal> {
    let _place = place(inner, namespace).write().await;
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
        let hard = pod_resources::amounts(&quota["spec"], "hard");
        if hard.is_empty() || known_usage(&quota, &hard).is_some() {
            return Ok(Some(()));
        }
        let used = count(inner, namespace, &quota, &hard).await?;
        let json = at_rest(served, &mut with_usage(quota, &used));
        let batch = Batch::new().replace(entry.key, json, entry.revision);
        Ok(write::commit(inner, batch).await?.then_some(()))
    }
}

/// What a quota says is used, if it speaks of what it limits now.
pub(super) fn known_usage(quota: &Value, hard: &Amounts) -> Option<Amounts> {
    let used = pod_resources::amounts(&quota["status"], "used");
    let is_current =
        pod_resources::amounts(&quota["status"], "hard") == *hard && quota["status"]["hard"].is_object();
    (is_current && hard.keys().all(|name| used.contains_key(name))).then_some(used)
}

pub(super) fn with_usage(mut quota: Value, used: &Amounts) -> Value {
    quota["status"] = json!({"hard": quota["spec"]["hard"], "used": used});
    quota
}

/// Counts what there is of all that a quota limits.
pub(super) async fn count(
    inner: &Inner,
    namespace: &str,
    quota: &Value,
    hard: &Amounts,
) -> Result<Amounts, Refusal> {
    let mut used: Amounts = hard.keys().map(|name| (name.clone(), Default::default())).collect();
    let now = inner.world.wall();
    let sorts: BTreeSet<_> = hard.keys().filter_map(|name| CountedResource::behind(name)).collect();
    for sort in sorts {
        let is_it = |served: &&Served| served.is(sort.group, sort.resource);
        let customs = inner.registry.customs(&*inner.store).await?;
        let Some(served) = inner.registry.kept().find(is_it).or_else(|| customs.all().find(is_it)) else {
            continue;
        };
        let page = inner.store.range(Range::prefix(served.prefix(namespace))).await;
        for entry in page?.entries {
            let object = Stored::new(entry.value, entry.revision).value()?;
            if scope::covers(quota, sort, &object) {
                let usage = sort.usage(&object, now);
                let limited = usage.into_iter().filter(|(name, _)| hard.contains_key(name)).collect();
                pod_resources::add(&mut used, &limited);
            }
        }
    }
    Ok(used)
}
