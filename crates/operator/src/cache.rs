//! The local copy of what the cluster holds: one for each kind and scope, shared by all who ask.
//!
//! Objects at rest are bytes with a few facts beside them; they are decoded when they are read.
//! What this process writes through [`Caches::client`] is in the cache before the write is
//! answered, and nothing older ever takes its place.
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

mod contents;
mod cut;
mod feed;
mod index;
mod item;
mod items;
mod memo;
mod own_writes;
mod pairs;
mod scope;
mod store;
mod view;
mod written;

pub use item::{Item, Owner, Undecodable};
pub use pairs::Pairs;
pub use scope::Scope;
pub use view::View;

pub(crate) use item::Reader;

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
use store::{Store, Subject};
use world::{Task, World};

/// How often everything is told once more unless said otherwise: a net under what was overlooked.
pub const RESYNC: Duration = Duration::from_secs(10 * 3600);

/// Up to this share later, so that kinds do not resync all at once.
const RESYNC_JITTER: f64 = 0.1;

/// The caches of a process. Cheap to clone; with the last of them the watches end.
#[derive(Clone)]
pub struct Caches(Arc<Inner>);

struct Inner {
    world: World,
    /// As it was given: watches go through it.
    plain: Client,
    client: Client,
    resync: Duration,
    registry: Arc<Registry>,
    tasks: Mutex<Vec<Task<()>>>,
}

/// An object came, changed, went, or is only told once more.
#[derive(Clone, Copy, Debug)]
pub struct Change<'a> {
    pub before: Option<&'a Item>,
    pub after: Option<&'a Item>,
    pub cause: Cause,
}

/// How a change became known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// It was there when the cache, or the subscriber, started.
    Initial,
    Watched,
    /// This process has written it.
    OwnWrite,
    /// Nothing has changed: time has passed.
    Resync,
}

/// Is called for every change, in order, when it is in the cache.
pub type Subscriber = Arc<dyn Fn(&Change<'_>) + Send + Sync>;

impl<'a> Change<'a> {
    /// The object as it is now, or as it was when it went.
    pub fn item(&self) -> Option<&'a Item> {
        self.after.or(self.before)
    }
}

impl Caches {
    pub fn new(world: World, client: Client) -> Caches {
        Caches::with_resync(world, client, RESYNC)
    }

    /// Tells all subscribers of every object once in each `resync`.
    pub fn with_resync(world: World, client: Client, resync: Duration) -> Caches {
        let registry = Arc::new(Registry::default());
        let own = own_writes::client(&world, &client, &registry);
        let tasks = Mutex::default();
        Caches(Arc::new(Inner { world, plain: client, client: own, resync, registry, tasks }))
    }

    /// A client whose writes the caches know before it answers.
    pub fn client(&self) -> Client {
        self.0.client.clone()
    }

    /// The objects of a kind that has a type. The first who asks for a scope starts its watch.
    pub fn kind<K: Resource<DynamicType = ()>>(&self, scope: Scope) -> View<K> {
        View::new(self.store(subject(&ApiResource::erase::<K>(&()), scope, false)))
    }

    /// The objects of a kind that is known only at run time.
    pub fn dynamic(&self, resource: &ApiResource, scope: Scope) -> View<DynamicObject> {
        View::new(self.store(subject(resource, scope, false)))
    }

    /// Only the metadata of a kind's objects: for kinds that are big or many.
    pub fn metadata<K: Resource<DynamicType = ()>>(&self, scope: Scope) -> View<PartialObjectMeta<K>> {
        View::new(self.store(subject(&ApiResource::erase::<K>(&()), scope, true)))
    }

    fn store(&self, subject: Subject) -> Arc<Store> {
        let (store, is_new) = self.0.registry.store(subject);
        if is_new {
            let feeds = feed::start(&self.0.world, &self.0.plain, &store);
            let mut tasks = self.0.tasks.lock().unwrap_or_else(PoisonError::into_inner);
            tasks.extend(feeds);
            tasks.push(self.resync(Arc::clone(&store)));
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

fn subject(resource: &ApiResource, scope: Scope, metadata_only: bool) -> Subject {
    Subject {
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
