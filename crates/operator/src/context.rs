//! What a reconcile may use: cached reads, the manager's client, events, time, and state of its own.

use crate::{
    Failure, Key,
    cache::{Caches, View},
    event::Recorder,
    source::Kind,
};
use k8s_openapi::{ClusterResourceScope, NamespaceResourceScope};
use kube::{Api, Client, Resource};
use std::{
    any::{Any, TypeId},
    collections::BTreeMap,
    fmt,
    sync::Arc,
};
use world::{Timestamp, World};

/// The argument of every reconcile beside the key. Cheap to clone.
pub struct Context<S> {
    inner: Arc<ControllerContext>,
    state: Arc<S>,
}

/// The part of a context that does not depend on the type of the state.
pub(crate) struct ControllerContext {
    pub(crate) controller: String,
    pub(crate) world: World,
    pub(crate) client: Client,
    pub(crate) caches: Caches,
    pub(crate) recorder: Recorder,
    pub(crate) views: Views,
}

/// The views of a controller, by the type of their objects.
#[derive(Default)]
pub(crate) struct Views(BTreeMap<TypeId, Box<dyn Any + Send + Sync>>);

impl<S> Context<S> {
    pub(crate) fn new(inner: Arc<ControllerContext>, state: Arc<S>) -> Context<S> {
        Context { inner, state }
    }

    /// The cached object: never older than what this process has written.
    pub fn get<K: Kind>(&self, key: &Key) -> Result<Option<Arc<K>>, Failure> {
        Ok(self.view::<K>()?.get(key)?)
    }

    /// The cached objects of a kind that the controller has declared.
    pub fn view<K: Kind>(&self) -> Result<View<K>, Failure> {
        self.inner.views.get::<K>().ok_or_else(|| {
            let (kind, name) = (K::kind(&()), &self.inner.controller);
            let message = format!(
                "controller \"{name}\" reads {kind} without having declared it: add `.reads(all::<{kind}>())`"
            );
            Failure::terminal("UndeclaredKind", message)
        })
    }

    /// The manager's client: its writes are in the caches when they return, an apply that would change nothing
    /// is not sent, and it refuses to write while another process leads.
    pub fn client(&self) -> Client {
        self.inner.client.clone()
    }

    /// The manager's caches: to open and close views of kinds that are known only at run time.
    pub fn caches(&self) -> &Caches {
        &self.inner.caches
    }

    /// The API of a namespaced kind, in the namespace of `key`.
    pub fn namespaced<K>(&self, key: &Key) -> Api<K>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
    {
        match key.namespace() {
            Some(namespace) => Api::namespaced(self.client(), namespace),
            None => Api::default_namespaced(self.client()),
        }
    }

    /// The API of a cluster-scoped kind.
    pub fn cluster<K>(&self) -> Api<K>
    where
        K: Resource<DynamicType = (), Scope = ClusterResourceScope>,
    {
        Api::all(self.client())
    }

    pub fn events(&self) -> &Recorder {
        &self.inner.recorder
    }

    pub fn state(&self) -> &S {
        &self.state
    }

    pub fn world(&self) -> &World {
        &self.inner.world
    }

    /// The wall-clock time, for conditions and the like.
    pub fn wall(&self) -> Timestamp {
        self.inner.world.wall()
    }

    /// The name of the controller, which is also its field manager.
    pub fn controller(&self) -> &str {
        &self.inner.controller
    }
}

impl Views {
    pub(crate) fn add<K: Send + Sync + 'static>(&mut self, view: &View<K>) {
        self.0.entry(TypeId::of::<K>()).or_insert_with(|| Box::new(view.clone()));
    }

    fn get<K: Send + Sync + 'static>(&self) -> Option<View<K>> {
        self.0.get(&TypeId::of::<K>())?.downcast_ref::<View<K>>().cloned()
    }
}

impl<S> Clone for Context<S> {
    fn clone(&self) -> Context<S> {
        Context { inner: Arc::clone(&self.inner), state: Arc::clone(&self.state) }
    }
}

impl<S> fmt::Debug for Context<S> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Context({})", self.inner.controller)
    }
}
