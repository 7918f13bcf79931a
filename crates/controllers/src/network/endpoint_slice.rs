//! EndpointSlices of services with a selector: the addresses, ports and states of their pods.

mod hints;
mod plan;

use crate::network::{
    addressed_pod,
    slice_writes::{MANAGED_BY, SERVICE_NAME},
    trigger_time::TriggerTimes,
};
use k8s_openapi::api::{
    core::v1::{Node, Pod, Service},
    discovery::v1::EndpointSlice,
};
use kube::ResourceExt;
use operator::{Context, Controller, Failure, Key, Next, all, cache::View};
use plan::{CONTROLLER, DesiredSlices};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, PoisonError},
};

/// Kubernetes: so many services are reconciled at once.
const WORKERS: usize = 5;
/// The index of slices by the service for which this loop has made them.
const SERVICE: &str = "endpointslice-controller";

pub(crate) fn controller() -> Controller {
    let state = SliceState::default();
    let waiting = Arc::clone(&state.waiting);
    Controller::new("endpointslice-controller", all::<Service>())
        .index(addressed_pod::SELECTOR, addressed_pod::selector_label)
        .watches_through(all::<Pod>(), addressed_pod::services_of)
        .watches(all::<EndpointSlice>(), |slice| service_of(slice).into_iter().collect())
        .follows(all::<Node>(), move |delta| match (&delta.before, &delta.after) {
            (None, Some(node)) => waiting.take(node.key().name()),
            _ => Vec::new(),
        })
        .workers(WORKERS)
        .reconcile(state, reconcile)
}

#[derive(Debug, Default)]
struct SliceState {
    times: TriggerTimes,
    waiting: Arc<WaitingServices>,
}

/// Services that have pods on nodes without an object, by the name of the node.
#[derive(Debug, Default)]
struct WaitingServices(Mutex<BTreeMap<String, BTreeSet<Key>>>);

impl WaitingServices {
    fn add(&self, node: &str, service: &Key) {
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.entry(node.to_owned()).or_default().insert(service.clone());
    }

    fn take(&self, node: &str) -> Vec<Key> {
        let waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(node);
        waiting.into_iter().flatten().collect()
    }

    fn remove(&self, node: &str, service: &Key) {
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(services) = waiting.get_mut(node) {
            services.remove(service);
            if services.is_empty() {
                waiting.remove(node);
            }
        }
    }
}

async fn reconcile(context: Context<SliceState>, key: Key) -> Result<Next, Failure> {
    let state = context.state();
    let Some(service) = context.get::<Service>(&key)? else {
        state.times.forget(&key);
        return Ok(Next::Settled);
    };
    if !addressed_pod::has_endpoints(&service) {
        return Ok(Next::Settled);
    }
    let pods = addressed_pod::pods_of(&service, &context.view::<Pod>()?)?;
    // Even if nothing is written: the times that were seen count.
    let trigger_time = state.times.next(&service, &pods);
    let nodes = context.view::<Node>()?;
    let zones = zones(&pods, &nodes, &key, &state.waiting);
    let existing = slices_of(&context.view::<EndpointSlice>()?, &key)?;
    let desired = DesiredSlices { service: &service, pods: &pods, zones: &zones, trigger_time };
    let writes = plan::plan(&desired, &existing);
    let is_deleting = service.metadata.deletion_timestamp.is_some();
    writes.carry_out(&context.namespaced::<EndpointSlice>(&key), is_deleting).await?;
    Ok(Next::Settled)
}

/// The zones of existing nodes; a service waits for the others.
fn zones(
    pods: &[Arc<Pod>],
    nodes: &View<Node>,
    service: &Key,
    waiting: &WaitingServices,
) -> BTreeMap<String, Option<String>> {
    let names: BTreeSet<&str> = pods.iter().map(|pod| crate::pod::node_name(pod)).collect();
    let mut zones = BTreeMap::new();
    for name in names.into_iter().filter(|name| !name.is_empty()) {
        // First: the node may appear just after it was looked for.
        waiting.add(name, service);
        let Some(node) = nodes.item(&Key::new(None, name)) else { continue };
        waiting.remove(name, service);
        let zone = node.labels().get("topology.kubernetes.io/zone").map(str::to_owned);
        zones.insert(name.to_owned(), zone.filter(|zone| !zone.is_empty()));
    }
    zones
}

fn slices_of(slices: &View<EndpointSlice>, service: &Key) -> Result<Vec<Arc<EndpointSlice>>, Failure> {
    slices.index(SERVICE, |slice| service_of(slice).map(|key| key.to_string()).into_iter().collect());
    let mut found = slices.indexed(SERVICE, service.as_str())?;
    // Kubernetes: slices that are being deleted count as gone.
    found.retain(|slice| slice.metadata.deletion_timestamp.is_none());
    Ok(found)
}

/// The service of a slice that this loop has made.
fn service_of(slice: &EndpointSlice) -> Option<Key> {
    let labels = slice.labels();
    let is_ours = labels.get(MANAGED_BY).is_some_and(|manager| manager == CONTROLLER);
    let name = labels.get(SERVICE_NAME).filter(|name| is_ours && !name.is_empty())?;
    Some(Key::new(slice.metadata.namespace.as_deref(), name))
}
