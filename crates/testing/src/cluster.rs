//! One cluster under test: its server, store, clock and control loops, and what the testing API keeps for it.

use crate::{
    Injected, Transport,
    front::TestingFront,
    plane::{Plane, PlaneError, Template},
    problem::Problem,
    verbs::fork::ForkHandle,
};
use futures::future::BoxFuture;
use server::{
    Server,
    accept::{self, Limits},
};
use std::{
    any::Any,
    collections::{BTreeMap, VecDeque},
    fmt,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
};
use store::{Memory, ReadStore, Revision, Store};
use tokio::{net::TcpListener, sync::OnceCell};
use tokio_rustls::rustls::ServerConfig;
use world::{Clock, World};

/// Starts servers and control loops: the same for a cluster and its forks.
pub trait Recipe: fmt::Debug + Send + Sync + 'static {
    /// A server on a store, and what starts its control loops later.
    fn start<'a>(
        &'a self,
        world: &'a World,
        store: Arc<dyn Store>,
    ) -> BoxFuture<'a, Result<StartedServer, String>>;

    /// The text of a kubeconfig for this address.
    fn kubeconfig(&self, url: &str) -> String;

    fn tls(&self) -> Arc<ServerConfig>;

    fn limits(&self) -> Limits;
}

/// A server without control loops.
pub struct StartedServer {
    pub server: Server,
    /// Starts the control loops, as clients of this transport.
    pub start_loops: StartLoops,
}

pub type StartLoops = Box<dyn FnOnce(&Arc<Transport>) -> ControlLoops + Send>;

/// Running control loops.
pub struct ControlLoops {
    pub is_idle: Box<dyn Fn() -> bool + Send + Sync>,
    /// Dropping it ends them.
    pub running: Box<dyn Any + Send>,
}

impl fmt::Debug for StartedServer {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("StartedServer").field("server", &self.server).finish_non_exhaustive()
    }
}

impl fmt::Debug for ControlLoops {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("ControlLoops").finish_non_exhaustive()
    }
}

/// A cluster that the testing API steers.
pub struct Cluster {
    /// For sockets, and for waiting in real time.
    pub(crate) real: World,
    /// The time of server, control loops and nodes.
    pub(crate) clock: Clock,
    pub(crate) world: World,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) transport: Arc<Transport>,
    pub(crate) recipe: Arc<dyn Recipe>,
    pub(crate) template: Arc<Template>,
    pub(crate) kept: Mutex<Kept>,
    /// Held while the clock moves or the state is replaced.
    pub(crate) steering: Arc<tokio::sync::Mutex<()>>,
    /// The state when it had started, for resets.
    first: OnceLock<Arc<Memory>>,
    plane: OnceCell<Plane>,
    loops: Mutex<Loops>,
}

/// What lives as long as its object of the testing API, by name.
#[derive(Debug, Default)]
pub(crate) struct Kept {
    pub(crate) snapshots: BTreeMap<String, Arc<Memory>>,
    pub(crate) forks: BTreeMap<String, ForkHandle>,
    pub(crate) faults: BTreeMap<String, Injected>,
    /// Objects that only record what was done, oldest first.
    pub(crate) records: VecDeque<(crate::definitions::TestingKind, String)>,
    /// The latest copy of the state, for all who want the same revision.
    latest: Option<(Revision, Arc<Memory>)>,
}

enum Loops {
    Waiting(StartLoops),
    Running(ControlLoops),
    Stopped,
}

impl fmt::Debug for Cluster {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Cluster")
            .field("store", &self.store)
            .field("clock", &self.clock)
            .finish_non_exhaustive()
    }
}

impl Cluster {
    /// A cluster on a store, with its control loops; returns when it has settled.
    pub async fn start(
        real: &World,
        store: Arc<dyn Store>,
        recipe: Arc<dyn Recipe>,
    ) -> Result<Arc<Cluster>, String> {
        let template = Template::make(real).await.map_err(|error| error.to_string())?;
        let cluster = Cluster::on(real, Clock::new(), store, recipe, Arc::new(template)).await?;
        cluster.start_loops();
        crate::verbs::settle::until_idle(&cluster).await.map_err(|problem| problem.message)?;
        let state = cluster.state().await.map_err(|problem| problem.message)?;
        drop(cluster.first.set(state));
        Ok(cluster)
    }

