//! A controller: the kinds that it watches, what triggers a reconcile, and the reconcile function.
//!
//! ```
//! use k8s_openapi::api::core::v1::{ConfigMap, Secret};
//! use operator::{Context, Controller, Failure, Key, Next, all};
//!
//! async fn reconcile(context: Context<()>, key: Key) -> Result<Next, Failure> {
//!     let Some(config) = context.get::<ConfigMap>(&key)? else { return Ok(Next::Settled) };
//!     // … compare with what is there, and write what is missing
//!     Ok(Next::Settled)
//! }
//! let controller = Controller::new("copier", all::<ConfigMap>()).owns(all::<Secret>()).reconcile((), reconcile);
//! assert_eq!(controller.name(), "copier");
//! ```

mod requests;
mod sources;

pub use requests::Requests;

pub(crate) use sources::{PrimaryReference, Sources, SyncCheck};

use crate::{
    Context, Failure, Key, Next, Reconcile,
    cache::{Delta, View},
    context::ControllerContext,
    event::{EventTasks, Recorder},
    manager::Clusters,
    queue::{Pace, Queue, Reason},
    rules::{Declared, Use},
    source::{Cacheable, Kind, Source},
    trigger,
    worker::Settings,
};
use futures::{
    Stream, StreamExt,
    future::{BoxFuture, FutureExt},
};
use k8s_openapi::NamespaceResourceScope;
use kube::{Client, core::ApiResource};
use std::{any::TypeId, fmt, future::Future, marker::PhantomData, pin::Pin, sync::Arc, time::Duration};
use world::World;

/// A controller that a [`crate::Manager`] can run.
pub struct Controller {
    name: String,
    connections: Vec<Connect>,
    declared: Vec<Declared>,
    settings: Settings,
    client: Option<Client>,
    has_core_events: bool,
    event_component: Option<&'static str>,
    reconciler: Box<dyn FnOnce(Arc<ControllerContext>) -> Arc<dyn Reconcile> + Send>,
}

/// A controller without its reconcile function. `P` is its primary kind, whose keys it reconciles, or [`Requests`].
pub struct Builder<P> {
    name: String,
    connections: Vec<Connect>,
    declared: Vec<Declared>,
    settings: Settings,
    primary: PhantomData<fn() -> P>,
}

/// Connects one source to the queue when the manager starts.
type Connect = Box<dyn FnOnce(&mut Sources) + Send>;

/// Keys to reconcile, from outside the cluster.
type KeyStream = Pin<Box<dyn Stream<Item = Key> + Send>>;

impl Controller {
    /// Starts a controller that reconciles the objects of `primary`.
    #[expect(clippy::new_ret_no_self, reason = "without its reconcile function it is not a controller yet")]
    pub fn new<P: Cacheable>(name: &str, primary: Source<P>) -> Builder<P> {
        Builder::named(name).declare(primary.declared(Use::For)).connect(move |sources| {
            let view = sources.open_primary(&primary);
            trigger::connect(&view, primary.predicate(), trigger::itself(), &sources.queue);
            sources.known.push(Box::new(move || view.keys()));
        })
    }

    /// Its name, which is also its field manager.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The kinds that it uses, for its RBAC rules.
    pub fn declared(&self) -> &[Declared] {
        &self.declared
    }

    /// Writes through a client of its own, with the permissions of another account than the manager's. The
    /// caches stay those of the manager.
    pub fn client(mut self, client: Client) -> Controller {
        self.client = Some(client);
        self
    }

    /// Records core `v1` events, as the controllers of Kubernetes do, instead of `events.k8s.io/v1`: each message
    /// is an event of its own. The name of the controller is their `source.component`.
    pub fn core_events(mut self) -> Controller {
        self.has_core_events = true;
        self
    }

    /// Records events in this name instead of that of the controller: for controllers of one component.
    pub fn event_component(mut self, component: &'static str) -> Controller {
        self.event_component = Some(component);
        self
    }

    pub(crate) fn own_client(&self) -> Option<&Client> {
        self.client.as_ref()
    }

    pub(crate) fn recorder(&self, tasks: &EventTasks, client: Client, instance: &str) -> Recorder {
        let component = self.event_component.unwrap_or(&self.name);
        match self.has_core_events {
            true => tasks.core_recorder(client, component, ""),
            false => tasks.recorder(client, component, instance),
        }
    }

    pub(crate) fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Starts the sources, which add keys to `queue` from now on.
    pub(crate) fn connect(&mut self, world: &World, clusters: &Clusters, queue: &Queue) -> Sources {
        let mut sources = Sources::new(world, clusters, queue);
        for connect in self.connections.drain(..) {
            connect(&mut sources);
        }
        sources.refill_queue();
        sources
    }

    pub(crate) fn reconciler(self, context: Arc<ControllerContext>) -> Arc<dyn Reconcile> {
        (self.reconciler)(context)
    }
}

