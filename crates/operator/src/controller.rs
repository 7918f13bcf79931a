//! A controller: what it looks at, how it is woken, and the function that makes things so.
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

use crate::{
    Context, Failure, Key, Next, Reconcile,
    cache::{Caches, View},
    context::{Reach, Views},
    queue::{Queue, Why},
    rules::{Declared, Use},
    source::{Kind, Source},
    trigger,
    worker::Settings,
};
use futures::{
    Stream, StreamExt,
    future::{BoxFuture, FutureExt},
};
use k8s_openapi::api::core::v1::ObjectReference;
use std::{fmt, future::Future, marker::PhantomData, pin::Pin, sync::Arc, time::Duration};
use world::{Task, World};

/// A controller that a [`crate::Manager`] can run.
pub struct Controller {
    name: String,
    wires: Vec<Wire>,
    declared: Vec<Declared>,
    settings: Settings,
    reconciler: Box<dyn FnOnce(Arc<Reach>) -> Arc<dyn Reconcile> + Send>,
}

/// A controller that has no reconcile function yet. `P` is its primary kind: whose keys it gets.
pub struct Builder<P> {
    name: String,
    wires: Vec<Wire>,
    declared: Vec<Declared>,
    settings: Settings,
    primary: PhantomData<fn() -> P>,
}

/// Connects one source with the queue, when the manager starts.
type Wire = Box<dyn FnOnce(&mut Wiring) + Send>;

/// What sources are connected with, and what they leave behind.
pub(crate) struct Wiring {
    pub(crate) world: World,
    pub(crate) caches: Caches,
    pub(crate) queue: Queue,
    pub(crate) views: Views,
    /// One for each view: ends when the view has seen all there is.
    pub(crate) syncs: Vec<(String, BoxFuture<'static, ()>)>,
    pub(crate) tasks: Vec<Task<()>>,
    primary: Option<Box<dyn std::any::Any + Send + Sync>>,
    /// How events name an object of the primary kind.
    pub(crate) refer: Option<Refer>,
    /// One for each view: has it seen all there is?
    pub(crate) is_ready: Vec<Ready>,
}

/// The name of a source, and whether it has seen all there is.
pub(crate) type Ready = (String, Arc<dyn Fn() -> bool + Send + Sync>);

pub(crate) type Refer = Arc<dyn Fn(&Key) -> ObjectReference + Send + Sync>;

/// A stream of keys whose maker decides when to look.
type Keys = Pin<Box<dyn Stream<Item = Key> + Send>>;

impl Controller {
    /// Begins a controller: it is given the keys of `primary`'s objects.
    #[expect(clippy::new_ret_no_self, reason = "without its reconcile function it is not a controller yet")]
    pub fn new<P: Kind>(name: &str, primary: Source<P>) -> Builder<P> {
        let builder = Builder {
            name: name.to_owned(),
            wires: Vec::new(),
            declared: Vec::new(),
            settings: Settings::default(),
            primary: PhantomData,
        };
        builder.declare::<P>(Use::For).wire(move |wiring| {
            let view = wiring.open(&source_name::<P>(), &primary);
            wiring.primary = Some(Box::new(view.clone()));
            wiring.refer = Some(reference(view.clone()));
            trigger::connect(&view, primary.predicate(), trigger::itself(), &wiring.queue);
            wiring.queue.refill_from(move || view.keys());
        })
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// What it has said it will use, for its access rules.
    pub fn declared(&self) -> &[Declared] {
        &self.declared
    }

    pub(crate) fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Opens the sources. Keys gather in `queue` from now on.
    pub(crate) fn wire(&mut self, world: &World, caches: &Caches, queue: &Queue) -> Wiring {
        let mut wiring = Wiring {
            world: world.clone(),
            caches: caches.clone(),
            queue: queue.clone(),
            views: Views::default(),
            syncs: Vec::new(),
            tasks: Vec::new(),
            primary: None,
            refer: None,
            is_ready: Vec::new(),
        };
        for wire in self.wires.drain(..) {
            wire(&mut wiring);
        }
        wiring
    }

    pub(crate) fn reconciler(self, reach: Arc<Reach>) -> Arc<dyn Reconcile> {
        (self.reconciler)(reach)
    }
}

impl<P: Kind> Builder<P> {
    /// Wakes an owner when an object that it controls changes.
    pub fn owns<K: Kind>(self, source: Source<K>) -> Builder<P> {
        self.declare::<K>(Use::Owns).wire(move |wiring| {
            let view = wiring.open(&source_name::<K>(), &source);
            let mapping = trigger::owner(wiring.primary::<P>());
            trigger::connect(&view, source.predicate(), mapping, &wiring.queue);
        })
    }

    /// Wakes whatever `keys` names when an object of another kind changes.
    pub fn watches<K: Kind>(
        self,
        source: Source<K>,
        keys: impl Fn(&K) -> Vec<Key> + Send + Sync + 'static,
    ) -> Builder<P> {
        self.watches_through(source, move |_, object| keys(object))
    }

