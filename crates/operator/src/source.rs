//! A source of a controller: which objects of a kind it watches, and which of their changes count.

use crate::{
    cache::{Caches, Scope, View},
    predicate::Predicate,
};
use kube::{Resource, core::PartialObjectMeta};
use serde::de::DeserializeOwned;
use std::fmt::Debug;

/// A kind with a Rust type: those of k8s-openapi, and your own with kube's `CustomResource`.
pub trait Kind:
    Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + Sync + 'static
{
}

impl<K> Kind for K where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + Sync + 'static
{
}

/// The objects of a kind to watch, and the predicate that their changes must pass. Start with [`all`].
#[derive(Debug)]
pub struct Source<K> {
    scope: Scope,
    predicate: Option<Predicate>,
    open: fn(&Caches, Scope) -> View<K>,
}

/// All objects of a kind, and all their changes.
pub fn all<K: Kind>() -> Source<K> {
    Source { scope: Scope::default(), predicate: None, open: |caches, scope| caches.kind::<K>(scope) }
}

impl<K: Kind> Source<K> {
    /// Caches only the metadata: for large or numerous objects.
    pub fn metadata_only(self) -> Source<PartialObjectMeta<K>> {
        let Source { scope, predicate, open: _ } = self;
        Source { scope, predicate, open: |caches, scope| caches.metadata::<K>(scope) }
    }
}

impl<K> Source<K> {
    /// Only objects in this namespace. Further calls add namespaces.
    pub fn in_namespace(mut self, namespace: &str) -> Source<K> {
        self.scope = self.scope.in_namespace(namespace);
        self
    }

    /// Only objects whose labels match, as `app=web,tier!=db`.
    pub fn labelled(mut self, selector: &str) -> Source<K> {
        self.scope = self.scope.labelled(selector);
        self
    }

    /// Only objects whose fields match, as `spec.nodeName=node-1`, for fields that the server selects by.
    pub fn with_fields(mut self, selector: &str) -> Source<K> {
        self.scope = self.scope.with_fields(selector);
        self
    }

    /// Does not cache the field at this path, as [`Scope::without`].
    pub fn without(mut self, path: &[&str]) -> Source<K> {
        self.scope = self.scope.without(path);
        self
    }

    /// Only changes that pass `predicate`; with several, they must pass all.
    pub fn when(mut self, predicate: Predicate) -> Source<K> {
        self.predicate = Some(match self.predicate {
            Some(first) => first & predicate,
            None => predicate,
        });
        self
    }

    pub(crate) fn open(&self, caches: &Caches) -> View<K> {
        (self.open)(caches, self.scope.clone())
    }

    pub(crate) fn predicate(&self) -> Option<Predicate> {
        self.predicate.clone()
    }
}
