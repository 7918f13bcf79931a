//! Endpoints of services with a selector: the older form of EndpointSlices, with at most a thousand addresses.

mod plan;

use crate::{
    network::{addressed_pod, trigger_time::TriggerTimes},
    pod,
};
use k8s_openapi::api::core::v1::{Endpoints, Pod, Service};
use kube::api::{DeleteParams, PostParams};
use operator::{Context, Controller, Failure, Key, Next, all};

/// Kubernetes: so many services are reconciled at once.
const WORKERS: usize = 5;
pub(crate) fn controller() -> Controller {
    Controller::new("endpoints-controller", all::<Service>())
        .index(addressed_pod::SELECTOR, addressed_pod::selector_label)
        .watches_through(all::<Pod>(), addressed_pod::services_of)
        .watches(all::<Endpoints>(), |endpoints| vec![Key::of(endpoints)])
        .workers(WORKERS)
        .reconcile(TriggerTimes::default(), reconcile)
}

async fn reconcile(context: Context<TriggerTimes>, key: Key) -> Result<Next, Failure> {
    let api = context.namespaced::<Endpoints>(&key);
    let current = context.get::<Endpoints>(&key)?;
    let Some(service) = context.get::<Service>(&key)? else {
        // Kubernetes: all Endpoints go with their service, those that people wrote, too. Those that never had one stay.
        let is_left_over = current.is_some_and(|it| {
            let had_service = context.state().has_seen(&key) || plan::is_managed(&it);
            had_service && it.metadata.deletion_timestamp.is_none()
        });
        if is_left_over {
            match api.delete(key.name(), &DeleteParams::default()).await {
                Ok(_) => {}
                Err(kube::Error::Api(status)) if status.code == 404 => {}
                Err(error) => return Err(error.into()),
            }
        }
        context.state().forget(&key);
        return Ok(Next::Settled);
    };
    if !addressed_pod::has_endpoints(&service) {
        context.state().see(&key);
        return Ok(Next::Settled);
    }
    let pods = addressed_pod::pods_of(&service, &context.view::<Pod>()?)?;
    // Even if nothing is written: the times that were seen count.
    let trigger_time = context.state().next(&service, &pods);
    let Some(wanted) = plan::plan(&service, &pods, current.as_deref(), trigger_time) else {
        return Ok(Next::Settled);
    };
    let written = match &current {
        None => api.create(&PostParams::default(), &wanted).await,
        Some(_) => api.replace(key.name(), &PostParams::default(), &wanted).await,
    };
    match written {
        Ok(_) => Ok(Next::Settled),
        Err(error) if current.is_none() && pod::is_namespace_terminating(&error) => Ok(Next::Settled),
        Err(error) => {
            let (reason, note) = match current {
                None => ("FailedToCreateEndpoint", format!("Failed to create endpoint for service {key}")),
                Some(_) => ("FailedToUpdateEndpoint", format!("Failed to update endpoint {key}")),
            };
            let note = format!("{note}: {}", pod::message(&error));
            context.events().warning(&wanted, reason, "Update", note);
            Err(error.into())
        }
    }
}
