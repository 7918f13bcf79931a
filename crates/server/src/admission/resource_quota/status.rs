//! The status of a quota: what is used of what it limits.

use super::{
    super::pod_resources::{self, Amounts},
    scope,
    usage::CountedResource,
};
use crate::{Inner, refusal::Refusal, served::Served, stored::Stored};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use store::Range;

/// What a quota limits.
pub(crate) fn hard(quota: &Value) -> Amounts {
    pod_resources::amounts(&quota["spec"], "hard")
}

/// What a quota says is used, if it speaks of what it limits now.
pub(crate) fn known_usage(quota: &Value, hard: &Amounts) -> Option<Amounts> {
    let used = pod_resources::amounts(&quota["status"], "used");
    let is_current =
        pod_resources::amounts(&quota["status"], "hard") == *hard && quota["status"]["hard"].is_object();
    (is_current && hard.keys().all(|name| used.contains_key(name))).then_some(used)
}

pub(crate) fn with_usage(mut quota: Value, used: &Amounts) -> Value {
    quota["status"] = json!({"hard": quota["spec"]["hard"], "used": used});
    quota
}

/// Counts what there is of all that a quota limits.
pub(crate) async fn count(
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
