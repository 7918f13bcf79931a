//! Which objects of a kind a controller looks at, and which of their changes count.

use crate::{
    cache::{Caches, Scope, View},
    predicate::Predicate,
};
use kube::{Resource, core::PartialObjectMeta};
use serde::de::DeserializeOwned;
use std::fmt::Debug;

/// The kinds that a source can be made of: what kube and k8s-openapi define, and your own.
pub trait Kind:
    Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + Sync + 'static
{
}

impl<K> Kind for K where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + Sync + 'static
{
}

/// A kind, where to look for it, and which changes count. Start with [`all`].
#[derive(Debug)]
pub struct Source<K> {
    scope: Scope,
    predicate: Option<Predicate>,
    open: fn(&Caches, Scope) -> View<K>,
}

/// All objects of a kind, and every change of them.
pub fn all<K: Kind>() -> Source<K> {
    Source { scope: Scope::default(), predicate: None, open: |caches, scope| caches.kind::<K>(scope) }
}

impl<K: Kind> Source<K> {
    /// Keeps only name, labels, owners and the like: for kinds that are big or many.
    pub fn metadata_only(self) -> Source<PartialObjectMeta<K>> {
        let Source { scope, predicate, open: _ } = self;
        Source { scope, predicate, open: |caches, scope| caches.metadata::<K>(scope) }
    }
}

impl<K> Source<K> {
    /// Only those in these namespaces. Called again, it adds to them.
    pub fn in_namespace(mut self, namespace: &str) -> Source<K> {
        self.scope = self.scope.in_namespace(namespace);
        self
    }

    /// Only those whose labels match, as `app=web,tier!=db`.
    pub fn labelled(mut self, selector: &str) -> Source<K> {
        self.scope = self.scope.labelled(selector);
        self
    }

    /// Only those whose fields match, as `spec.nodeName=node-1`, for fields that the server selects by.
    pub fn with_fields(mut self, selector: &str) -> Source<K> {
        self.scope = self.scope.with_fields(selector);
        self
    }

    /// Only changes that `predicate` lets pass; a second one must let them pass, too.
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
