//! The client that lets the caches know what it has written before it hands the answer on.

use crate::{
    Key,
    cache::{
        Cause,
        contents::Contents,
        scope::Belongs,
        store::{METADATA, Store, Subject},
        written::{self, Answer, Written},
    },
    watch,
};
use http::{Request, Response};
use http_body_util::{BodyExt, Limited};
use kube::{Client, client::Body};
use std::{
    fmt,
    sync::{Arc, PoisonError, RwLock},
    time::Duration,
};
use tower::BoxError;
use world::World;

/// All caches of a process.
#[derive(Default)]
pub(crate) struct Registry(RwLock<Vec<Arc<Store>>>);

/// How long an answer may be held until the watch has told what it does not say. It is then
/// handed on all the same: a cache that is late is better than a write that seems to hang.
const PATIENCE: Duration = Duration::from_secs(5);

/// No object that a server takes is as long.
const MOST_ANSWER_BYTES: usize = 64 << 20;

impl Registry {
    /// The store for this subject, and whether it was made just now.
    pub(crate) fn store(&self, subject: Subject) -> (Arc<Store>, bool) {
        let mut stores = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(store) = stores.iter().find(|store| *store.subject() == subject) {
            return (Arc::clone(store), false);
        }
        let store = Arc::new(Store::new(subject));
        stores.push(Arc::clone(&store));
        (store, true)
    }

    /// The stores that may hold what is written.
    fn concerned(&self, written: &Written) -> Vec<Arc<Store>> {
        let stores = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let concerned = stores.iter().filter(|store| {
            let subject = store.subject();
            let is_same_kind = subject.group == written.group && subject.plural == written.plural;
            is_same_kind && store.read().feed_of(written.namespace.as_deref()).is_some()
        });
        concerned.cloned().collect()
    }
}

/// A client around `plain`.
pub(crate) fn client(world: &World, plain: &Client, registry: &Arc<Registry>) -> Client {
    let namespace = plain.default_namespace().to_owned();
    let valid_until = *plain.valid_until();
    let (world, plain, registry) = (world.clone(), plain.clone(), Arc::clone(registry));
    let service = tower::service_fn(move |request: Request<Body>| {
        let writer = Writer { world: world.clone(), plain: plain.clone(), registry: Arc::clone(&registry) };
        async move { writer.send(request).await }
    });
    Client::new(service, namespace).with_valid_until(valid_until)
}

struct Writer {
    world: World,
    plain: Client,
    registry: Arc<Registry>,
}

impl Writer {
    async fn send(self, request: Request<Body>) -> Result<Response<Body>, BoxError> {
        let Some(written) = Written::by(request.method(), request.uri()) else {
            return Ok(self.plain.send(request).await?);
        };
        let stores = self.registry.concerned(&written);
        if stores.is_empty() {
            return Ok(self.plain.send(request).await?);
        }
        let response = self.plain.send(request).await?;
        if !response.status().is_success() {
            return Ok(response);
        }
        let (head, body) = response.into_parts();
        let body = Limited::new(body, MOST_ANSWER_BYTES).collect().await?.to_bytes();
        if let Some((text, answer)) = std::str::from_utf8(&body).ok().zip(Answer::read(&body)) {
            for store in &stores {
                let learnt = self.learn(store, &written, &answer, text).await;
                if let (Learnt::MustLook, Some(key)) = (learnt, written.key()) {
                    self.look(store, &key).await;
                }
            }
        }
        Ok(Response::from_parts(head, Body::from(body)))
    }

    async fn learn(&self, store: &Store, written: &Written, answer: &Answer, text: &str) -> Learnt {
        if answer.is_status() {
            return match (written.is_delete, written.key(), answer.deleted_uid()) {
                (true, Some(key), Some(uid)) => deleted(store, &key, uid),
                (true, None, _) => Learnt::Enough,
                // An eviction, a binding.
                _ => Learnt::MustLook,
            };
        }
        if written.is_delete && written.name.is_none() {
            let named = written::named(text);
            self.wait(store, |contents| have_moved_on(contents, &named)).await;
            return Learnt::Enough;
        }
        let learnt = if is_kept_by(store.subject(), answer) {
            take_in(store, written.is_delete, text)
        } else {
            answer.unclear().map_or(Learnt::Enough, |(uid, version)| Learnt::MustWait { uid, version })
        };
        if let Learnt::MustWait { uid, version } = &learnt {
            let (namespace, takes_all) = (written.namespace.as_deref(), store.filter().takes_all());
            let is_told = |contents: &Contents| match contents.items().by_uid(uid) {
                Some(item) => {
                    item.resource_version() >= *version || has_passed(contents, namespace, *version)
                }
                // An object that does not belong here is never told of: nobody should wait for it.
                None => !takes_all || has_passed(contents, namespace, *version),
            };
            self.wait(store, is_told).await;
        }
        learnt
    }

