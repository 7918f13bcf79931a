//! The one copy of a kind's objects that all who ask for the same scope share.

use crate::{
    Key,
    cache::{
        Cause, Change, Item, Scope, Subscriber,
        contents::{Backwards, Contents, FeedId, Moved},
        cut::Shape,
        index::Values,
        item::Reader,
        memo::Memo,
        scope::Filter,
    },
};
use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard},
};
use tokio::sync::watch;

/// What a cache is a cache of. There is one for each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Subject {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) kind: String,
    pub(crate) plural: String,
    pub(crate) metadata_only: bool,
    pub(crate) scope: Scope,
}

pub(crate) struct Store {
    subject: Subject,
    shape: Arc<Shape>,
    filter: Filter,
    contents: RwLock<Contents>,
    /// Held from before a change until all have heard of it, so that all hear changes in one order.
    /// Whoever reads the contents does not need it, and so subscribers may read.
    subscribers: Mutex<Vec<Subscriber>>,
    /// Moves with every change that somebody could wait for.
    ticks: watch::Sender<u64>,
    memo: Memo,
}

/// How the metadata of an object of any kind comes, if nothing else is asked for.
pub(crate) const METADATA: (&str, &str) = ("meta.k8s.io/v1", "PartialObjectMetadata");

impl Subject {
    pub(crate) fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.clone() } else { format!("{}/{}", self.group, self.version) }
    }

    /// Where its objects are listed.
    pub(crate) fn path(&self, namespace: Option<&str>) -> String {
        let root = if self.group.is_empty() { "/api" } else { "/apis" };
        let within = namespace.map(|name| format!("namespaces/{name}/")).unwrap_or_default();
        format!("{root}/{}/{within}{}", self.api_version(), self.plural)
    }

    fn shape(&self) -> Shape {
        let own = || (self.api_version(), self.kind.clone());
        let (api_version, kind) =
            if self.metadata_only { (METADATA.0.to_owned(), METADATA.1.to_owned()) } else { own() };
        Shape { api_version, kind, metadata_only: self.metadata_only, cuts: self.scope.cuts() }
    }
}

impl Store {
    pub(crate) fn new(subject: Subject) -> Store {
        Store {
            shape: Arc::new(subject.shape()),
            filter: subject.scope.filter(),
            contents: RwLock::new(Contents::new(subject.scope.feeds())),
            subscribers: Mutex::default(),
            ticks: watch::Sender::new(0),
            memo: Memo::new(),
            subject,
        }
    }

    pub(crate) fn subject(&self) -> &Subject {
        &self.subject
    }

    pub(crate) fn reader(&self) -> Reader {
        Reader::new(Arc::clone(&self.shape))
    }

    pub(crate) fn filter(&self) -> &Filter {
        &self.filter
    }

    pub(crate) fn memo(&self) -> &Memo {
        &self.memo
    }

    pub(crate) fn read(&self) -> RwLockReadGuard<'_, Contents> {
        self.contents.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn item(&self, key: &Key) -> Option<Item> {
        self.read().items().get(key.as_str()).cloned()
    }

    pub(crate) fn add_index(&self, name: &'static str, values: Values) {
        self.contents.write().unwrap_or_else(PoisonError::into_inner).add_index(name, values);
    }

    /// From now on `subscriber` hears every change, and first of all that is there.
    pub(crate) fn subscribe(&self, subscriber: Subscriber) {
        let mut subscribers = self.subscribers();
        let present: Vec<Item> = self.read().items().iter().cloned().collect();
        for item in &present {
            subscriber(&Change { before: None, after: Some(item), cause: Cause::Initial });
        }
        subscribers.push(subscriber);
    }

    /// Tells all of every object once more.
    pub(crate) fn resync(&self) {
        let subscribers = self.subscribers();
        let present: Vec<Item> = self.read().items().iter().cloned().collect();
        for item in &present {
            tell(&subscribers, &Change { before: Some(item), after: Some(item), cause: Cause::Resync });
        }
    }

    pub(crate) fn change(&self, cause: Cause, change: impl FnOnce(&mut Contents) -> Vec<Moved>) {
        let subscribers = self.subscribers();
        let moves = change(&mut self.contents.write().unwrap_or_else(PoisonError::into_inner));
        for Moved { before, after } in &moves {
            tell(&subscribers, &Change { before: before.as_ref(), after: after.as_ref(), cause });
        }
        drop(subscribers);
        if self.ticks.receiver_count() > 0 {
            self.ticks.send_modify(|ticks| *ticks += 1);
        }
    }

    /// The first list is told as such; a later one tells what it found changed.
    pub(crate) fn told(&self, feed: FeedId, change: impl FnOnce(&mut Contents) -> Vec<Moved>) {
        let is_first = !self.read().has_synced(feed);
        self.change(if is_first { Cause::Initial } else { Cause::Watched }, change);
    }

    pub(crate) fn complete(&self, feed: FeedId, version: u64) -> Result<(), Backwards> {
        let mut outcome = Ok(());
        self.told(feed, |contents| {
            contents.complete(feed, version).unwrap_or_else(|backwards| {
                outcome = Err(backwards);
                Vec::new()
            })
        });
        outcome
    }

    /// Ends when `is_so`. It is asked again after every change.
    pub(crate) async fn until(&self, mut is_so: impl FnMut(&Contents) -> bool) {
        let mut ticks = self.ticks.subscribe();
        while !is_so(&self.read()) {
            if ticks.changed().await.is_err() {
                return;
            }
        }
    }

    fn subscribers(&self) -> MutexGuard<'_, Vec<Subscriber>> {
        self.subscribers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn tell(subscribers: &[Subscriber], change: &Change<'_>) {
    for subscriber in subscribers {
        subscriber(change);
    }
}

impl fmt::Debug for Store {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let contents = self.read();
        write!(out, "{} of {}", contents.items().len(), self.subject.plural)
    }
}
