//! A claim that no pod uses any more is released; one that was made for a pod ends with it.

use super::{FINALIZER, claims_of, is_allocated, is_pod, pods::COMPONENT, reserved_for};
use crate::{
    pod,
    status::{self, Written},
};
use k8s_openapi::api::{
    core::v1::Pod,
    resource::v1::{ResourceClaim, ResourceClaimConsumerReference},
};
use kube::{
    ResourceExt,
    api::{DeleteParams, PostParams, Preconditions},
};
use operator::{Context, Controller, Failure, Key, Next, all, retry};
use std::sync::Arc;

/// Kubernetes: so many.
const WORKERS: usize = 50;

pub(crate) fn controller() -> Controller {
    Controller::new("resourceclaim-claims", all::<ResourceClaim>())
        .watches(all::<Pod>(), claims_of)
        .workers(WORKERS)
        .reconcile((), reconcile)
        .event_component(COMPONENT)
}

/// What becomes of a claim.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct ReleasePlan {
    /// Consumers are gone: `reservedFor` gets shorter.
    release: bool,
    deallocate: bool,
    /// The finalizer that protects the allocation goes.
    unprotect: bool,
}

async fn reconcile(context: Context<()>, key: Key) -> Result<Next, Failure> {
    let Some(claim) = context.get::<ResourceClaim>(&key)? else { return Ok(Next::Settled) };
    let mut remaining = Vec::new();
    for consumer in reserved_for(&claim) {
        if !is_pod(consumer) || is_in_use(&context, &key, consumer).await? {
            remaining.push(consumer.clone());
        }
    }
    let is_unused = remaining.is_empty();
    if !carry_out(&context, &claim, plan(&claim, remaining.len()), remaining).await? {
        return Ok(Next::Settled);
    }
    if is_unused && claim.metadata.deletion_timestamp.is_none() && has_lost_its_pod(&context, &claim)? {
        let preconditions = Preconditions { uid: claim.uid(), resource_version: None };
        let params = DeleteParams { preconditions: Some(preconditions), ..DeleteParams::default() };
        match context.namespaced::<ResourceClaim>(&key).delete(key.name(), &params).await {
            Err(error) if retry::is_missing(&error) || retry::is_conflict(&error) => {}
            result => drop(result?),
        }
    }
    Ok(Next::Settled)
}

fn plan(claim: &ResourceClaim, remaining: usize) -> ReleasePlan {
    let release = remaining < reserved_for(claim).len();
    let is_protected = claim.finalizers().iter().any(|it| it == FINALIZER);
    let is_deleted = claim.metadata.deletion_timestamp.is_some();
    // A claim that is protected and not allocated is left alone: a scheduler may be about to allocate it.
    let unprotect = is_protected && remaining == 0 && (release || is_deleted);
    ReleasePlan { release, deallocate: unprotect && is_allocated(claim), unprotect }
}

/// Returns whether the claim is still there.
async fn carry_out(
    context: &Context<()>,
    claim: &Arc<ResourceClaim>,
    plan: ReleasePlan,
    remaining: Vec<ResourceClaimConsumerReference>,
) -> Result<bool, Failure> {
    let claims = context.namespaced::<ResourceClaim>(&Key::of(&**claim));
    let mut current = ResourceClaim::clone(claim);
    if plan.release || plan.deallocate {
        let mut changed = claim.status.clone().unwrap_or_default();
        changed.reserved_for = Some(remaining).filter(|remaining| !remaining.is_empty());
        if plan.deallocate {
            changed.allocation = None;
        }
        match status::write(&claims, &current, &changed).await? {
            Written::Changed(written) => current = written,
            Written::Unchanged => {}
            Written::Gone => return Ok(false),
        }
    }
    if plan.unprotect {
        current.metadata.finalizers.get_or_insert_default().retain(|it| it != FINALIZER);
        match claims.replace(&claim.name_any(), &PostParams::default(), &current).await {
            Err(error) if retry::is_missing(&error) => return Ok(false),
            result => drop(result?),
        }
    }
    Ok(true)
}

/// Whether the pod may still use the claim. A pod that the cache does not know is looked up at the server: devices must
/// not be given away while it runs.
async fn is_in_use(
    context: &Context<()>,
    claim: &Key,
    consumer: &ResourceClaimConsumerReference,
) -> Result<bool, Failure> {
    let is_it = |pod: &Pod| pod.metadata.uid.as_deref() == Some(&consumer.uid);
    match context.get::<Pod>(&Key::new(claim.namespace(), &consumer.name))? {
        Some(pod) => Ok(is_it(&pod) && !is_done(&pod)),
        None => {
            let live = context.namespaced::<Pod>(claim).get_opt(&consumer.name).await?;
            Ok(live.is_some_and(|pod| is_it(&pod)))
        }
    }
}

/// Whether a pod neither runs nor will run.
fn is_done(pod: &Pod) -> bool {
    pod::is_finished(pod) || pod.metadata.deletion_timestamp.is_some() && pod::node_name(pod).is_empty()
}

/// Whether the pod that a claim was made for is done. One that is gone is left to the garbage collector.
fn has_lost_its_pod(context: &Context<()>, claim: &ResourceClaim) -> Result<bool, Failure> {
    let owners = claim.owner_references().iter();
    let mut owners =
        owners.filter(|it| it.controller == Some(true) && it.kind == "Pod" && it.api_version == "v1");
    let Some(owner) = owners.next() else { return Ok(false) };
    let pod = context.get::<Pod>(&Key::new(claim.metadata.namespace.as_deref(), &owner.name))?;
    Ok(pod.is_some_and(|pod| pod.metadata.uid.as_ref() != Some(&owner.uid) || is_done(&pod)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_claim_without_users_is_deallocated_and_loses_its_protection() {
        let deleted = Some("2026-01-01T00:00:00Z");
        let none = ReleasePlan::default();
        for (reserved, remaining, is_allocated, finalizer, deleted, expected) in [
            (1, 1, true, FINALIZER, None, none),
            (0, 0, true, FINALIZER, None, none),
            (2, 1, true, FINALIZER, None, ReleasePlan { release: true, ..none }),
            (1, 0, true, FINALIZER, None, ReleasePlan { release: true, deallocate: true, unprotect: true }),
            // Without the finalizer another program manages the allocation.
            (1, 0, true, "a.io/b", None, ReleasePlan { release: true, ..none }),
            (0, 0, true, FINALIZER, deleted, ReleasePlan { deallocate: true, unprotect: true, ..none }),
            (1, 1, true, FINALIZER, deleted, none),
            (0, 0, false, FINALIZER, None, none),
            (0, 0, false, FINALIZER, deleted, ReleasePlan { unprotect: true, ..none }),
            (0, 0, false, "a.io/b", deleted, none),
        ] {
            let consumers: Vec<_> = (0..reserved)
                .map(|it| json!({"resource": "pods", "name": "p", "uid": it.to_string()}))
                .collect();
            let allocation = is_allocated.then(|| json!({}));
            let claim = json!({"metadata": {"finalizers": [finalizer], "deletionTimestamp": deleted}, "spec": {},
                "status": {"reservedFor": consumers, "allocation": allocation}});
            let claim = serde_json::from_value(claim).unwrap();
            assert_eq!(plan(&claim, remaining), expected, "{reserved} {remaining} {finalizer} {deleted:?}");
        }
    }
}