impl<P: Cacheable> Builder<P> {
    /// Reconciles the owner when an object that it controls changes. The RBAC rules allow to apply and prune this kind:
    /// for one that is only looked at, use [`Builder::watches`].
    pub fn owns<K: Cacheable>(self, source: Source<K>) -> Builder<P> {
        self.declare(source.declared(Use::Owns)).connect(move |sources| {
            let view = sources.open(&source);
            let mapping = trigger::owner(sources.primary::<P>());
            trigger::connect(&view, source.predicate(), mapping, &sources.queue);
        })
    }

    /// Reconciles the keys that `keys` returns when an object of another kind changes.
    pub fn watches<K: Cacheable>(
        self,
        source: Source<K>,
        keys: impl Fn(&K) -> Vec<Key> + Send + Sync + 'static,
    ) -> Builder<P> {
        self.watches_through(source, move |_, object| keys(object))
    }

    /// [`Builder::watches`] with the cache of the primary kind: to find the objects that refer to the
    /// one that changed.
    pub fn watches_through<K: Cacheable>(
        self,
        source: Source<K>,
        keys: impl Fn(&View<P>, &K) -> Vec<Key> + Send + Sync + 'static,
    ) -> Builder<P> {
        self.declare(source.declared(Use::Watches)).connect(move |sources| {
            let view = sources.open(&source);
            let primary = sources.primary::<P>();
            let mapping = trigger::mapped(view.memo(), move |object| keys(&primary, object));
            trigger::connect(&view, source.predicate(), mapping, &sources.queue);
        })
    }

    /// Reconciles the keys that `keys` returns for a change of another kind. Unlike [`Builder::watches`], it gets the
    /// change itself, undecoded and with the object before it: for controllers that keep a state of their own in
    /// step with the cache. It is called for every object and every change, in order, and must not block.
    pub fn follows<K: Cacheable>(
        self,
        source: Source<K>,
        keys: impl Fn(&Delta) -> Vec<Key> + Send + Sync + 'static,
    ) -> Builder<P> {
        self.declare(source.declared(Use::Watches)).connect(move |sources| {
            let view = sources.open(&source);
            trigger::connect(&view, source.predicate(), Arc::new(keys), &sources.queue);
        })
    }

    /// Adds an index of the primary kind, for [`View::indexed`].
    pub fn index(
        self,
        name: &'static str,
        values: impl Fn(&P) -> Vec<String> + Send + Sync + 'static,
    ) -> Builder<P> {
        self.connect(move |sources| sources.primary::<P>().index(name, values))
    }

    /// Reconciles every object of the primary kind once in each `period`.
    /// ```
    /// use k8s_openapi::api::core::v1::ConfigMap;
    /// use operator::{Controller, all};
    /// use std::time::Duration;
    ///
    /// let builder = Controller::new("devices", all::<ConfigMap>()).every(Duration::from_secs(60));
    /// ```
    pub fn every(self, period: Duration) -> Builder<P> {
        self.connect(move |sources| {
            let (world, queue, primary) =
                (sources.world.clone(), sources.queue.clone(), sources.primary::<P>());
            sources.tasks.push(sources.world.spawn("timer source", async move {
                loop {
                    world.sleep(period).await;
                    for key in primary.keys() {
                        queue.add(&key, Reason::Resync);
                    }
                }
            }));
        })
    }

    /// Reconciles the keys of a stream: for changes outside of the cluster.
    /// ```
    /// use futures::channel::mpsc;
    /// use k8s_openapi::api::core::v1::ConfigMap;
    /// use operator::{Controller, Key, all};
    ///
    /// let (mut changed, keys) = mpsc::channel(100);
    /// let builder = Controller::new("devices", all::<ConfigMap>()).stream(keys);
    /// changed.try_send(Key::parse("default/printer"))?;
    /// # Ok::<(), mpsc::TrySendError<Key>>(())
    /// ```
    pub fn stream(self, keys: impl Stream<Item = Key> + Send + 'static) -> Builder<P> {
        self.add_stream(keys)
    }

    /// Sets the reconcile function. It gets nothing but the key, and reads the state itself each time.
    pub fn reconcile<S, F, R>(self, state: S, reconcile: F) -> Controller
    where
        S: Send + Sync + 'static,
        F: Fn(Context<S>, Key) -> R + Send + Sync + 'static,
        R: Future<Output = Result<Next, Failure>> + Send + 'static,
    {
        self.build(state, reconcile)
    }
}

/// What controllers of objects and of requests have in common.
impl<P> Builder<P> {
    /// Hands out the queue before the first key is in it: for sources that are known only at run time.
    pub fn queue(self, connect: impl FnOnce(Queue) + Send + 'static) -> Builder<P> {
        self.connect(move |sources| connect(sources.queue.clone()))
    }

