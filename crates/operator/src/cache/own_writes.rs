//! A client that puts what it writes into the caches before it returns the response.

use crate::{
    BoxError, Key,
    cache::{
        apply_request::{self, AnsweredApplies, ApplyRequest},
        cached_reads,
        contents::Contents,
        scope::InScope,
        store::{CachedKind, METADATA, Store},
        write_request::{self, ResponseHead, WriteRequest},
    },
    client::{self, CachedRead, OnlyIfAbsent},
    watch,
};
use foldhash::fast::FixedState;
use hashbrown::HashSet;
use http::{Request, Response};
use http_body_util::{BodyExt, Limited};
use kube::{Client, client::Body};
use serde::{Deserialize, de::IgnoredAny};
use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError, RwLock},
    time::Duration,
};
use world::World;

/// All stores of a process.
#[derive(Default)]
pub(crate) struct Registry {
    stores: RwLock<Vec<Arc<Store>>>,
    /// The UIDs of objects that the server itself has shown to this process.
    confirmed: Mutex<HashSet<Box<str>, FixedState>>,
    answered_applies: AnsweredApplies,
    /// The paths of the objects that are being created with [`OnlyIfAbsent`].
    being_created: Mutex<HashSet<Box<str>, FixedState>>,
}

/// A path of [`Registry::being_created`], until it is dropped.
struct Creation<'a> {
    registry: &'a Registry,
    path: Box<str>,
}

impl Drop for Creation<'_> {
    fn drop(&mut self) {
        let mut paths = self.registry.being_created.lock().unwrap_or_else(PoisonError::into_inner);
        paths.remove(&self.path);
    }
}

/// How long a write waits until the watch has reported what its response leaves open. It returns after
/// that in any case: a cache that is behind is better than a write that seems to hang.
const WATCH_LIMIT: Duration = Duration::from_secs(5);

/// How many confirmed objects are remembered: some ten megabytes. Those that are forgotten cost another read.
const MOST_CONFIRMED: usize = 100_000;

/// Longer than any object that a server stores.
const MOST_RESPONSE_BYTES: usize = 64 << 20;

impl Registry {
    /// The store of this kind and scope, and whether it is new.
    pub(crate) fn store(&self, kind: CachedKind) -> (Arc<Store>, bool) {
        let mut stores = self.stores.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(store) = stores.iter().find(|store| *store.kind() == kind) {
            return (Arc::clone(store), false);
        }
        let store = Arc::new(Store::new(kind));
        stores.push(Arc::clone(&store));
        (store, true)
    }

    pub(crate) fn remove(&self, store: &Arc<Store>) {
        let mut stores = self.stores.write().unwrap_or_else(PoisonError::into_inner);
        stores.retain(|it| !Arc::ptr_eq(it, store));
    }

    /// `None` if the object exists, or another request creates it at this moment.
    fn begin_creation(&self, path: &str, apply: Option<&ApplyRequest>) -> Option<Creation<'_>> {
        let mut paths = self.being_created.lock().unwrap_or_else(PoisonError::into_inner);
        let is_first = paths.insert(path.into());
        let creation = is_first.then(|| Creation { registry: self, path: path.into() });
        drop(paths);
        // What the other request has created is in the cache before its path is free again.
        creation.filter(|_| apply.is_none_or(ApplyRequest::is_of_no_object))
    }

    /// Remembers that the server has shown this object to this process.
    fn confirm(&self, uid: &str) {
        let mut confirmed = self.confirmed.lock().unwrap_or_else(PoisonError::into_inner);
        if confirmed.len() >= MOST_CONFIRMED {
            confirmed.clear();
        }
        confirmed.insert(uid.into());
    }

    fn is_confirmed(&self, uid: &str) -> bool {
        self.confirmed.lock().unwrap_or_else(PoisonError::into_inner).contains(uid)
    }

    pub(crate) fn all(&self) -> Vec<Arc<Store>> {
        self.stores.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The stores that may hold objects of this kind in this namespace.
    pub(crate) fn stores(&self, group: &str, plural: &str, namespace: Option<&str>) -> Vec<Arc<Store>> {
        let stores = self.stores.read().unwrap_or_else(PoisonError::into_inner);
        let stores = stores.iter().filter(|store| {
            let kind = store.kind();
            let is_same_kind = kind.group == group && kind.plural == plural;
            is_same_kind && store.read().reflector_of(namespace).is_some()
        });
        stores.cloned().collect()
    }
}

/// A client around `plain` whose writes go into the stores of `registry`.
pub(crate) fn client(world: &World, plain: &Client, registry: &Arc<Registry>) -> Client {
    let (world, registry) = (world.clone(), Arc::clone(registry));
    client::through(plain, move |plain, request| {
        CachingClient { world: world.clone(), plain, registry: Arc::clone(&registry) }.send(request)
    })
}

