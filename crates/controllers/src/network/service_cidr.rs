//! Ranges of service addresses are ready, and are deleted only when no address depends on them.

use crate::prefix::Prefix;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::{
    api::networking::v1::{IPAddress, ServiceCIDR},
    apimachinery::pkg::apis::meta::v1::Time,
};
use kube::{
    ResourceExt,
    api::{Patch, PatchParams},
};
use operator::{Context, Controller, Failure, Key, Next, all, cache::View, retry};
use serde_json::{Value, json};
use std::{net::IpAddr, time::Duration};

const NAME: &str = "service-cidr-controller";
/// Kubernetes: so many.
const WORKERS: usize = 5;
// Kubernetes: the finalizer, and the labels of the addresses that its allocators make.
const FINALIZER: &str = "networking.k8s.io/service-cidr-finalizer";
const MANAGED_BY: &str = "ipaddress.kubernetes.io/managed-by";
const ALLOCATOR: &str = "ipallocator.k8s.io";
/// Kubernetes: so long a range stays after its deletion, for servers that still allocate from it.
const GRACE: SignedDuration = SignedDuration::from_secs(10);

pub(crate) fn controller() -> Controller {
    Controller::new(NAME, all::<ServiceCIDR>())
        // Another range may take over the addresses of one that is being deleted.
        .watches_through(all::<ServiceCIDR>(), |ranges: &View<ServiceCIDR>, changed: &ServiceCIDR| {
            let changed = prefixes(changed);
            keys_of(ranges, |range| {
                prefixes(range).iter().any(|it| changed.iter().any(|other| it.overlaps(*other)))
            })
        })
        .watches_through(all::<IPAddress>(), |ranges: &View<ServiceCIDR>, address: &IPAddress| {
            let Some(address) = allocated(address) else { return Vec::new() };
            keys_of(ranges, |range| prefixes(range).iter().any(|it| it.contains(address)))
        })
        .workers(WORKERS)
        .reconcile((), reconcile)
}

/// What to do with a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RangeStep {
    BeReady,
    /// It is to be deleted, and addresses depend on it.
    Block,
    Wait(SignedDuration),
    Release,
}

async fn reconcile(context: Context<()>, key: Key) -> Result<Next, Failure> {
    let ranges = context.view::<ServiceCIDR>()?.list()?;
    let Some(range) = ranges.iter().find(|range| range.name_any() == key.name()) else {
        return Ok(Next::Settled);
    };
    let others: Vec<Prefix> = ranges
        .iter()
        .filter(|other| other.name_any() != key.name())
        .flat_map(|other| prefixes(other))
        .collect();
    let addresses = context.view::<IPAddress>()?.list()?;
    let addresses: Vec<IpAddr> = addresses.iter().filter_map(|address| allocated(address)).collect();
    let has_finalizer = range.finalizers().iter().any(|it| it == FINALIZER);
    let written = match plan(range, &others, &addresses, context.wall()) {
        RangeStep::Wait(left) => return Ok(Next::CheckAfter(Duration::try_from(left).unwrap_or_default())),
        RangeStep::BeReady => {
            if !has_finalizer {
                patch(&context, range, json!({"finalizers": [FINALIZER]})).await?;
            }
            let message = "Kubernetes Service CIDR is ready";
            write_condition(&context, range, "True", "", message).await
        }
        RangeStep::Block => {
            let message = "There are still IPAddresses referencing the ServiceCIDR, please remove them or create \
                a new ServiceCIDR";
            write_condition(&context, range, "False", "Terminating", message).await
        }
        RangeStep::Release if has_finalizer => {
            patch(&context, range, json!({"$deleteFromPrimitiveList/finalizers": [FINALIZER]})).await
        }
        RangeStep::Release => Ok(()),
    };
    written.map(|()| Next::Settled)
}

fn plan(range: &ServiceCIDR, others: &[Prefix], addresses: &[IpAddr], now: Timestamp) -> RangeStep {
    let Some(deleted) = &range.metadata.deletion_timestamp else { return RangeStep::BeReady };
    let own = prefixes(range);
    let is_covered = own.iter().all(|it| others.iter().any(|other| other.contains_prefix(*it)));
    let is_orphan = |address: &&IpAddr| {
        own.iter().any(|it| it.contains(**address)) && !others.iter().any(|it| it.contains(**address))
    };
    if !is_covered && addresses.iter().any(|address| is_orphan(&address)) {
        return RangeStep::Block;
    }
    let left = GRACE - now.duration_since(deleted.0);
    if left > SignedDuration::ZERO { RangeStep::Wait(left) } else { RangeStep::Release }
}

