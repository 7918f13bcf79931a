//! Mirrors Endpoints that people write for services without a selector into EndpointSlices.

mod plan;

use crate::network::slice_writes::{MANAGED_BY, SERVICE_NAME, SliceWrites};
use k8s_openapi::api::{
    core::v1::{Endpoints, Service},
    discovery::v1::EndpointSlice,
};
use kube::ResourceExt;
use operator::{Context, Controller, Failure, Key, Next, all, cache::View};
use plan::CONTROLLER;
use std::sync::Arc;

/// Kubernetes: so many Endpoints are reconciled at once.
const WORKERS: usize = 5;
/// Kubernetes: leader election once used Endpoints, which are not mirrored.
const LEADER: &str = "control-plane.alpha.kubernetes.io/leader";
const SKIP_MIRROR: &str = "endpointslice.kubernetes.io/skip-mirror";
/// The index of slices by the Endpoints that they mirror.
const MIRRORED: &str = "endpointslice-mirroring-controller";

pub(crate) fn controller() -> Controller {
    Controller::new("endpointslice-mirroring-controller", all::<Endpoints>())
        .watches(all::<Service>(), |service| vec![Key::of(service)])
        .watches(all::<EndpointSlice>(), |slice| endpoints_of(slice).into_iter().collect())
        .workers(WORKERS)
        .reconcile((), reconcile)
}

async fn reconcile(context: Context<()>, key: Key) -> Result<Next, Failure> {
    let existing = slices_of(&context.view::<EndpointSlice>()?, &key)?;
    let api = context.namespaced::<EndpointSlice>(&key);
    let endpoints = context.get::<Endpoints>(&key)?.filter(|endpoints| is_mirrored(endpoints));
    let service = context.get::<Service>(&key)?;
    let has_selector = |service: &Service| service.spec.as_ref().is_some_and(|spec| spec.selector.is_some());
    let Some(endpoints) = endpoints.filter(|_| service.is_some_and(|service| !has_selector(&service))) else {
        let delete = existing.iter().map(|slice| EndpointSlice::clone(slice)).collect();
        SliceWrites { delete, ..SliceWrites::default() }.carry_out(&api, true).await?;
        return Ok(Next::Settled);
    };
    let plan = plan::plan(&endpoints, &existing);
    if !plan.writes.create.is_empty() || !plan.writes.update.is_empty() {
        for (reason, note) in plan.warnings {
            context.events().warning(&*endpoints, reason, "Mirror", note);
        }
    }
    plan.writes.carry_out(&api, endpoints.metadata.deletion_timestamp.is_some()).await?;
    Ok(Next::Settled)
}

fn is_mirrored(endpoints: &Endpoints) -> bool {
    endpoints.labels().get(SKIP_MIRROR).is_none_or(|skip| skip != "true")
        && !endpoints.annotations().contains_key(LEADER)
}

fn slices_of(slices: &View<EndpointSlice>, endpoints: &Key) -> Result<Vec<Arc<EndpointSlice>>, Failure> {
    slices.index(MIRRORED, |slice| endpoints_of(slice).map(|key| key.to_string()).into_iter().collect());
    let mut found = slices.indexed(MIRRORED, endpoints.as_str())?;
    found.retain(|slice| slice.metadata.deletion_timestamp.is_none());
    Ok(found)
}

/// The Endpoints that a slice of this loop mirrors.
fn endpoints_of(slice: &EndpointSlice) -> Option<Key> {
    let labels = slice.labels();
    let is_ours = labels.get(MANAGED_BY).is_some_and(|manager| manager == CONTROLLER);
    let name = labels.get(SERVICE_NAME).filter(|name| is_ours && !name.is_empty())?;
    Some(Key::new(slice.metadata.namespace.as_deref(), name))
}
