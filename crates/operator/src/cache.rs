//! Local copies of the cluster's objects: one for each kind and scope, shared by all controllers.
//!
//! An object is kept as JSON with a few fields of its metadata beside it, and decoded when it is read.
//! What this process writes through [`Caches::client`] is in the cache before the write returns, and
//! is never replaced by an earlier version.
//!
//! ```
//! # let _ = async |world: world::World, client: kube::Client| -> Result<(), Box<dyn std::error::Error>> {
//! use k8s_openapi::api::core::v1::ConfigMap;
//! use operator::{Key, cache::{Caches, Scope}};
//!
//! let caches = Caches::new(world, client);
//! let configs = caches.kind::<ConfigMap>(Scope::default().in_namespace("prod"));
//! configs.synced().await;
//! if let Some(config) = configs.get(&Key::new(Some("prod"), "web"))? {
//!     println!("{:?}", config.data);
//! }
//! # Ok(()) };
//! ```

mod applied_fields;
mod apply_request;
mod cached_reads;
mod contents;
mod cut;
mod index;
mod item;
mod items;
mod memo;
mod own_writes;
mod pairs;
mod reflector;
mod scope;
mod store;
mod transform;
mod view;
mod write_request;

pub use item::{Item, Owner, Undecodable};
pub use own_writes::LeftToWatch;
pub use pairs::Pairs;
pub use scope::Scope;
pub use transform::Transform;
pub use view::View;

pub(crate) use contents::StaleList;
pub(crate) use index::IndexFunction;
pub(crate) use item::Reader;
pub(crate) use memo::Memo;

#[cfg(test)]
pub(crate) use item::tests::{item as test_item, reader as test_reader};

use kube::{
    Client, Resource,
    core::{ApiResource, DynamicObject, PartialObjectMeta},
};
use own_writes::Registry;
use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use store::{CachedKind, Store};
use world::watch;
use world::{Task, World};

/// How often subscribers get every object once more by default: a safety net for missed changes.
pub const RESYNC: Duration = Duration::from_secs(10 * 3600);

/// Up to this share later, so that kinds do not resync all at once.
const RESYNC_JITTER: f64 = 0.1;

/// The caches of a process. Cheap to clone; the watches end when the last clone is dropped.
#[derive(Clone)]
pub struct Caches(Arc<Inner>);

struct Inner {
    world: World,
    /// Without the cache around it: for watches.
    plain: Client,
    client: Client,
    resync: Duration,
    registry: Arc<Registry>,
    may_start: watch::Sender<bool>,
    open: Mutex<Vec<OpenStore>>,
}

/// A store, and the tasks that fill it.
struct OpenStore {
    store: Arc<Store>,
    _tasks: Vec<Task<()>>,
}

/// A change of one object in a cache.
#[derive(Clone, Debug)]
pub struct Delta {
    /// Absent if the object is new.
    pub before: Option<Item>,
    /// Absent if the object was deleted.
    pub after: Option<Item>,
    /// How it became known.
    pub origin: Origin,
}

/// How a change became known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The object existed when the cache, or the subscriber, started.
    InitialList,
    /// A watch has reported it.
    Watch,
    /// This process has written the object.
    OwnWrite,
    /// Nothing has changed: every object is reported again from time to time.
    Resync,
}

/// Is called for every change of a cache, in order, after the change is in the cache.
pub type Subscriber = Arc<dyn Fn(&Delta) + Send + Sync>;

impl Delta {
    /// The object as it is now, or as it was when it was deleted.
    pub fn item(&self) -> Option<&Item> {
        self.after.as_ref().or(self.before.as_ref())
    }

    /// The object before the change, and after it.
    pub fn items(&self) -> impl Iterator<Item = &Item> {
        self.before.iter().chain(&self.after)
    }
}

impl Caches {
    /// Caches that fill from now on, as their kinds are asked for.
    pub fn new(world: World, client: Client) -> Caches {
        Caches::with_resync(world, client, RESYNC)
    }

    /// Reports every object to all subscribers once in each `resync`.
    pub fn with_resync(world: World, client: Client, resync: Duration) -> Caches {
        let caches = Caches::paused(world, client, resync);
        caches.start();
        caches
    }