/// An extension of a request: its caller does not need what it writes to be in the caches when it returns, but waits for
/// the watch. The response to a binding or an eviction does not contain the pod, which is otherwise read again.
///
/// ```
/// # let _ = async |client: kube::Client, binding: Vec<u8>| -> Result<(), Box<dyn std::error::Error>> {
/// use kube::{api::PostParams, core::Request};
/// use operator::cache::LeftToWatch;
///
/// let bind = Request::new("/api/v1/namespaces/default/pods");
/// let mut bind = bind.create_subresource("binding", "web", &PostParams::default(), binding)?;
/// bind.extensions_mut().insert(LeftToWatch);
/// client.request_text(bind).await?;
/// # Ok(()) };
/// ```
#[derive(Clone, Copy, Debug)]
pub struct LeftToWatch;

struct CachingClient {
    world: World,
    plain: Client,
    registry: Arc<Registry>,
}

impl CachingClient {
    async fn send(self, request: Request<Body>) -> Result<Response<Body>, BoxError> {
        if let Some(read) = request.extensions().get::<CachedRead>().cloned() {
            return self.read(&read, request).await;
        }
        if !apply_request::is_apply(&request) {
            return self.write(request).await;
        }
        let (head, body) = request.into_parts();
        let body = body.collect().await?.to_bytes();
        let apply = ApplyRequest::read(&self.registry, &head, &body);
        let creation = match head.extensions.get::<OnlyIfAbsent>() {
            Some(OnlyIfAbsent) => {
                let creation = self.registry.begin_creation(head.uri.path(), apply.as_ref());
                let Some(creation) = creation else { return Ok(cached_reads::conflict(head.uri.path())) };
                Some(creation)
            }
            None => None,
        };
        let answered = &self.registry.answered_applies;
        if let Some(item) = apply.as_ref().and_then(|apply| apply.unchanged(answered)) {
            return Ok(cached_reads::object(&item));
        }
        let response = self.write(Request::from_parts(head, Body::from(body))).await?;
        if let (Some(apply), true) = (apply, response.status().is_success()) {
            apply.answered(answered);
        }
        drop(creation);
        Ok(response)
    }

    /// Sends a request; what it writes is in the caches when this returns.
    async fn write(&self, request: Request<Body>) -> Result<Response<Body>, BoxError> {
        let Some(write) = WriteRequest::of(request.method(), request.uri()) else {
            return Ok(self.plain.send(request).await?);
        };
        let stores = self.registry.stores(&write.group, &write.plural, write.namespace.as_deref());
        if stores.is_empty() {
            return Ok(self.plain.send(request).await?);
        }
        let is_left_to_watch = request.extensions().get::<LeftToWatch>().is_some();
        let response = self.plain.send(request).await?;
        if !response.status().is_success() {
            return Ok(response);
        }
        let (head, body) = response.into_parts();
        let body = Limited::new(body, MOST_RESPONSE_BYTES).collect().await?.to_bytes();
        if let Some((json, response)) = std::str::from_utf8(&body).ok().zip(ResponseHead::read(&body)) {
            if let Some((uid, _)) = response.uid_and_version() {
                self.registry.confirm(&uid);
            }
            for store in &stores {
                let left = self.take_in(store, &write, &response, json).await;
                if let (Missing::Object, Some(key), false) = (left, write.key(), is_left_to_watch) {
                    self.read_again(store, &key).await;
                }
            }
        }
        Ok(Response::from_parts(head, Body::from(body)))
    }

    /// Reads from a cache if that may be, and from the server otherwise.
    async fn read(&self, read: &CachedRead, request: Request<Body>) -> Result<Response<Body>, BoxError> {
        let may_be_cached = match read {
            CachedRead::Always | CachedRead::Labelled { .. } => true,
            CachedRead::AfterConfirmation(uid) => self.registry.is_confirmed(uid),
        };
        if may_be_cached && let Some(response) = cached_reads::answer(&self.registry, read, &request) {
            return Ok(response);
        }
        let response = self.plain.send(request).await?;
        if let (CachedRead::AfterConfirmation(uid), true) = (read, response.status().is_success()) {
            self.registry.confirm(uid);
        }
        Ok(response)
    }

    /// Puts what the response says into the store, and waits for the watch where that is not enough.
    async fn take_in(
        &self,
        store: &Store,
        write: &WriteRequest,
        response: &ResponseHead,
        json: &str,
    ) -> Missing {
        if response.is_status() {
            return match (write.is_delete, write.key(), response.deleted_uid()) {
                (true, Some(key), Some(uid)) => deleted(store, &key, uid),
                (true, None, _) => Missing::Nothing,
                // An eviction or a binding.
                _ => Missing::Object,
            };
        }
        if write.is_delete && write.name.is_none() {
            let before = write_request::listed_versions(json);
            self.wait(store, |contents| have_changed_since(contents, &before)).await;
            return Missing::Nothing;
        }
        let missing = if is_object_of(store.kind(), response) {
            put(store, write.is_delete, json)
        } else {
            response
                .uid_and_version()
                .map_or(Missing::Nothing, |(uid, version)| Missing::Event { uid, version })
        };
        if let Missing::Event { uid, version } = &missing {
            let (namespace, takes_all) = (write.namespace.as_deref(), store.filter().takes_all());
            let is_seen = |contents: &Contents| match contents.items().by_uid(uid) {
                Some(item) => {
                    item.resource_version() >= *version || contents.has_caught_up(namespace, *version)
                }
                // The watch never reports objects outside of the scope: do not wait for them.
                None => !takes_all || contents.has_caught_up(namespace, *version),
            };
            self.wait(store, is_seen).await;
        }
        missing
    }

