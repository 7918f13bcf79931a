//! Records events on objects: repeated ones are counted, too many are dropped.
//!
//! Recording never waits and never fails: events go into a bounded queue from which one task writes
//! them, and are dropped if it is full. The rules are those of client-go's recorder.

mod core_correlator;
mod core_writer;
mod correlator;

use crate::retry;
use core_writer::CoreWriter;
use correlator::{Correlator, EventWrite, NewEvent};
use jiff::Timestamp;
use k8s_openapi::{
    api::{core::v1::ObjectReference, events::v1::Event},
    apimachinery::pkg::apis::meta::v1::MicroTime,
};
use kube::{
    Api, Client, Resource, ResourceExt,
    api::{Patch, PatchParams, PostParams},
};
use serde_json::json;
use std::{sync::Arc, time::Duration};
use tokio::sync::mpsc;
use world::World;

/// Of more than a thousand events at once, single ones say nothing.
const QUEUE: usize = 1024;
/// Kubernetes: twelve attempts, ten seconds apart. Events are lost if the server is away for longer.
const ATTEMPTS: usize = 12;
const PAUSE: Duration = Duration::from_secs(10);
const JITTER: f64 = 0.25;

/// The `type` of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum EventType {
    Normal,
    Warning,
}

/// Records events. Cheap to clone; its task ends when the last clone is dropped.
#[derive(Clone)]
pub struct Recorder {
    world: World,
    queue: mpsc::Sender<NewEvent>,
    reporter: Arc<Reporter>,
}

/// The reportingController and reportingInstance of events.
#[derive(Debug)]
struct Reporter {
    controller: String,
    instance: String,
}

impl Recorder {
    /// Records `events.k8s.io/v1` events. `controller` is the qualified name of the controller, `instance` the
    /// process (a pod's name).
    pub fn new(world: &World, client: Client, controller: &str, instance: &str) -> Recorder {
        let (queue, events) = mpsc::channel(QUEUE);
        let reporter = Arc::new(Reporter { controller: controller.into(), instance: instance.into() });
        let writer = EventWriter {
            world: world.clone(),
            client,
            correlator: Correlator::default(),
            reporter: reporter.clone(),
        };
        world.spawn("events", writer.run(events)).detach();
        Recorder { world: world.clone(), queue, reporter }
    }

    /// Records core `v1` events, as the components of Kubernetes do: each message is an event of its own,
    /// and there is no `action`.
    pub fn core(world: &World, client: Client, component: &str) -> Recorder {
        Recorder::core_on(world, client, component, "")
    }

    /// [`Recorder::core`] for a component that runs on each node: `host` is the node, and the instance of the
    /// component.
    pub fn core_on(world: &World, client: Client, component: &str, host: &str) -> Recorder {
        let (queue, events) = mpsc::channel(QUEUE);
        let reporter = Arc::new(Reporter { controller: component.into(), instance: host.into() });
        let writer = CoreWriter::new(world, client, Arc::clone(&reporter));
        world.spawn("events", writer.run(events)).detach();
        Recorder { world: world.clone(), queue, reporter }
    }

    /// Records an event of type Normal. `reason` is why, `action` what the controller did (both one
    /// CamelCase word), `note` a sentence for people.
    pub fn normal<K>(&self, object: &K, reason: &str, action: &str, note: impl Into<String>)
    where
        K: Resource,
        K::DynamicType: Default,
    {
        self.record(reference(object), EventType::Normal, reason, action, note.into());
    }

    /// Records an event of type Warning.
    pub fn warning<K>(&self, object: &K, reason: &str, action: &str, note: impl Into<String>)
    where
        K: Resource,
        K::DynamicType: Default,
    {
        self.record(reference(object), EventType::Warning, reason, action, note.into());
    }

    /// Records an event on an object that is known by its reference only.
    pub fn record(
        &self,
        regarding: ObjectReference,
        event_type: EventType,
        reason: &str,
        action: &str,
        note: String,
    ) {
        let event = NewEvent {
            regarding,
            event_type,
            reason: reason.into(),
            action: action.into(),
            note,
            at: self.world.wall(),
        };
        if let Err(lost) = self.queue.try_send(event) {
            tracing::debug!(controller = self.reporter.controller, error = %lost, "event dropped");
        }
    }
}

impl std::fmt::Debug for Recorder {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Recorder").field("reporter", &self.reporter).finish_non_exhaustive()
    }
}

impl EventType {
    /// As Kubernetes writes it.
    pub fn as_str(self) -> &'static str {
        match self {
            EventType::Normal => "Normal",
            EventType::Warning => "Warning",
        }
    }
}