    /// Caches that list nothing before [`Caches::start`].
    pub(crate) fn paused(world: World, client: Client, resync: Duration) -> Caches {
        let registry = Arc::new(Registry::default());
        let own = own_writes::client(&world, &client, &registry);
        let (may_start, open) = (watch::Sender::new(false), Mutex::default());
        Caches(Arc::new(Inner { world, plain: client, client: own, resync, registry, may_start, open }))
    }

    pub(crate) fn start(&self) {
        self.0.may_start.set(true);
    }

    /// Lists every kind once more: what the caches hold may be as old as their watches are late.
    /// [`View::synced`] waits for the new lists; reads go on meanwhile.
    pub fn refresh(&self) {
        self.0.registry.all().iter().for_each(|store| store.refresh());
    }

    /// A kind, and the name of an index of it that was given to two functions.
    pub(crate) fn contested_index(&self) -> Option<(String, &'static str)> {
        let stores = self.0.registry.all();
        stores.iter().find_map(|store| Some((store.kind().kind.clone(), store.read().indexes().contested()?)))
    }

    /// A client whose writes are in the caches before they return. A server-side apply that would change
    /// nothing is not sent: its response is the cached object.
    pub fn client(&self) -> Client {
        self.0.client.clone()
    }

    /// [`Caches::client`] for requests with the permissions of another account.
    pub fn client_around(&self, plain: &Client) -> Client {
        own_writes::client(&self.0.world, plain, &self.0.registry)
    }

    /// The objects of a kind that has a Rust type. The first call for a kind and scope starts its watch.
    pub fn kind<K: Resource<DynamicType = ()>>(&self, scope: Scope) -> View<K> {
        self.open(&ApiResource::erase::<K>(&()), scope, false)
    }

    /// The objects of a kind that is known only at run time.
    pub fn dynamic(&self, resource: &ApiResource, scope: Scope) -> View<DynamicObject> {
        self.open(resource, scope, false)
    }

    /// Only the metadata of a kind's objects: for large or numerous objects.
    pub fn metadata<K: Resource<DynamicType = ()>>(&self, scope: Scope) -> View<PartialObjectMeta<K>> {
        self.open(&ApiResource::erase::<K>(&()), scope, true)
    }

    /// [`Caches::metadata`] of a kind that is known only at run time.
    pub fn dynamic_metadata(
        &self,
        resource: &ApiResource,
        scope: Scope,
    ) -> View<PartialObjectMeta<DynamicObject>> {
        self.open(resource, scope, true)
    }

    /// `K` must be a type into which objects of this kind are decoded.
    pub(crate) fn open<K>(&self, resource: &ApiResource, scope: Scope, metadata_only: bool) -> View<K> {
        View::new(self.store(cached_kind(resource, scope, metadata_only)))
    }

    /// Ends the watch of this view, and of all views of the same kind and scope: for kinds that the server no
    /// longer serves. The views keep what they have; a new view of the kind starts anew.
    pub fn close<K>(&self, view: &View<K>) {
        self.0.registry.remove(view.store());
        let mut open = self.0.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.retain(|it| !Arc::ptr_eq(&it.store, view.store()));
    }

    fn store(&self, kind: CachedKind) -> Arc<Store> {
        let (store, is_new) = self.0.registry.store(kind);
        if is_new {
            let may_start = self.0.may_start.subscribe();
            let mut tasks = reflector::start(&self.0.world, &self.0.plain, &store, &may_start);
            tasks.push(self.resync(Arc::clone(&store)));
            let mut open = self.0.open.lock().unwrap_or_else(PoisonError::into_inner);
            open.push(OpenStore { store: Arc::clone(&store), _tasks: tasks });
        }
        store
    }

    fn resync(&self, store: Arc<Store>) -> Task<()> {
        let (world, period) = (self.0.world.clone(), self.0.resync);
        self.0.world.spawn("resync", async move {
            loop {
                world.sleep(world.jitter(period, RESYNC_JITTER)).await;
                store.resync();
            }
        })
    }
}

fn cached_kind(resource: &ApiResource, scope: Scope, metadata_only: bool) -> CachedKind {
    CachedKind {
        group: resource.group.clone(),
        version: resource.version.clone(),
        kind: resource.kind.clone(),
        plural: resource.plural.clone(),
        metadata_only,
        scope,
    }
}

impl fmt::Debug for Caches {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Caches({:?})", self.0.registry)
    }
}
