//! Pods whose device has a NoExecute taint are deleted, at once or after the tolerationSeconds of their claim.

use super::{EntryClaim, claim_name, entries, is_owned_by, is_pod, is_reserved_for, reserved_for};
use crate::{
    nodes::taint_eviction::{EvictionTexts, Stay, evict, stays_until},
    pod,
};
use jiff::Timestamp;
use k8s_openapi::api::{
    core::v1::{Pod, Taint, Toleration},
    resource::v1::{DeviceRequestAllocationResult, DeviceTaint, ResourceClaim, ResourceSlice},
};
use operator::{Context, Controller, Failure, Key, Next, all, cache::View, predicate::Predicate};
use std::{sync::Arc, time::Duration};

const NO_EXECUTE: &str = "NoExecute";
/// Kubernetes: so many.
const WORKERS: usize = 10;
/// The index of pods that have claims.
const WITH_CLAIMS: &str = "with claims";
/// The index of slices by driver and pool.
const BY_POOL: &str = "pool";

// Kubernetes: these texts.
const TEXTS: EvictionTexts = EvictionTexts {
    event: "DeviceTaintManagerEviction",
    note: |_| "Marking for deletion".to_owned(),
    reason: "DeletionByDeviceTaintManager",
    message: "Device Taint manager: deleting due to NoExecute taint",
};

pub(crate) fn controller() -> Controller {
    let slices = all::<ResourceSlice>()
        .index(BY_POOL, |slice| vec![pool_of(&slice.spec.driver, &slice.spec.pool.name)]);
    Controller::new("device-taint-eviction", all::<Pod>())
        .index(WITH_CLAIMS, |pod| if entries(pod).is_empty() { Vec::new() } else { vec![String::new()] })
        .watches(all::<ResourceClaim>(), |claim: &ResourceClaim| {
            let namespace = claim.metadata.namespace.as_deref();
            reserved_for(claim)
                .iter()
                .filter(|it| is_pod(it))
                .map(|it| Key::new(namespace, &it.name))
                .collect()
        })
        .watches_through(slices.when(has_taint()), |pods: &View<Pod>, _: &ResourceSlice| {
            let pods = pods.indexed(WITH_CLAIMS, "").unwrap_or_default();
            pods.iter().map(|pod| Key::of(&**pod)).collect()
        })
        .workers(WORKERS)
        .reconcile((), reconcile)
}

/// A taint comes or goes.
fn has_taint() -> Predicate {
    Predicate::new(|delta| {
        let mut slices = delta.items().filter_map(|item| item.decode::<ResourceSlice>().ok());
        slices.any(|slice| {
            let devices = slice.spec.devices.as_deref().unwrap_or_default();
            devices
                .iter()
                .any(|device| device.taints.iter().flatten().any(|taint| taint.effect == NO_EXECUTE))
        })
    })
}

async fn reconcile(context: Context<()>, key: Key) -> Result<Next, Failure> {
    let Some(pod) = context.get::<Pod>(&key)? else { return Ok(Next::Settled) };
    if pod::node_name(&pod).is_empty()
        || pod.metadata.deletion_timestamp.is_some()
        || entries(&pod).is_empty()
    {
        return Ok(Next::Settled);
    }
    let (slices, now) = (context.view::<ResourceSlice>()?, context.wall());
    let mut end: Option<Timestamp> = None;
    for claim in used_claims(&context, &pod)? {
        let allocation = claim.status.as_ref().and_then(|status| status.allocation.as_ref());
        let devices = allocation.and_then(|it| it.devices.as_ref()).and_then(|it| it.results.as_deref());
        for device in devices.unwrap_or_default() {
            let pool = slices.indexed(BY_POOL, &pool_of(&device.driver, &device.pool))?;
            if let Stay::Until(time) = stay(device, &pool, now) {
                end = Some(end.map_or(time, |end| end.min(time)));
            }
        }
    }
    match end {
        None => Ok(Next::Settled),
        Some(end) if end > now => {
            Ok(Next::CheckAfter(Duration::try_from(end.duration_since(now)).unwrap_or_default()))
        }
        Some(_) => {
            evict(&context, &key, &pod, &TEXTS).await?;
            Ok(Next::Settled)
        }
    }
}