    /// Caches a kind for reading; its changes trigger no reconcile.
    pub fn reads<K: Cacheable>(self, source: Source<K>) -> Builder<P> {
        self.declare(source.declared(Use::Reads)).connect(move |sources| {
            sources.open(&source);
        })
    }

    /// Declares that objects of this kind are written, for the RBAC rules: a kind of [`Builder::owns`] needs no such
    /// declaration. If the primary source is only of some namespaces, so is this.
    pub fn applies<K: Kind>(self) -> Builder<P>
    where
        K::Scope: 'static,
    {
        let is_namespaced = TypeId::of::<K::Scope>() == TypeId::of::<NamespaceResourceScope>();
        // The children of an owner are in its namespace.
        let first = self.declared.first().filter(|first| is_namespaced && first.uses == Use::For);
        let namespaces = first.map(|first| first.namespaces.clone()).unwrap_or_default();
        self.declare(Declared { namespaces, ..Declared::of::<K>(Use::Applies) })
    }

    /// [`Builder::applies`] for a kind that is known only when the program runs.
    pub fn applies_dynamic(self, kind: &ApiResource) -> Builder<P> {
        self.declare(Declared::of_kind(kind, Use::Applies))
    }

    /// How many reconciles may run at once, each for a different key. The default is one.
    /// ```
    /// use k8s_openapi::api::core::v1::ConfigMap;
    /// use operator::{Controller, all};
    /// use std::time::Duration;
    ///
    /// // Each of them waits for a slow device, but not for ever.
    /// let builder = Controller::new("devices", all::<ConfigMap>()).workers(8).deadline(Duration::from_secs(20));
    /// ```
    pub fn workers(mut self, workers: usize) -> Builder<P> {
        self.settings.workers = workers.max(1);
        self
    }

    /// The pauses after failures and the rate of reconciles; see [`Pace`] for the defaults.
    ///
    /// ```
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use operator::{Controller, all, queue::{Pace, Rate}};
    /// # use std::time::Duration;
    /// let rate = Rate { per_second: 10.0, burst: 100 };
    /// let pace = Pace { longest_pause: Duration::from_secs(60), rate: Some(rate), ..Pace::default() };
    /// let builder = Controller::new("copier", all::<ConfigMap>()).pace(pace);
    /// ```
    pub fn pace(mut self, pace: Pace) -> Builder<P> {
        self.settings.pace = pace;
        self
    }

    /// How long a reconcile may take before it is cancelled and retried.
    pub fn deadline(mut self, deadline: Duration) -> Builder<P> {
        self.settings.deadline = deadline;
        self
    }

    fn named(name: &str) -> Builder<P> {
        Builder {
            name: name.to_owned(),
            connections: Vec::new(),
            declared: Vec::new(),
            settings: Settings::default(),
            primary: PhantomData,
        }
    }

    fn build<S, F, R>(self, state: S, reconcile: F) -> Controller
    where
        S: Send + Sync + 'static,
        F: Fn(Context<S>, Key) -> R + Send + Sync + 'static,
        R: Future<Output = Result<Next, Failure>> + Send + 'static,
    {
        let state = Arc::new(state);
        let reconciler = move |context: Arc<ControllerContext>| -> Arc<dyn Reconcile> {
            Arc::new(Function { context: Context::new(context, state), reconcile })
        };
        let Builder { name, connections, declared, settings, primary: _ } = self;
        let reconciler = Box::new(reconciler);
        Controller {
            name,
            connections,
            declared,
            settings,
            client: None,
            has_core_events: false,
            event_component: None,
            reconciler,
        }
    }

    fn add_stream(self, keys: impl Stream<Item = Key> + Send + 'static) -> Builder<P> {
        let mut keys: KeyStream = Box::pin(keys);
        self.connect(move |sources| {
            let queue = sources.queue.clone();
            sources.tasks.push(sources.world.spawn("stream source", async move {
                while let Some(key) = keys.next().await {
                    queue.add(&key, Reason::Asked);
                }
            }));
        })
    }

    fn declare(mut self, declared: Declared) -> Builder<P> {
        self.declared.push(declared);
        self
    }

    fn connect(mut self, connect: impl FnOnce(&mut Sources) + Send + 'static) -> Builder<P> {
        self.connections.push(Box::new(connect));
        self
    }
}

struct Function<S, F> {
    context: Context<S>,
    reconcile: F,
}

impl<S, F, R> Reconcile for Function<S, F>
where
    S: Send + Sync + 'static,
    F: Fn(Context<S>, Key) -> R + Send + Sync + 'static,
    R: Future<Output = Result<Next, Failure>> + Send + 'static,
{
    fn reconcile(&self, key: Key, reason: Reason) -> BoxFuture<'static, Result<Next, Failure>> {
        (self.reconcile)(self.context.because(reason), key).boxed()
    }
}

impl fmt::Debug for Controller {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Controller({})", self.name)
    }
}

impl<P> fmt::Debug for Builder<P> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Builder({})", self.name)
    }
}
