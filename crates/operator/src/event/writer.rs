//! The task that writes the events of a recorder, in either of the two event APIs.

use super::{NewEvent, Reporter};
use crate::retry;
use jiff::Timestamp;
use k8s_openapi::{NamespaceResourceScope, api::core::v1::ObjectReference};
use kube::{
    Api, Client, Resource,
    api::{Patch, PatchParams, PostParams},
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;
use std::{fmt::Debug, sync::Arc, time::Duration};
use tokio::sync::mpsc;
use world::World;

/// Kubernetes: twelve attempts, ten seconds apart. Events are lost if the server is away for longer.
const ATTEMPTS: usize = 12;
const PAUSE: Duration = Duration::from_secs(10);
const JITTER: f64 = 0.25;

/// How repeated events are counted, and how they look, in one of the two event APIs. Times are those since
/// the writer was started.
pub(super) trait EventApi: Default + Send + Sync + 'static {
    /// What the events that are counted together have in common.
    type Id: Send + Sync;
    type Event: Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Clone
        + Debug
        + Serialize
        + DeserializeOwned
        + Send
        + Sync;

    /// Adds an event, and returns what to write now.
    fn add(&mut self, now: Duration, event: NewEvent) -> Option<EventWrite<Self::Id>>;

    /// The event was written under this name.
    fn set_name(&mut self, id: &Self::Id, name: String);

    /// When [`EventApi::write_due`] has something to do.
    fn next_due(&self) -> Option<Duration> {
        None
    }

    /// The counts that are due to be written.
    fn write_due(&mut self, _now: Duration) -> Vec<EventWrite<Self::Id>> {
        Vec::new()
    }

    /// All counts that have not been written.
    fn close(&mut self) -> Vec<EventWrite<Self::Id>> {
        Vec::new()
    }

    /// The object.
    fn event(write: &EventWrite<Self::Id>, name: String, reporter: &Reporter) -> Self::Event;

    /// The patch that brings the count of an existing event up to that of this one.
    fn count(event: &Self::Event) -> Value;
}

/// A write of an event to the server.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct EventWrite<I> {
    pub(super) id: I,
    /// The name of the event whose count is updated; `None` to create one.
    pub(super) name: Option<String>,
    pub(super) event: NewEvent,
    pub(super) count: i32,
    pub(super) first: Timestamp,
    pub(super) last: Timestamp,
}

pub(super) struct EventWriter<A> {
    world: World,
    client: Client,
    reporter: Arc<Reporter>,
    api: A,
}

impl<A: EventApi> EventWriter<A> {
    pub(super) fn new(world: &World, client: Client, reporter: Arc<Reporter>) -> EventWriter<A> {
        EventWriter { world: world.clone(), client, reporter, api: A::default() }
    }

    /// Writes until the queue is closed, or `None` comes out of it.
    pub(super) async fn run(mut self, mut queue: mpsc::Receiver<Option<NewEvent>>) {
        let start = self.world.now();
        loop {
            let now = self.world.now().since(start);
            let next = match self.api.next_due() {
                None => Ok(queue.recv().await),
                Some(due) => self.world.timeout(due.saturating_sub(now), queue.recv()).await,
            };
            let now = self.world.now().since(start);
            let writes = match next {
                Ok(Some(Some(event))) => Vec::from_iter(self.api.add(now, event)),
                Ok(Some(None) | None) => break,
                Err(_) => self.api.write_due(now),
            };
            for write in writes {
                self.write(write).await;
            }
        }
        for write in self.api.close() {
            self.write(write).await;
        }
    }

    async fn write(&mut self, write: EventWrite<A::Id>) {
        let name = write.name.clone().unwrap_or_else(|| event_name(&self.world, &write.event.regarding));
        let event = A::event(&write, name.clone(), &self.reporter);
        for attempt in 1.. {
            let sent = match write.name {
                Some(_) => self.count(&name, &event).await,
                None => self.create(&event).await,
            };
            let Err(error) = sent else { return self.api.set_name(&write.id, name) };
            if attempt == ATTEMPTS || !is_transient(&error) {
                tracing::debug!(%error, reason = write.event.reason, "event not written");
                return;
            }
            self.world.sleep(self.world.jitter(PAUSE, JITTER)).await;
        }
    }

    async fn create(&self, event: &A::Event) -> Result<(), kube::Error> {
        match self.events(event).create(&PostParams::default(), event).await {
            // A conflict: the name is unique, so an earlier attempt succeeded, and its response was lost.
            Err(error) if !retry::is_conflict(&error) => Err(error),
            _ => Ok(()),
        }
    }

    async fn count(&self, name: &str, event: &A::Event) -> Result<(), kube::Error> {
        let patch = Patch::Merge(A::count(event));
        match self.events(event).patch(name, &PatchParams::default(), &patch).await {
            // Events are deleted after an hour, and this one was.
            Err(error) if retry::is_missing(&error) => self.create(event).await,
            result => result.map(drop),
        }
    }

    fn events(&self, event: &A::Event) -> Api<A::Event> {
        Api::namespaced(self.client.clone(), event.meta().namespace.as_deref().unwrap_or("default"))
    }
}

/// A new name for an event on an object.
fn event_name(world: &World, regarding: &ObjectReference) -> String {
    // Two recorders may record on one object at the same time: the time alone is not unique.
    let suffix = format!(".{:016x}", world.draw());
    let stem = regarding.name.as_deref().unwrap_or_default();
    let stem = super::cut(stem, crate::name::SUBDOMAIN - suffix.len()).trim_end_matches(['.', '-']);
    format!("{stem}{suffix}")
}

/// Whether a retry may succeed.
fn is_transient(error: &kube::Error) -> bool {
    match error {
        kube::Error::Api(status) => status.code == 429 || status.code >= 500,
        kube::Error::SerdeError(_) | kube::Error::BuildRequest(_) => false,
        _ => true,
    }
}
