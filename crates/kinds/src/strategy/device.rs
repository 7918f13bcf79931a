//! Devices: since when one is tainted, and what a claim that lost its device still says of it.

use serde_json::Value;
use std::collections::HashSet;

use super::Circumstances;
use crate::defaults::member::{self, Members};

pub(super) fn create_slice(slice: &mut Members, with: &Circumstances<'_>) {
    date_taints(slice, with);
}

pub(super) fn update_slice(slice: &mut Members, _: &Members, with: &Circumstances<'_>) {
    date_taints(slice, with);
}

/// Kubernetes takes this for a default; it lies here because it needs the time.
fn date_taints(slice: &mut Members, with: &Circumstances<'_>) {
    let now = with.now.to_string();
    let Some(spec) = member::present(slice, "spec") else { return };
    for device in member::items_mut(spec, "devices") {
        for taint in member::items_mut(device, "taints") {
            member::default_to(taint, "timeAdded", now.clone());
        }
    }
}

/// What is said of devices goes when they are no longer allocated.
pub(super) fn claim_status(claim: &mut Members, old: &Members, _: &Circumstances<'_>) {
    let lost: HashSet<_> = {
        let still: HashSet<_> = allocated(claim).collect();
        allocated(old).filter(|device| !still.contains(device)).map(owned).collect()
    };
    let Some(status) = member::present(claim, "status") else { return };
    let Some(devices) = status.get_mut("devices").and_then(Value::as_array_mut) else { return };
    devices.retain(|device| {
        let device = device.as_object().map(identity).map(owned);
        device.is_none_or(|device| !lost.contains(&device))
    });
    if devices.is_empty() {
        status.remove("devices");
    }
}

/// Driver, pool, device and share.
fn identity(device: &Members) -> [&str; 4] {
    ["driver", "pool", "device", "shareID"].map(|name| member::text(device, name))
}

fn owned(identity: [&str; 4]) -> [String; 4] {
    identity.map(str::to_owned)
}

fn allocated(claim: &Members) -> impl Iterator<Item = [&str; 4]> {
    let status = member::object(claim, "status");
    let allocation = status.and_then(|status| member::object(status, "allocation"));
    let devices = allocation.and_then(|allocation| member::object(allocation, "devices"));
    devices.into_iter().flat_map(|devices| member::items(devices, "results")).map(identity)
}
