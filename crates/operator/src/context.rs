//! What a reconcile may use: cached reads, the manager's client, events, time, and the user's own state.

use crate::{Failure, Key, cache::View, event::Recorder, source::Kind};
use k8s_openapi::{ClusterResourceScope, NamespaceResourceScope};
use kube::{Api, Client, Resource};
use std::{
    any::{Any, TypeId},
    collections::BTreeMap,
    fmt,
    sync::Arc,
};
use world::{Timestamp, World};

/// Handed to every reconcile. Cheap to clone.
pub struct Context<S> {
    reach: Arc<Reach>,
    state: Arc<S>,
}

/// What a controller can reach; the same for all its reconciles.
pub(crate) struct Reach {
    pub(crate) controller: String,
    pub(crate) world: World,
    pub(crate) client: Client,
    pub(crate) recorder: Recorder,
    pub(crate) views: Views,
}

/// The views of a controller, by the type of their objects.
#[derive(Default)]
pub(crate) struct Views(BTreeMap<TypeId, Box<dyn Any + Send + Sync>>);

impl<S> Context<S> {
    pub(crate) fn new(reach: Arc<Reach>, state: Arc<S>) -> Context<S> {
        Context { reach, state }
    }

    /// The object as the cache has it: never older than what this process has written.
    pub fn get<K: Kind>(&self, key: &Key) -> Result<Option<Arc<K>>, Failure> {
        Ok(self.view::<K>()?.get(key)?)
    }

    /// The cached objects of a kind that the controller declared.
    pub fn view<K: Kind>(&self) -> Result<View<K>, Failure> {
        self.reach.views.get::<K>().ok_or_else(|| {
            let (kind, name) = (K::kind(&()), &self.reach.controller);
            let message = format!(
                "controller \"{name}\" reads {kind} without having declared it: add `.reads(all::<{kind}>())`"
            );
            Failure::terminal("UndeclaredKind", message)
        })
    }

    /// The manager's client: plain kube, whose writes the caches see at once and which no longer
    /// writes when another process leads.
    pub fn client(&self) -> Client {
        self.reach.client.clone()
    }

    /// Where objects of a kind that lives in namespaces are written, in the namespace of `key`.
    pub fn namespaced<K>(&self, key: &Key) -> Api<K>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
    {
        match key.namespace() {
            Some(namespace) => Api::namespaced(self.client(), namespace),
            None => Api::default_namespaced(self.client()),
        }
    }

    /// Where objects of a kind without namespaces are written.
    pub fn cluster<K>(&self) -> Api<K>
    where
        K: Resource<DynamicType = (), Scope = ClusterResourceScope>,
    {
        Api::all(self.client())
    }

    pub fn events(&self) -> &Recorder {
        &self.reach.recorder
    }

    pub fn state(&self) -> &S {
        &self.state
    }

    pub fn world(&self) -> &World {
        &self.reach.world
    }

    /// The time of day, for conditions and the like.
    pub fn wall(&self) -> Timestamp {
        self.reach.world.wall()
    }

    /// The name of the controller: its field manager, too.
    pub fn controller(&self) -> &str {
        &self.reach.controller
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
        Context { reach: Arc::clone(&self.reach), state: Arc::clone(&self.state) }
    }
}

impl<S> fmt::Debug for Context<S> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Context({})", self.reach.controller)
    }
}
