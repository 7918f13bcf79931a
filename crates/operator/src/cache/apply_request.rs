//! Recognizes an apply that would change nothing, so that it is answered from the cache.

use crate::cache::{Item, own_writes::Registry, store::Store};
use api::path::ResourcePath;
use bytes::Bytes;
use foldhash::fast::FixedState;
use hashbrown::HashMap;
use http::{Method, Request, header, request};
use kube::client::Body;
use serde_json::Value;
use std::{
    hash::BuildHasher,
    sync::{Arc, Mutex, PoisonError},
};

/// A server-side apply of one object.
pub(crate) struct ApplyRequest {
    /// Path and query: the object and its manager.
    target: Box<str>,
    manager: String,
    store: Arc<Store>,
    key: crate::Key,
    intent: Value,
}

/// Applies that the server has answered, whose values it writes in another way (`1000m` becomes `1`): a digest
/// of what was sent and of the object after that, by target.
#[derive(Default)]
pub(crate) struct AnsweredApplies(Mutex<HashMap<Box<str>, u64, FixedState>>);

/// How many answered applies are remembered: some ten megabytes. Those that are forgotten are sent again.
const MOST_ANSWERED: usize = 100_000;

const MEDIA_TYPE: &str = "application/apply-patch+yaml";

/// Whether the request is a server-side apply.
pub(crate) fn is_apply(request: &Request<Body>) -> bool {
    let media_type = request.headers().get(header::CONTENT_TYPE);
    *request.method() == Method::PATCH
        && media_type.is_some_and(|found| found.as_bytes() == MEDIA_TYPE.as_bytes())
}

impl ApplyRequest {
    /// `None` if it must be sent in any case: for a subresource, a dry run, or an object that is not cached.
    pub(crate) fn read(registry: &Registry, head: &request::Parts, body: &Bytes) -> Option<ApplyRequest> {
        let path = ResourcePath::parse(head.uri.path())?;
        let mut parameters = head.uri.query()?.split('&');
        if !path.subresource.is_empty() || parameters.clone().any(|it| it.starts_with("dryRun=")) {
            return None;
        }
        let manager = parameters.find_map(|it| it.strip_prefix("fieldManager="))?.to_owned();
        let namespace = (!path.namespace.is_empty()).then_some(path.namespace);
        let stores = registry.stores(path.group, path.resource, namespace);
        let is_whole = |store: &Arc<Store>| {
            let kind = store.kind();
            kind.version == path.version && !kind.metadata_only && kind.scope.keeps_whole_objects()
        };
        Some(ApplyRequest {
            target: head.uri.to_string().into(),
            manager,
            store: stores.into_iter().find(is_whole)?,
            key: crate::Key::new(namespace, path.name),
            intent: serde_json::from_slice(body).ok()?,
        })
    }

    /// Whether the cache has no such object.
    pub(crate) fn is_of_no_object(&self) -> bool {
        self.store.item(&self.key).is_none()
    }

    /// The cached object, if the apply would not change it.
    pub(crate) fn unchanged(&self, answered: &AnsweredApplies) -> Option<Item> {
        let item = self.store.item(&self.key)?;
        let object: Value = serde_json::from_str(item.json()).ok()?;
        let is_unchanged = self.is_applied(&item, &object)
            || answered.get(&self.target).is_some_and(|digest| Some(digest) == self.digest(&item, object));
        is_unchanged.then_some(item)
    }

    /// Remembers what the server has made of it, if that is not what was sent.
    pub(crate) fn answered(&self, answered: &AnsweredApplies) {
        let Some(item) = self.store.item(&self.key) else { return };
        let Ok(object) = serde_json::from_str::<Value>(item.json()) else { return };
        let is_applied = self.is_applied(&item, &object);
        match self.digest(&item, object).filter(|_| !is_applied) {
            Some(digest) => answered.put(&self.target, digest),
            None => answered.forget(&self.target),
        }
    }

    fn is_applied(&self, item: &Item, object: &Value) -> bool {
        item.applied_by(&self.manager).is_some_and(|fields| fields.are(&self.intent, object))
    }

    /// Of what is sent and of the object, without what changes with every write and with the status; `None`
    /// if the manager has no fields in the object.
    fn digest(&self, item: &Item, mut object: Value) -> Option<u64> {
        let fields = item.applied_by(&self.manager)?.text();
        if let Some(object) = object.as_object_mut() {
            object.remove("status");
        }
        if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.remove("resourceVersion");
            metadata.remove("generation");
        }
        Some(FixedState::default().hash_one((self.intent.to_string(), fields, object.to_string())))
    }
}

impl AnsweredApplies {
    fn get(&self, target: &str) -> Option<u64> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(target).copied()
    }

    fn put(&self, target: &str, digest: u64) {
        let mut answered = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if answered.len() >= MOST_ANSWERED {
            answered.clear();
        }
        answered.insert(target.into(), digest);
    }

    fn forget(&self, target: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(target);
    }
}
