//! What happened to an object in, `events.k8s.io/v1` events out: repeated ones counted, floods dropped.
//!
//! Recording never waits and never fails: a bounded queue takes the news, one task writes it, and
//! what finds no room is dropped. The rules are those of Kubernetes' own recorder.

mod book;

use crate::retry;
use book::{Book, News, Write};
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

/// A burst of a thousand is a storm, in which single events say nothing.
const QUEUE: usize = 1024;
/// Kubernetes: twelve tries, ten seconds apart. A server that is away for longer loses events.
const ATTEMPTS: usize = 12;
const PAUSE: Duration = Duration::from_secs(10);
const JITTER: f64 = 0.25;

/// Whether an event is good news or bad.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tone {
    Normal,
    Warning,
}

/// Writes down what happens to objects. Cheap to clone; its task ends with the last clone.
#[derive(Clone)]
pub struct Recorder {
    world: World,
    queue: mpsc::Sender<News>,
    source: Arc<Source>,
}

/// Who tells the news.
#[derive(Debug)]
struct Source {
    controller: String,
    instance: String,
}

impl Recorder {
    /// `controller` is the qualified name of the controller, `instance` the process (a pod's name).
    pub fn new(world: &World, client: Client, controller: &str, instance: &str) -> Recorder {
        let (queue, news) = mpsc::channel(QUEUE);
        let source = Arc::new(Source { controller: controller.into(), instance: instance.into() });
        let writer = Writer { world: world.clone(), client, book: Book::default(), source: source.clone() };
        world.spawn("events", writer.run(news)).detach();
        Recorder { world: world.clone(), queue, source }
    }

    /// Says that something went as it should. `reason` is why, `action` what the controller did
    /// about it (both one CamelCase word), `note` a sentence for people.
    pub fn normal<K>(&self, object: &K, reason: &str, action: &str, note: impl Into<String>)
    where
        K: Resource,
        K::DynamicType: Default,
    {
        self.record(reference(object), Tone::Normal, reason, action, note.into());
    }

    /// [`Recorder::normal`] for what should not have happened.
    pub fn warning<K>(&self, object: &K, reason: &str, action: &str, note: impl Into<String>)
    where
        K: Resource,
        K::DynamicType: Default,
    {
        self.record(reference(object), Tone::Warning, reason, action, note.into());
    }

    /// The same for an object that is known by its reference only.
    pub fn record(&self, regarding: ObjectReference, tone: Tone, reason: &str, action: &str, note: String) {
        let news = News {
            regarding,
            tone,
            reason: reason.into(),
            action: action.into(),
            note,
            at: self.world.wall(),
        };
        if let Err(lost) = self.queue.try_send(news) {
            tracing::debug!(controller = self.source.controller, error = %lost, "event dropped");
        }
    }
}

impl std::fmt::Debug for Recorder {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Recorder").field("source", &self.source).finish_non_exhaustive()
    }
}

impl Tone {
    pub fn as_str(self) -> &'static str {
        match self {
            Tone::Normal => "Normal",
            Tone::Warning => "Warning",
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

/// The one task that writes.
struct Writer {
    world: World,
    client: Client,
    book: Book,
    source: Arc<Source>,
}

impl Writer {
    async fn run(mut self, mut queue: mpsc::Receiver<News>) {
        let start = self.world.now();
        loop {
            let now = self.world.now().since(start);
            let news = match self.book.due() {
                None => queue.recv().await,
                Some(due) => match self.world.timeout(due.saturating_sub(now), queue.recv()).await {
                    Ok(news) => news,
                    Err(_) => {
                        let now = self.world.now().since(start);
                        for write in self.book.settle(now) {
                            self.write(write).await;
                        }
                        continue;
                    }
                },
            };
            let Some(news) = news else { break };
            let now = self.world.now().since(start);
            if let Some(write) = self.book.enter(now, news) {
                self.write(write).await;
            }
        }
        for write in self.book.close() {
            self.write(write).await;
        }
    }

    async fn write(&mut self, write: Write) {
        let event = self.event(&write);
        let id = write.id;
        for _ in 0..ATTEMPTS {
            let sent = match write.name {
                Some(_) => self.count(&event).await,
                None => self.create(&event).await,
            };
            match sent {
                Ok(name) => return self.book.name(id, name),
                Err(error) if may_pass(&error) => {
                    self.world.sleep(self.world.jitter(PAUSE, JITTER)).await;
                }
                Err(error) => {
                    tracing::debug!(%error, reason = event.reason, "event refused");
                    return;
                }
            }
        }
        tracing::debug!(reason = event.reason, "event given up");
    }

    async fn create(&self, event: &Event) -> Result<String, kube::Error> {
        match self.api(event).create(&PostParams::default(), event).await {
            Ok(_) => Ok(event.name_any()),
            // No other event has its name: the answer to an earlier attempt was lost.
            Err(error) if retry::is_conflict(&error) => Ok(event.name_any()),
            Err(error) => Err(error),
        }
    }

    async fn count(&self, event: &Event) -> Result<String, kube::Error> {
        let name = event.name_any();
        let patch = Patch::Merge(json!({ "series": event.series }));
        match self.api(event).patch(&name, &PatchParams::default(), &patch).await {
            Ok(_) => Ok(name),
            // Events live for an hour: this one's time was up.
            Err(error) if retry::is_missing(&error) => self.create(event).await,
            Err(error) => Err(error),
        }
    }

    fn api(&self, event: &Event) -> Api<Event> {
        Api::namespaced(self.client.clone(), event.metadata.namespace.as_deref().unwrap_or("default"))
    }

    fn event(&self, write: &Write) -> Event {
        let name = write.name.clone().unwrap_or_else(|| {
            // Two recorders may tell of one object in one instant: time alone is no name.
            let suffix = format!(".{:016x}", self.world.draw());
            let stem = write.news.regarding.name.as_deref().unwrap_or_default();
            format!(
                "{}{suffix}",
                cut(stem, crate::name::SUBDOMAIN - suffix.len()).trim_end_matches(['.', '-'])
            )
        });
        write.news.event(name, &self.source, write.series())
    }
}

/// Whether the same event may be taken later.
fn may_pass(error: &kube::Error) -> bool {
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

/// The longest beginning of the text within so many bytes.
fn cut(text: &str, limit: usize) -> &str {
    let end = (0..=limit.min(text.len())).rev().find(|at| text.is_char_boundary(*at));
    &text[..end.unwrap_or_default()]
}