/// The claims that are reserved for the pod.
fn used_claims(context: &Context<()>, pod: &Pod) -> Result<Vec<Arc<ResourceClaim>>, Failure> {
    let mut claims = Vec::new();
    for entry in entries(pod) {
        let (name, is_generated) = match claim_name(pod, entry) {
            EntryClaim::Given(name) => (name, false),
            EntryClaim::Generated(name) => (name, true),
            EntryClaim::NotNeeded | EntryClaim::Missing => continue,
        };
        let claim = context.get::<ResourceClaim>(&Key::new(pod.metadata.namespace.as_deref(), name))?;
        claims.extend(claim.filter(|it| is_reserved_for(it, pod) && (!is_generated || is_owned_by(it, pod))));
    }
    Ok(claims)
}

/// How long a device may be used. Of the slices of its pool only those of the last generation count.
fn stay(device: &DeviceRequestAllocationResult, pool: &[Arc<ResourceSlice>], now: Timestamp) -> Stay {
    let generation = pool.iter().map(|slice| slice.spec.pool.generation).max();
    let current = pool.iter().filter(|slice| Some(slice.spec.pool.generation) == generation);
    let devices = current.flat_map(|slice| slice.spec.devices.iter().flatten());
    let taints = devices.filter(|it| it.name == device.device).flat_map(|it| it.taints.iter().flatten());
    let taints: Vec<Taint> = taints.filter(|taint| taint.effect == NO_EXECUTE).map(node_taint).collect();
    let tolerations: Vec<Toleration> = device
        .tolerations
        .iter()
        .flatten()
        .map(|it| Toleration {
            effect: it.effect.clone(),
            key: it.key.clone(),
            operator: it.operator.clone(),
            toleration_seconds: it.toleration_seconds,
            value: it.value.clone(),
        })
        .collect();
    stays_until(&tolerations, taints.iter(), now)
}

/// Taints of devices mean what those of nodes do.
fn node_taint(taint: &DeviceTaint) -> Taint {
    Taint {
        effect: taint.effect.clone(),
        key: taint.key.clone(),
        time_added: taint.time_added.clone(),
        value: taint.value.clone(),
    }
}

fn pool_of(driver: &str, pool: &str) -> String {
    format!("{driver}/{pool}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn a_device_is_used_while_its_taints_are_tolerated() {
        let now: Timestamp = "2026-01-01T00:01:00Z".parse().unwrap();
        let slice = |generation: i64, device: &str, taints: Value| -> Arc<ResourceSlice> {
            let slice = json!({"spec": {"driver": "d", "pool": {"name": "p", "generation": generation,
                "resourceSliceCount": 1}, "devices": [{"name": device, "taints": taints}]}});
            Arc::new(serde_json::from_value(slice).unwrap())
        };
        let taint =
            |effect: &str| json!([{"key": "broken", "effect": effect, "timeAdded": "2026-01-01T00:00:30Z"}]);
        let seconds = |seconds: i64| json!([{"operator": "Exists", "tolerationSeconds": seconds}]);
        let later = Stay::Until("2026-01-01T00:02:10Z".parse().unwrap());
        for (pool, tolerations, expected) in [
            (vec![], json!([]), Stay::Forever),
            (vec![slice(1, "a", json!([]))], json!([]), Stay::Forever),
            (vec![slice(1, "a", taint("NoSchedule"))], json!([]), Stay::Forever),
            (vec![slice(1, "b", taint("NoExecute"))], json!([]), Stay::Forever),
            (vec![slice(1, "a", taint("NoExecute"))], json!([]), Stay::Until(now)),
            (vec![slice(1, "a", taint("NoExecute"))], json!([{"operator": "Exists"}]), Stay::Forever),
            (vec![slice(1, "a", taint("NoExecute"))], seconds(100), later),
            // An older generation of the pool.
            (vec![slice(1, "a", taint("NoExecute")), slice(2, "a", json!([]))], json!([]), Stay::Forever),
        ] {
            let device = json!({"device": "a", "driver": "d", "pool": "p", "request": "r", "tolerations": tolerations});
            let device = serde_json::from_value(device).unwrap();
            assert_eq!(stay(&device, &pool, now), expected, "{pool:?} {tolerations}");
        }
    }
}