    /// [`Builder::watches`] for a mapping that has to look into the cache of the primary kind:
    /// which of them name this object?
    pub fn watches_through<K: Kind>(
        self,
        source: Source<K>,
        keys: impl Fn(&View<P>, &K) -> Vec<Key> + Send + Sync + 'static,
    ) -> Builder<P> {
        self.declare::<K>(Use::Watches).wire(move |wiring| {
            let view = wiring.open(&source_name::<K>(), &source);
            let primary = wiring.primary::<P>();
            let mapping = trigger::mapped(move |object| keys(&primary, object));
            trigger::connect(&view, source.predicate(), mapping, &wiring.queue);
        })
    }

    /// Keeps an index over the primary kind, for [`View::indexed`].
    pub fn index(
        self,
        name: &'static str,
        values: impl Fn(&P) -> Vec<String> + Send + Sync + 'static,
    ) -> Builder<P> {
        self.wire(move |wiring| wiring.primary::<P>().index(name, values))
    }

    /// Caches a kind for reading, without being woken by it.
    pub fn reads<K: Kind>(self, source: Source<K>) -> Builder<P> {
        self.declare::<K>(Use::Reads).wire(move |wiring| {
            wiring.open(&source_name::<K>(), &source);
        })
    }

    /// Says that objects of this kind are written without being watched: for the access rules.
    pub fn applies<K: Kind>(self) -> Builder<P> {
        self.declare::<K>(Use::Applies)
    }

    /// Wakes the keys of a stream: news from outside the cluster.
    pub fn stream(self, keys: impl Stream<Item = Key> + Send + 'static) -> Builder<P> {
        let mut keys: Keys = Box::pin(keys);
        self.wire(move |wiring| {
            let queue = wiring.queue.clone();
            wiring.tasks.push(wiring.world.spawn("stream source", async move {
                while let Some(key) = keys.next().await {
                    queue.add(&key, Why::Asked);
                }
            }));
        })
    }

    /// Wakes every object of the primary kind once in each `period`.
    pub fn every(self, period: Duration) -> Builder<P> {
        self.wire(move |wiring| {
            let (world, queue, primary) = (wiring.world.clone(), wiring.queue.clone(), wiring.primary::<P>());
            wiring.tasks.push(wiring.world.spawn("timer source", async move {
                loop {
                    world.sleep(period).await;
                    for key in primary.keys() {
                        queue.add(&key, Why::Resync);
                    }
                }
            }));
        })
    }

    /// How many reconciles may run at once, each for another key. One unless told.
    pub fn workers(mut self, workers: usize) -> Builder<P> {
        self.settings.workers = workers.max(1);
        self
    }

    /// How long one reconcile may take before it is given up and tried again.
    pub fn deadline(mut self, deadline: Duration) -> Builder<P> {
        self.settings.deadline = deadline;
        self
    }

    /// Gives it its brain: a function of the key alone, that reads the state anew each time.
    pub fn reconcile<S, F, R>(self, state: S, reconcile: F) -> Controller
    where
        S: Send + Sync + 'static,
        F: Fn(Context<S>, Key) -> R + Send + Sync + 'static,
        R: Future<Output = Result<Next, Failure>> + Send + 'static,
    {
        let state = Arc::new(state);
        let reconciler = move |reach: Arc<Reach>| -> Arc<dyn Reconcile> {
            Arc::new(Function { context: Context::new(reach, state), reconcile })
        };
        let Builder { name, wires, declared, settings, primary: _ } = self;
        Controller { name, wires, declared, settings, reconciler: Box::new(reconciler) }
    }

    fn declare<K: Kind>(mut self, usage: Use) -> Builder<P> {
        self.declared.push(Declared::of::<K>(usage));
        self
    }

    fn wire(mut self, wire: impl FnOnce(&mut Wiring) + Send + 'static) -> Builder<P> {
        self.wires.push(Box::new(wire));
        self
    }
}

impl Wiring {
    fn open<K: Kind>(&mut self, name: &str, source: &Source<K>) -> View<K> {
        let view = source.open(&self.caches);
        self.views.add(&view);
        let (waiting, asked) = (view.clone(), view.clone());
        self.is_ready.push((name.to_owned(), Arc::new(move || asked.is_synced())));
        self.syncs.push((name.to_owned(), async move { waiting.synced().await }.boxed()));
        view
    }

    fn primary<P: Kind>(&self) -> View<P> {
        let view = self.primary.as_ref().and_then(|view| view.downcast_ref::<View<P>>());
        view.expect("the first wire of a controller is its primary").clone()
    }
}

fn reference<K: Kind>(view: View<K>) -> Refer {
    Arc::new(move |key| ObjectReference {
        api_version: Some(K::api_version(&()).into_owned()),
        kind: Some(K::kind(&()).into_owned()),
        namespace: key.namespace().map(str::to_owned),
        name: Some(key.name().to_owned()),
        uid: view.item(key).map(|item| item.uid().to_owned()),
        ..ObjectReference::default()
    })
}

fn source_name<K: Kind>() -> String {
    K::kind(&()).into_owned()
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
    fn reconcile(&self, key: Key) -> BoxFuture<'static, Result<Next, Failure>> {
        (self.reconcile)(self.context.clone(), key).boxed()
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
