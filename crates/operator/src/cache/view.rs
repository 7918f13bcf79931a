//! The cached objects of one kind, as their Rust type: client-go's lister.

use crate::{
    Key,
    cache::{Item, Subscriber, Undecodable, index::IndexFunction, memo::Memo, store::Store},
};
use api::label_selector;
use kube::core::Selector;
use serde::de::DeserializeOwned;
use std::{fmt, future::Future, marker::PhantomData, sync::Arc};

/// The local copy of a kind's objects. Reads never wait, and never return an object that is older than
/// what this process has written with [`crate::cache::Caches::client`]. Cheap to clone.
///
/// Lists are in the order of keys. An object that does not fit `K` is an error: a reconciler that took
/// it for deleted would clean up its children.
pub struct View<K> {
    store: Arc<Store>,
    kind: PhantomData<fn() -> K>,
}

impl<K> View<K> {
    pub(crate) fn new(store: Arc<Store>) -> View<K> {
        View { store, kind: PhantomData }
    }

    pub(crate) fn store(&self) -> &Arc<Store> {
        &self.store
    }

    /// Whether the object is in the cache.
    pub fn contains(&self, key: &Key) -> bool {
        self.store.read().items().get(key.as_str()).is_some()
    }

    /// The object as it is kept: to read its metadata without decoding it.
    pub fn item(&self, key: &Key) -> Option<Item> {
        self.store.item(key)
    }

    /// The keys of all objects.
    pub fn keys(&self) -> Vec<Key> {
        self.store.read().items().iter().map(|item| item.key().clone()).collect()
    }

    /// The key of the object with this UID.
    pub fn key_of_uid(&self, uid: &str) -> Option<Key> {
        self.store.read().items().by_uid(uid).map(|item| item.key().clone())
    }

    /// How many objects there are.
    pub fn len(&self) -> usize {
        self.store.read().items().len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Waits until the first list is complete; after [`crate::cache::Caches::refresh`], until the next one is.
    pub fn synced(&self) -> impl Future<Output = ()> + Send + use<K> {
        let store = Arc::clone(&self.store);
        async move { store.until(|contents| contents.is_fresh()).await }
    }

    /// Whether the first list is complete.
    pub fn is_synced(&self) -> bool {
        self.store.read().is_synced()
    }

    /// Calls `subscriber` for every object there is, and from then on for every change, in order. It may
    /// read views; it must not wait, subscribe or write.
    pub fn subscribe(&self, subscriber: Subscriber) {
        self.store.subscribe(subscriber);
    }

    pub(crate) fn add_index(&self, name: &'static str, values: IndexFunction) {
        self.store.add_index(name, values);
    }
}

impl<K: DeserializeOwned + Send + Sync + 'static> View<K> {
    /// The object with this key.
    pub fn get(&self, key: &Key) -> Result<Option<Arc<K>>, Undecodable> {
        let Some(item) = self.store.item(key) else { return Ok(None) };
        self.store.memo().get(&item).map(Some)
    }

    /// What decodes its items. Unlike a view, subscribers may hold it: it does not hold the store.
    pub(crate) fn memo(&self) -> Arc<Memo> {
        Arc::clone(self.store.memo())
    }

    /// All objects.
    pub fn list(&self) -> Result<Vec<Arc<K>>, Undecodable> {
        let items: Vec<Item> = self.store.read().items().iter().cloned().collect();
        self.store.memo().list(&items)
    }

    /// The objects in this namespace.
    pub fn in_namespace(&self, namespace: &str) -> Result<Vec<Arc<K>>, Undecodable> {
        let items: Vec<Item> = self.store.read().items().in_namespace(namespace).cloned().collect();
        self.store.memo().list(&items)
    }

    /// The objects whose labels match, in all namespaces. If the selector requires a value of a label, they are
    /// found by an index of that label, which the first call makes.
    pub fn labelled(&self, selector: &Selector) -> Result<Vec<Arc<K>>, Undecodable> {
        self.selected(None, selector)
    }

    /// [`View::labelled`] in one namespace.
    pub fn labelled_in(&self, namespace: &str, selector: &Selector) -> Result<Vec<Arc<K>>, Undecodable> {
        self.selected(Some(namespace), selector)
    }

    fn selected(&self, namespace: Option<&str>, selector: &Selector) -> Result<Vec<Arc<K>>, Undecodable> {
        let selector = parsed(selector);
        let matches = |item: &Item| selector.matches(&item.labels());
        let required = selector.requirements().iter();
        let mut required = required.filter_map(|it| Some((it.key(), selector.required_value(it.key())?)));
        let items: Vec<Item> = match (namespace, required.next()) {
            (_, Some((label, value))) => {
                self.store.labelled(label, value, namespace).into_iter().filter(matches).collect()
            }
            (Some(namespace), None) => {
                let contents = self.store.read();
                contents.items().in_namespace(namespace).filter(|item| matches(item)).cloned().collect()
            }
            (None, None) => self.store.read().items().iter().filter(|item| matches(item)).cloned().collect(),
        };
        self.store.memo().list(&items)
    }

    /// The objects that have an owner with this UID.
    pub fn owned_by(&self, uid: &str) -> Result<Vec<Arc<K>>, Undecodable> {
        let items: Vec<Item> = self.store.read().owned_by(uid).cloned().collect();
        self.store.memo().list(&items)
    }

    /// Adds an index: [`View::indexed`] finds objects by their `values`, which must depend on nothing but
    /// the object. If there is an index of this name, it stays as it is; a manager whose controllers give one name to
    /// two functions does not start.
    ///
    /// ```
    /// use k8s_openapi::api::core::v1::Pod;
    /// use operator::cache::View;
    ///
    /// fn pods_on(pods: &View<Pod>, node: &str) -> usize {
    ///     pods.index("node", |pod| pod.spec.iter().filter_map(|spec| spec.node_name.clone()).collect());
    ///     pods.indexed("node", node).map_or(0, |pods| pods.len())
    /// }
    /// ```
    pub fn index(&self, name: &'static str, values: impl Fn(&K) -> Vec<String> + Send + Sync + 'static) {
        self.add_index(name, IndexFunction::typed(values));
    }

    /// [`View::index`] by the metadata alone, without decoding the objects.
    pub fn index_items(
        &self,
        name: &'static str,
        values: impl Fn(&Item) -> Vec<String> + Send + Sync + 'static,
    ) {
        self.add_index(name, IndexFunction::of_items(values));
    }

    /// The objects that have `value` in the index of this name.
    pub fn indexed(&self, index: &str, value: &str) -> Result<Vec<Arc<K>>, Undecodable> {
        let items: Vec<Item> = self.store.read().indexes().find(index, value).cloned().collect();
        self.store.memo().list(&items)
    }
}

/// A selector that Kubernetes would refuse matches nothing.
fn parsed(selector: &Selector) -> label_selector::Selector {
    selector.to_string().parse().unwrap_or_else(|_| label_selector::Selector::nothing())
}

impl<K> Clone for View<K> {
    fn clone(&self) -> View<K> {
        View::new(Arc::clone(&self.store))
    }
}

impl<K> fmt::Debug for View<K> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "View({:?})", self.store)
    }
}
