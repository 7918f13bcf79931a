//! The cached objects of one kind and scope, shared by all views of them.

use crate::{
    Key,
    cache::{
        Delta, Item, Origin, Scope, Subscriber,
        contents::{Contents, ReflectorId, StaleList},
        cut::Shape,
        index::IndexFunction,
        item::Reader,
        memo::Memo,
        scope::Filter,
    },
    watch::CacheUpdate,
};
use api::path::ResourcePath;
use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard},
};
use world::watch;

/// Which objects a store holds, and in which form. There is one store for each of these.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CachedKind {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) kind: String,
    pub(crate) plural: String,
    pub(crate) metadata_only: bool,
    pub(crate) scope: Scope,
}

pub(crate) struct Store {
    kind: CachedKind,
    shape: Arc<Shape>,
    filter: Filter,
    contents: RwLock<Contents>,
    /// Locked from before a change until every subscriber has its delta, so that all get deltas in the
    /// same order. Reading the contents does not take this lock: subscribers may read.
    subscribers: Mutex<Vec<Subscriber>>,
    /// Counts changes, to wake tasks in [`Store::until`].
    changes: watch::Sender<u64>,
    /// Tells the reflectors to list again.
    list_again: watch::Sender<()>,
    memo: Arc<Memo>,
}

/// The apiVersion and kind of objects in metadata form.
pub(crate) const METADATA: (&str, &str) = ("meta.k8s.io/v1", "PartialObjectMetadata");

impl CachedKind {
    pub(crate) fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.clone() } else { format!("{}/{}", self.group, self.version) }
    }

    /// The path of its collection.
    pub(crate) fn path(&self, namespace: Option<&str>) -> String {
        let collection = ResourcePath::collection(&self.group, &self.version, &self.plural);
        collection.in_namespace(namespace.unwrap_or_default()).to_string()
    }

    fn shape(&self) -> Shape {
        let own = || (self.api_version(), self.kind.clone());
        let (api_version, kind) =
            if self.metadata_only { (METADATA.0.to_owned(), METADATA.1.to_owned()) } else { own() };
        Shape {
            api_version,
            kind,
            metadata_only: self.metadata_only,
            dropped: self.scope.dropped_fields(),
            transforms: self.scope.transforms().to_vec(),
        }
    }
}

impl Store {
    pub(crate) fn new(kind: CachedKind) -> Store {
        Store {
            shape: Arc::new(kind.shape()),
            filter: kind.scope.filter(),
            contents: RwLock::new(Contents::new(kind.scope.namespaces())),
            subscribers: Mutex::default(),
            changes: watch::Sender::new(0),
            list_again: watch::Sender::new(()),
            memo: Arc::new(Memo::new()),
            kind,
        }
    }

    pub(crate) fn kind(&self) -> &CachedKind {
        &self.kind
    }

    pub(crate) fn reader(&self) -> Reader {
        Reader::new(Arc::clone(&self.shape))
    }

    pub(crate) fn filter(&self) -> &Filter {
        &self.filter
    }

    pub(crate) fn memo(&self) -> &Arc<Memo> {
        &self.memo
    }

    pub(crate) fn read(&self) -> RwLockReadGuard<'_, Contents> {
        self.contents.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn item(&self, key: &Key) -> Option<Item> {
        self.read().items().get(key.as_str()).cloned()
    }

    pub(crate) fn add_index(&self, name: &'static str, values: IndexFunction) {
        if self.read().indexes().has(name, &values) {
            return;
        }
        self.contents.write().unwrap_or_else(PoisonError::into_inner).add_index(name, values);
    }

    /// Makes an index of a label, however many there are.
    pub(crate) fn index_label(&self, label: &str) {
        if !self.read().indexes().has_label(label) {
            self.contents.write().unwrap_or_else(PoisonError::into_inner).add_label_index(label);
        }
    }

    /// The objects with this value of a label, in one namespace or in all. The first call for a label makes
    /// an index of it, unless there are many.
    pub(crate) fn labelled(&self, label: &str, value: &str, namespace: Option<&str>) -> Vec<Item> {
        if self.read().indexes().may_add_label() {
            self.index_label(label);
        }
        self.read().labelled(label, value, namespace).into_iter().cloned().collect()
    }

    /// Calls `subscriber` for every object there is, and from then on for every change.
    pub(crate) fn subscribe(&self, subscriber: Subscriber) {
        let mut subscribers = self.subscribers();
        let present: Vec<Item> = self.read().items().iter().cloned().collect();
        for item in present {
            subscriber(&Delta { before: None, after: Some(item), origin: Origin::InitialList });
        }
        subscribers.push(subscriber);
    }

    /// Calls every subscriber for every object once more.
    pub(crate) fn resync(&self) {
        let subscribers = self.subscribers();
        let present: Vec<Item> = self.read().items().iter().cloned().collect();
        for item in present {
            let delta = Delta { before: Some(item.clone()), after: Some(item), origin: Origin::Resync };
            notify(&subscribers, &delta);
        }
    }

    /// Changes the contents, and tells all subscribers what changed.
    pub(crate) fn change(&self, change: impl FnOnce(&mut Contents) -> Vec<Delta>) {
        self.change_unawaited(change);
        if self.changes.receiver_count() > 0 {
            self.changes.modify(|changes| *changes += 1);
        }
    }

    /// [`Store::change`] without waking those who wait for a condition.
    fn change_unawaited(&self, change: impl FnOnce(&mut Contents) -> Vec<Delta>) {
        let subscribers = self.subscribers();
        let deltas = change(&mut self.contents.write().unwrap_or_else(PoisonError::into_inner));
        deltas.iter().for_each(|delta| notify(&subscribers, delta));
    }

    pub(crate) fn apply(&self, reflector: ReflectorId, update: CacheUpdate) -> Result<(), StaleList> {
        let mut outcome = Ok(());
        // What waits for a list waits for its end: waking it at each object costs a third of the list.
        let is_part = matches!(update, CacheUpdate::Listed(_));
        let change = |contents: &mut Contents| {
            contents.apply(reflector, update).unwrap_or_else(|stale| {
                outcome = Err(stale);
                Vec::new()
            })
        };
        if is_part {
            self.change_unawaited(change)
        } else {
            self.change(change)
        }
        outcome
    }

    /// Lists once more: until that is complete, the store is not fresh.
    pub(crate) fn refresh(&self) {
        self.change(|contents| {
            contents.want_list();
            Vec::new()
        });
        self.list_again.set(());
    }

    /// Reports every call of [`Store::refresh`] from now on.
    pub(crate) fn refreshes(&self) -> watch::Receiver<()> {
        self.list_again.subscribe()
    }

    /// Waits until `condition` holds; it is checked after every change.
    pub(crate) async fn until(&self, mut condition: impl FnMut(&Contents) -> bool) {
        let mut changes = self.changes.subscribe();
        while !condition(&self.read()) {
            if changes.changed().await.is_err() {
                return;
            }
        }
    }

    fn subscribers(&self) -> MutexGuard<'_, Vec<Subscriber>> {
        self.subscribers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn notify(subscribers: &[Subscriber], delta: &Delta) {
    for subscriber in subscribers {
        subscriber(delta);
    }
}

impl fmt::Debug for Store {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let contents = self.read();
        write!(out, "{} of {}", contents.items().len(), self.kind.plural)
    }
}