    /// The answer leaves open what has become of the object: a list of just this name does not,
    /// because it says when, too.
    async fn look(&self, store: &Store, key: &Key) {
        let collection = store.subject().path(key.namespace());
        let url = format!("{collection}?fieldSelector=metadata.name%3D{}", key.name());
        let Ok(request) = Request::get(url).body(Body::empty()) else { return };
        let Ok(response) = self.plain.send(request).await else { return };
        if !response.status().is_success() {
            return;
        }
        let Ok(body) = Limited::new(response.into_body(), MOST_ANSWER_BYTES).collect().await else { return };
        let body = body.to_bytes();
        let Ok(page) = watch::page(&body) else { return };
        match page.items.first() {
            Some(object) => drop(take_in(store, false, object.get())),
            None => store.change(Cause::OwnWrite, |contents| contents.absent(key, page.version)),
        }
    }

    async fn wait(&self, store: &Store, is_told: impl Fn(&Contents) -> bool) {
        if self.world.timeout(PATIENCE, store.until(is_told)).await.is_err() {
            tracing::debug!(?store, "the watch is behind a write");
        }
    }
}

/// What an answer has told a store.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Learnt {
    Enough,
    /// The object has this version now, but is not in the answer.
    MustWait {
        uid: String,
        version: u64,
    },
    /// Something has become of the object.
    MustLook,
}

fn deleted(store: &Store, key: &Key, uid: &str) -> Learnt {
    let mut is_known = false;
    store.change(Cause::OwnWrite, |contents| {
        is_known = contents.knows(uid);
        contents.deleted(key, uid)
    });
    if is_known { Learnt::Enough } else { Learnt::MustLook }
}

/// Takes the whole object in.
fn take_in(store: &Store, is_delete: bool, text: &str) -> Learnt {
    let Ok(item) = store.reader().read(text) else { return Learnt::Enough };
    let is_gone = item.is_final() || (is_delete && !item.is_deleting());
    if is_gone {
        return deleted(store, item.key(), item.uid());
    }
    match store.filter().looks_at(&item, text) {
        Belongs::Yes => store.change(Cause::OwnWrite, |contents| contents.wrote(item)),
        Belongs::No => {
            store.change(Cause::OwnWrite, |contents| contents.absent(item.key(), item.resource_version()))
        }
        Belongs::Unknown => {
            let (uid, version) = (item.uid().to_owned(), item.resource_version());
            return Learnt::MustWait { uid, version };
        }
    }
    Learnt::Enough
}

/// Whether what is answered is what this cache holds.
fn is_kept_by(subject: &Subject, answer: &Answer) -> bool {
    if subject.metadata_only {
        let is_metadata = (answer.api_version.as_str(), answer.kind.as_str()) == METADATA;
        return is_metadata || answer.is_of(&subject.group, &subject.kind);
    }
    answer.api_version == subject.api_version() && answer.kind == subject.kind
}

/// Whether the watch has come to this version.
fn has_passed(contents: &Contents, namespace: Option<&str>, version: u64) -> bool {
    contents.feed_of(namespace).is_none_or(|feed| contents.reached(feed) >= version)
}

/// Whether each of these has gone or changed since.
fn have_moved_on(contents: &Contents, named: &[(String, u64)]) -> bool {
    let items = contents.items();
    let is_as_before = |(uid, version): &(String, u64)| {
        items.by_uid(uid).is_some_and(|item| item.resource_version() <= *version)
    };
    !named.iter().any(is_as_before)
}

impl fmt::Debug for Registry {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_list().entries(self.0.read().unwrap_or_else(PoisonError::into_inner).iter()).finish()
    }
}
