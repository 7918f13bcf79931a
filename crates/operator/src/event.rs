//! Records events on objects: repeated ones are counted, too many are dropped.
//!
//! Recording never waits and never fails: events go into a bounded queue from which one task writes
//! them, and are dropped if it is full. The rules are those of client-go's recorder.

mod core_correlator;
mod core_v1;
mod correlator;
mod events_v1;
mod tasks;
mod writer;

pub(crate) use tasks::EventTasks;

use core_correlator::CoreCorrelator;
use correlator::{Correlator, NewEvent};
use k8s_openapi::api::core::v1::ObjectReference;
use kube::{Client, Resource, ResourceExt, core::ObjectMeta};
use std::{future::Future, sync::Arc};
use tokio::sync::mpsc;
use world::World;
use writer::{EventApi, EventWriter};

/// Of more than a thousand events at once, single ones say nothing.
const QUEUE: usize = 1024;

/// The `type` of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum EventType {
    /// Something went as it should.
    Normal,
    /// Something that a person may have to look at.
    Warning,
}

/// Records events. Cheap to clone; when the last clone is dropped, its task writes what is left and ends. The
/// tasks of a manager's recorders end with the manager.
///
/// ```
/// use k8s_openapi::api::{core::v1::ConfigMap, events::v1::Event};
/// use operator::event::Recorder;
///
/// testkit::run(|cluster| async move {
///     cluster.apply("{apiVersion: v1, kind: ConfigMap, metadata: {name: web}}").await;
///     let map: ConfigMap = cluster.get("default", "web").await;
///     // A reconcile has one in `context.events()`.
///     let events = Recorder::new(cluster.world(), cluster.client(), "example.com/web", "web-0");
///     events.normal(&map, "Created", "CreateChild", "created service \"web\"");
///     cluster.settle().await;
///     let recorded = cluster.list::<Event>("default").await;
///     assert_eq!(recorded[0].reason.as_deref(), Some("Created"));
/// });
/// ```
#[derive(Clone)]
pub struct Recorder {
    world: World,
    /// `None` ends the task.
    queue: mpsc::Sender<Option<NewEvent>>,
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
        Recorder::detached::<Correlator>(world, client, controller, instance)
    }

    /// Records core `v1` events, as the components of Kubernetes do: each message is an event of its own,
    /// and there is no `action`.
    pub fn core(world: &World, client: Client, component: &str) -> Recorder {
        Recorder::core_on(world, client, component, "")
    }

    /// [`Recorder::core`] for a component that runs on each node: `host` is the node, and the instance of the
    /// component.
    pub fn core_on(world: &World, client: Client, component: &str, host: &str) -> Recorder {
        Recorder::detached::<CoreCorrelator>(world, client, component, host)
    }

    fn detached<A: EventApi>(world: &World, client: Client, controller: &str, instance: &str) -> Recorder {
        let (recorder, work) = Recorder::with_writer::<A>(world, client, controller, instance);
        world.spawn("events", work).detach();
        recorder
    }

    /// A recorder, and the work of its task.
    fn with_writer<A: EventApi>(
        world: &World,
        client: Client,
        controller: &str,
        instance: &str,
    ) -> (Recorder, impl Future<Output = ()> + Send + use<A>) {
        let (queue, events) = mpsc::channel(QUEUE);
        let reporter = Arc::new(Reporter { controller: controller.into(), instance: instance.into() });
        let writer = EventWriter::<A>::new(world, client, Arc::clone(&reporter));
        (Recorder { world: world.clone(), queue, reporter }, writer.run(events))
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
        if let Err(lost) = self.queue.try_send(Some(event)) {
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

/// The metadata of an event on this object.
fn metadata(name: String, regarding: &ObjectReference) -> ObjectMeta {
    // Kubernetes: events on cluster-scoped objects are in namespace `default`.
    let namespace = regarding.namespace.clone().unwrap_or_else(|| "default".into());
    ObjectMeta { name: Some(name), namespace: Some(namespace), ..ObjectMeta::default() }
}

/// The longest prefix of the text within so many bytes.
fn cut(text: &str, limit: usize) -> &str {
    let end = (0..=limit.min(text.len())).rev().find(|at| text.is_char_boundary(*at));
    &text[..end.unwrap_or_default()]
}
