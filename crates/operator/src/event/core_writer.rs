//! Writes core/v1 events, as Kubernetes' own components do: one for each message, repeated ones counted.

use super::{
    Attempts, NewEvent, Reporter,
    core_correlator::{CoreCorrelator, CoreWrite},
    cut, event_name,
};
use crate::retry;
use k8s_openapi::{
    api::core::v1::{Event, EventSource, ObjectReference},
    apimachinery::pkg::apis::meta::v1::Time,
};
use kube::{
    Api, Client,
    api::{Patch, PatchParams, PostParams},
    core::ObjectMeta,
};
use serde_json::json;
use std::sync::Arc;
use tokio::sync::mpsc;
use world::World;

/// Kubernetes: longer messages are refused.
const MESSAGE_BYTES: usize = 1024;

/// The task that writes the events of one component.
pub(super) struct CoreWriter {
    world: World,
    client: Client,
    /// Its instance is the host, if there is one.
    reporter: Arc<Reporter>,
    correlator: CoreCorrelator,
}

impl CoreWriter {
    pub(super) fn new(world: &World, client: Client, reporter: Arc<Reporter>) -> CoreWriter {
        CoreWriter { world: world.clone(), client, reporter, correlator: CoreCorrelator::default() }
    }

    pub(super) async fn run(mut self, mut queue: mpsc::Receiver<NewEvent>) {
        let start = self.world.now();
        while let Some(event) = queue.recv().await {
            let now = self.world.now().since(start);
            if let Some(write) = self.correlator.add(now, event) {
                self.write(write).await;
            }
        }
    }

    async fn write(&mut self, write: CoreWrite) {
        let event = self.event(&write);
        let mut attempts = Attempts::new(&self.world, &write.event.reason);
        loop {
            let sent = match write.name {
                Some(_) => self.count(&event).await,
                None => self.create(&event).await,
            };
            match sent {
                Ok(()) => {
                    let name = event.metadata.name.unwrap_or_default();
                    return self.correlator.set_name(&write.key, name);
                }
                Err(error) if attempts.another_after(&error).await => {}
                Err(_) => return,
            }
        }
    }

    async fn create(&self, event: &Event) -> Result<(), kube::Error> {
        match self.api(event).create(&PostParams::default(), event).await {
            // A conflict: an earlier attempt succeeded, and its response was lost.
            Err(error) if !retry::is_conflict(&error) => Err(error),
            _ => Ok(()),
        }
    }

    async fn count(&self, event: &Event) -> Result<(), kube::Error> {
        let patch =
            json!({"count": event.count, "lastTimestamp": event.last_timestamp, "message": event.message});
        let name = event.metadata.name.as_deref().unwrap_or_default();
        match self.api(event).patch(name, &PatchParams::default(), &Patch::Merge(patch)).await {
            // Events are deleted after an hour, and this one was.
            Err(error) if retry::is_missing(&error) => self.create(event).await,
            result => result.map(drop),
        }
    }

    fn api(&self, event: &Event) -> Api<Event> {
        Api::namespaced(self.client.clone(), event.metadata.namespace.as_deref().unwrap_or("default"))
    }

    fn event(&self, write: &CoreWrite) -> Event {
        let NewEvent { regarding, event_type, reason, note, at, .. } = &write.event;
        let name = write.name.clone().unwrap_or_else(|| event_name(&self.world, regarding));
        // Kubernetes: events on cluster-scoped objects are in namespace `default`.
        let namespace = regarding.namespace.clone().unwrap_or_else(|| "default".into());
        let Reporter { controller: component, instance } = &*self.reporter;
        let host = Some(instance.clone()).filter(|host| !host.is_empty());
        Event {
            metadata: ObjectMeta { name: Some(name), namespace: Some(namespace), ..ObjectMeta::default() },
            involved_object: ObjectReference::clone(regarding),
            reason: Some(reason.clone()),
            message: Some(cut(note, MESSAGE_BYTES).to_owned()),
            source: Some(EventSource { component: Some(component.clone()), host }),
            first_timestamp: Some(Time(write.first)),
            last_timestamp: Some(Time(*at)),
            count: Some(write.count),
            type_: Some(event_type.as_str().into()),
            reporting_component: Some(component.clone()),
            reporting_instance: Some(instance.clone()),
            ..Event::default()
        }
    }
}