    /// Lists just this name. Unlike a get, a list has a resourceVersion even if there is no object.
    async fn read_again(&self, store: &Store, key: &Key) {
        let collection = store.kind().path(key.namespace());
        let url = format!("{collection}?fieldSelector=metadata.name%3D{}", key.name());
        let Ok(request) = Request::get(url).body(Body::empty()) else { return };
        let Ok(response) = self.plain.send(request).await else { return };
        if !response.status().is_success() {
            return;
        }
        let Ok(body) = Limited::new(response.into_body(), MOST_RESPONSE_BYTES).collect().await else {
            return;
        };
        let body = body.to_bytes();
        let Ok(page) = watch::page(&body) else { return };
        match page.items.first() {
            Some(object) => drop(put(store, false, object.get())),
            None => store.change(|contents| contents.absent(key, page.version)),
        }
    }

    async fn wait(&self, store: &Store, condition: impl Fn(&Contents) -> bool) {
        if self.world.timeout(WATCH_LIMIT, store.until(condition)).await.is_err() {
            tracing::debug!(?store, "the watch is behind a write");
        }
    }
}

/// What a store still needs after the response to a write.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Missing {
    Nothing,
    /// The object has this version now, but is not in the response: the watch will report it.
    Event {
        uid: String,
        version: u64,
    },
    /// The response does not say what became of the object.
    Object,
}

fn deleted(store: &Store, key: &Key, uid: &str) -> Missing {
    let mut is_seen = false;
    store.change(|contents| {
        is_seen = contents.has_seen(uid);
        contents.deleted(key, uid)
    });
    if is_seen { Missing::Nothing } else { Missing::Object }
}

/// Puts the object of a response into the store, or removes it if the write was its last.
fn put(store: &Store, is_delete: bool, json: &str) -> Missing {
    let Ok(item) = store.reader().read(json) else { return Missing::Nothing };
    let is_final = item.is_final() && !may_have_finalizers_in_spec(store.kind(), json);
    let is_gone = is_final || (is_delete && !item.is_deleting());
    if is_gone {
        return deleted(store, item.key(), item.uid());
    }
    match store.filter().includes(&item, json) {
        InScope::Yes => store.change(|contents| contents.wrote(item)),
        InScope::No => store.change(|contents| contents.absent(item.key(), item.resource_version())),
        InScope::Unknown => {
            let (uid, version) = (item.uid().to_owned(), item.resource_version());
            return Missing::Event { uid, version };
        }
    }
    Missing::Nothing
}

/// Whether finalizers outside of the metadata may keep the object.
// Kubernetes: namespaces have `spec.finalizers`.
fn may_have_finalizers_in_spec(kind: &CachedKind, json: &str) -> bool {
    #[derive(Deserialize)]
    struct Object {
        spec: Option<Spec>,
    }
    #[derive(Deserialize)]
    struct Spec {
        #[serde(default)]
        finalizers: Vec<IgnoredAny>,
    }
    if !kind.group.is_empty() || kind.plural != "namespaces" {
        return false;
    }
    let spec = serde_json::from_str::<Object>(json).ok().and_then(|object| object.spec);
    // A response in metadata form does not say: the watch will.
    spec.is_none_or(|spec| !spec.finalizers.is_empty())
}

/// Whether the response is an object as the store keeps them.
fn is_object_of(kind: &CachedKind, response: &ResponseHead) -> bool {
    if kind.metadata_only {
        let is_metadata = (response.api_version.as_str(), response.kind.as_str()) == METADATA;
        return is_metadata || response.is_of(&kind.group, &kind.kind);
    }
    response.api_version == kind.api_version() && response.kind == kind.kind
}

/// Whether each of these objects has been deleted or updated after this version.
fn have_changed_since(contents: &Contents, versions: &[(String, u64)]) -> bool {
    let items = contents.items();
    let is_unchanged = |(uid, version): &(String, u64)| {
        items.by_uid(uid).is_some_and(|item| item.resource_version() <= *version)
    };
    !versions.iter().any(is_unchanged)
}

impl fmt::Debug for Registry {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_list().entries(self.stores.read().unwrap_or_else(PoisonError::into_inner).iter()).finish()
    }
}