fn reference<K>(object: &K) -> ObjectReference
where
    K: Resource,
    K::DynamicType: Default,
{
    ObjectReference {
        resource_version: object.resource_version(),
        ..object.object_ref(&K::DynamicType::default())
    }
}

/// The task that writes events.
struct EventWriter {
    world: World,
    client: Client,
    correlator: Correlator,
    reporter: Arc<Reporter>,
}

impl EventWriter {
    async fn run(mut self, mut queue: mpsc::Receiver<NewEvent>) {
        let start = self.world.now();
        loop {
            let now = self.world.now().since(start);
            let event = match self.correlator.next_due() {
                None => queue.recv().await,
                Some(due) => match self.world.timeout(due.saturating_sub(now), queue.recv()).await {
                    Ok(event) => event,
                    Err(_) => {
                        let now = self.world.now().since(start);
                        for write in self.correlator.write_due(now) {
                            self.write(write).await;
                        }
                        continue;
                    }
                },
            };
            let Some(event) = event else { break };
            let now = self.world.now().since(start);
            if let Some(write) = self.correlator.add(now, event) {
                self.write(write).await;
            }
        }
        for write in self.correlator.close() {
            self.write(write).await;
        }
    }

    async fn write(&mut self, write: EventWrite) {
        let event = self.event(&write);
        let mut attempts = Attempts::new(&self.world, &write.event.reason);
        loop {
            let sent = match write.name {
                Some(_) => self.count(&event).await,
                None => self.create(&event).await,
            };
            match sent {
                Ok(name) => return self.correlator.set_name(write.id, name),
                Err(error) if attempts.another_after(&error).await => {}
                Err(_) => return,
            }
        }
    }

    async fn create(&self, event: &Event) -> Result<String, kube::Error> {
        match self.api(event).create(&PostParams::default(), event).await {
            Ok(_) => Ok(event.name_any()),
            // The name is unique: an earlier attempt succeeded, and its response was lost.
            Err(error) if retry::is_conflict(&error) => Ok(event.name_any()),
            Err(error) => Err(error),
        }
    }

    async fn count(&self, event: &Event) -> Result<String, kube::Error> {
        let name = event.name_any();
        let patch = Patch::Merge(json!({ "series": event.series }));
        match self.api(event).patch(&name, &PatchParams::default(), &patch).await {
            Ok(_) => Ok(name),
            // Events are deleted after an hour, and this one was.
            Err(error) if retry::is_missing(&error) => self.create(event).await,
            Err(error) => Err(error),
        }
    }

    fn api(&self, event: &Event) -> Api<Event> {
        Api::namespaced(self.client.clone(), event.metadata.namespace.as_deref().unwrap_or("default"))
    }

    fn event(&self, write: &EventWrite) -> Event {
        let name = write.name.clone().unwrap_or_else(|| event_name(&self.world, &write.event.regarding));
        write.event.event(name, &self.reporter, write.series())
    }
}

/// A new name for an event on an object.
fn event_name(world: &World, regarding: &ObjectReference) -> String {
    // Two recorders may record on one object at the same time: the time alone is not unique.
    let suffix = format!(".{:016x}", world.draw());
    let stem = regarding.name.as_deref().unwrap_or_default();
    let stem = cut(stem, crate::name::SUBDOMAIN - suffix.len()).trim_end_matches(['.', '-']);
    format!("{stem}{suffix}")
}

/// How often the write of one event is tried.
struct Attempts<'a> {
    world: World,
    reason: &'a str,
    left: usize,
}

impl<'a> Attempts<'a> {
    fn new(world: &World, reason: &'a str) -> Attempts<'a> {
        Attempts { world: world.clone(), reason, left: ATTEMPTS }
    }

    /// Whether to try again, after a pause.
    async fn another_after(&mut self, error: &kube::Error) -> bool {
        self.left -= 1;
        if self.left == 0 || !is_transient(error) {
            tracing::debug!(%error, reason = self.reason, "event not written");
            return false;
        }
        self.world.sleep(self.world.jitter(PAUSE, JITTER)).await;
        true
    }
}

/// Whether a retry may succeed.
fn is_transient(error: &kube::Error) -> bool {
    match error {
        kube::Error::Api(status) => status.code == 429 || status.code >= 500,
        kube::Error::SerdeError(_) | kube::Error::BuildRequest(_) => false,
        _ => true,
    }
}

fn micro(at: Timestamp) -> MicroTime {
    let whole = Timestamp::from_microsecond(at.as_microsecond()).unwrap_or(at);
    MicroTime(whole)
}

/// The longest prefix of the text within so many bytes.
fn cut(text: &str, limit: usize) -> &str {
    let end = (0..=limit.min(text.len())).rev().find(|at| text.is_char_boundary(*at));
    &text[..end.unwrap_or_default()]
}