    /// A cluster whose control loops wait for [`Cluster::start_loops`].
    pub(crate) async fn on(
        real: &World,
        clock: Clock,
        store: Arc<dyn Store>,
        recipe: Arc<dyn Recipe>,
        template: Arc<Template>,
    ) -> Result<Arc<Cluster>, String> {
        let world = World::steered(&clock);
        let StartedServer { server, start_loops } = recipe.start(&world, Arc::clone(&store)).await?;
        let transport = Arc::new(Transport::new(&world, server, Arc::clone(&store) as _));
        Ok(Arc::new(Cluster {
            real: real.clone(),
            clock,
            world,
            store,
            transport,
            recipe,
            template,
            kept: Mutex::default(),
            steering: Arc::default(),
            first: OnceLock::new(),
            plane: OnceCell::new(),
            loops: Mutex::new(Loops::Waiting(start_loops)),
        }))
    }

    /// Answers clients and the testing API until `stop`.
    pub async fn serve(self: &Arc<Cluster>, listener: TcpListener, stop: impl Future<Output = ()>) {
        let front: Arc<dyn accept::Front> = Arc::new(TestingFront::new(self));
        let (server, tls, limits) = (self.server().clone(), self.recipe.tls(), self.recipe.limits());
        accept::serve_behind(Some(front), &self.real, server, listener, tls, limits, stop).await;
        self.stop_loops();
        // They hold this cluster.
        self.kept().forks.clear();
    }

    pub(crate) fn server(&self) -> &Server {
        &self.transport.server
    }

    /// The server of the testing API; made at its first use.
    pub(crate) async fn plane(&self) -> Result<&Plane, PlaneError> {
        let make = || async {
            let plane = self.template.plane(&self.real).await?;
            if self.clock.is_frozen() {
                // A fork of a cluster whose clock is frozen.
                plane.set_frozen().await?;
            }
            Ok::<_, PlaneError>(plane)
        };
        self.plane.get_or_try_init(make).await
    }

    /// The state for resets. A fork begins with it.
    pub(crate) fn first(&self) -> Option<Arc<Memory>> {
        self.first.get().cloned()
    }

    pub(crate) fn set_first(&self, state: Arc<Memory>) {
        drop(self.first.set(state));
    }

    /// A copy of the present state. Those of the same revision share it.
    pub(crate) async fn state(&self) -> Result<Arc<Memory>, Problem> {
        let revision = self.store.revision().await.map_err(Problem::of_store)?;
        if let Some((_, state)) = self.kept().latest.as_ref().filter(|(at, _)| *at == revision) {
            return Ok(Arc::clone(state));
        }
        let copy = self.store.fork_in_memory().ok_or_else(|| {
            Problem::new(
                501,
                "NotImplemented",
                "this store cannot be copied; start with --store memory or embedded",
            )
        })?;
        let copy = Arc::new(copy);
        let revision = copy.revision().await.map_err(Problem::of_store)?;
        self.kept().latest = Some((revision, Arc::clone(&copy)));
        Ok(copy)
    }

    /// Starts the control loops if they do not run.
    pub(crate) fn start_loops(&self) {
        let mut loops = self.loops.lock().unwrap_or_else(PoisonError::into_inner);
        if matches!(*loops, Loops::Waiting(_))
            && let Loops::Waiting(start) = std::mem::replace(&mut *loops, Loops::Stopped)
        {
            *loops = Loops::Running(start(&self.transport));
        }
    }

    pub(crate) fn stop_loops(&self) {
        let running = std::mem::replace(
            &mut *self.loops.lock().unwrap_or_else(PoisonError::into_inner),
            Loops::Stopped,
        );
        drop(running);
    }

    pub(crate) fn are_loops_idle(&self) -> bool {
        match &*self.loops.lock().unwrap_or_else(PoisonError::into_inner) {
            Loops::Running(loops) => (loops.is_idle)(),
            Loops::Waiting(_) | Loops::Stopped => true,
        }
    }

    pub(crate) fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