fn prefixes(range: &ServiceCIDR) -> Vec<Prefix> {
    let texts = range.spec.as_ref().and_then(|spec| spec.cidrs.as_deref()).unwrap_or_default();
    texts.iter().filter_map(|text| text.parse().ok()).collect()
}

/// The address of an object that an allocator has made.
fn allocated(address: &IPAddress) -> Option<IpAddr> {
    let is_managed = address.labels().get(MANAGED_BY).is_some_and(|by| by == ALLOCATOR);
    address.name_any().parse().ok().filter(|_| is_managed)
}

fn keys_of(ranges: &View<ServiceCIDR>, is_concerned: impl Fn(&ServiceCIDR) -> bool) -> Vec<Key> {
    let ranges = ranges.list().unwrap_or_default();
    ranges.iter().filter(|range| is_concerned(range)).map(|range| Key::of(&**range)).collect()
}

async fn patch(context: &Context<()>, range: &ServiceCIDR, mut metadata: Value) -> Result<(), Failure> {
    metadata["uid"] = json!(range.uid());
    let patch = Patch::Strategic(json!({ "metadata": metadata }));
    let ranges = context.cluster::<ServiceCIDR>();
    match ranges.patch(&range.name_any(), &PatchParams::default(), &patch).await {
        Err(error) if !retry::is_missing(&error) => Err(error.into()),
        _ => Ok(()),
    }
}

async fn write_condition(
    context: &Context<()>,
    range: &ServiceCIDR,
    status: &str,
    reason: &str,
    message: &str,
) -> Result<(), Failure> {
    let conditions =
        range.status.as_ref().and_then(|status| status.conditions.as_deref()).unwrap_or_default();
    let is_there = conditions
        .iter()
        .any(|it| (&*it.type_, &*it.status, &*it.reason, &*it.message) == ("Ready", status, reason, message));
    if is_there {
        return Ok(());
    }
    let condition = json!({"type": "Ready", "status": status, "reason": reason, "message": message,
        "lastTransitionTime": Time(context.wall())});
    let apply = json!({"apiVersion": "networking.k8s.io/v1", "kind": "ServiceCIDR",
        "metadata": {"name": range.name_any()}, "status": {"conditions": [condition]}});
    let parameters = PatchParams::apply(NAME).force();
    let ranges = context.cluster::<ServiceCIDR>();
    match ranges.patch_status(&range.name_any(), &parameters, &Patch::Apply(apply)).await {
        Err(error) if !retry::is_missing(&error) => Err(error.into()),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deleted_range_stays_while_addresses_have_no_other() {
        let now: Timestamp = "2026-01-01T00:00:05Z".parse().unwrap();
        let (soon, long_ago) = ("2026-01-01T00:00:00Z", "2025-01-01T00:00:00Z");
        let wait = RangeStep::Wait(SignedDuration::from_secs(5));
        for (deleted, others, addresses, expected) in [
            (None, &[][..], &["10.0.0.1"][..], RangeStep::BeReady),
            (Some(long_ago), &[], &[], RangeStep::Release),
            (Some(soon), &[], &[], wait),
            (Some(long_ago), &[], &["10.0.0.1"], RangeStep::Block),
            (Some(long_ago), &[], &["10.1.0.1", "fd00::1"], RangeStep::Release),
            // Another range covers all of it, the same range, or the addresses that there are.
            (Some(long_ago), &["10.0.0.0/8"], &["10.0.0.1"], RangeStep::Release),
            (Some(long_ago), &["10.0.0.0/24"], &["10.0.0.1"], RangeStep::Release),
            (Some(long_ago), &["10.0.0.0/28"], &["10.0.0.1"], RangeStep::Release),
            (Some(long_ago), &["10.0.0.0/28"], &["10.0.0.1", "10.0.0.77"], RangeStep::Block),
        ] {
            let range = json!({"metadata": {"name": "r", "deletionTimestamp": deleted},
                "spec": {"cidrs": ["10.0.0.0/24"]}});
            let range = serde_json::from_value(range).unwrap();
            let others: Vec<Prefix> = others.iter().map(|it| it.parse().unwrap()).collect();
            let addresses: Vec<IpAddr> = addresses.iter().map(|it| it.parse().unwrap()).collect();
            assert_eq!(
                plan(&range, &others, &addresses, now),
                expected,
                "{deleted:?} {others:?} {addresses:?}"
            );
        }
    }
}
