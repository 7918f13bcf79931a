//! The manager: runs controllers with shared caches, one client, leader election, probes and webhooks.
//!
//! A `main` is this long:
//! ```no_run
//! # use k8s_openapi::api::core::v1::ConfigMap;
//! # use operator::{Context, Controller, Failure, Key, Manager, Next, all};
//! # async fn reconcile(_: Context<()>, _: Key) -> Result<Next, Failure> { Ok(Next::Settled) }
//! # fn controller() -> Controller { Controller::new("copier", all::<ConfigMap>()).reconcile((), reconcile) }
//! #[tokio::main]
//! async fn main() -> Result<(), operator::Error> {
//!     let manager = Manager::connect("copier").await?;
//!     manager.elect_in("default").probes(([0, 0, 0, 0], 8080)).controller(controller()).run().await
//! }
//! ```

mod clusters;
mod connect;
mod error;
mod halt;
mod manifests;
mod run;
mod runnable;

pub(crate) use clusters::Clusters;
pub use error::Error;
pub(crate) use halt::HaltFlag;
pub use manifests::Installation;
pub use runnable::RunnableContext;

use crate::{
    Controller,
    event::EventTasks,
    lease::{Election, Fence},
    metrics::Metrics,
    probe::Checks,
    queue::Queue,
    rules::Declared,
    webhook::{self, Site, Webhooks},
};
use futures::future::{FutureExt, select};
use kube::Client;
use runnable::Runnables;
use std::{collections::BTreeMap, fmt, net::SocketAddr, sync::Arc, time::Duration};
use world::watch;
use world::{Task, World};

/// How long reconciles in progress may take to end when the manager stops.
const GRACE: Duration = Duration::from_secs(30);
/// How long the first lists of the caches may take.
const SYNC_LIMIT: Duration = Duration::from_secs(120);

/// Controllers and their settings; [`Manager::run`] or [`Manager::start`] runs them.
pub struct Manager {
    name: String,
    world: World,
    client: Client,
    clusters: BTreeMap<String, Client>,
    controllers: Vec<Controller>,
    runnables: Runnables,
    checks: Checks,
    election: Option<Election>,
    probes: Option<SocketAddr>,
    webhooks: Vec<(Webhooks, SocketAddr, Site)>,
    host: Option<Arc<dyn webhook::Host>>,
    metrics: Metrics,
    grace: Duration,
    sync_limit: Duration,
}

/// A running manager. Dropping it ends everything at once, as a crash would.
#[derive(Debug)]
pub struct Running {
    stop: watch::Sender<bool>,
    task: Task<Result<(), Error>>,
    queues: Arc<Vec<(String, Queue)>>,
    metrics: Metrics,
    stop_on_drop: StopOnDrop,
}

/// Stops all reconciles, runnables, writes, events, queues and webhooks when it is dropped: at once, not when their tasks
/// run next.
struct StopOnDrop {
    fence: Fence,
    halt: HaltFlag,
    event_tasks: EventTasks,
    queues: Arc<Vec<(String, Queue)>>,
    _hosted: Vec<webhook::Hosted>,
}

impl fmt::Debug for StopOnDrop {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("StopOnDrop").field("fence", &self.fence).finish_non_exhaustive()
    }
}

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.halt.raise();
        self.fence.shut();
        self.event_tasks.cancel();
        self.queues.iter().for_each(|(_, queue)| queue.close());
    }
}

impl Manager {
    /// A manager with a given client and world.
    pub fn new(name: &str, world: &World, client: Client) -> Manager {
        Manager {
            name: name.to_owned(),
            world: world.clone(),
            client,
            clusters: BTreeMap::new(),
            controllers: Vec::new(),
            runnables: Runnables::default(),
            checks: Checks::default(),
            election: None,
            probes: None,
            webhooks: Vec::new(),
            host: None,
            metrics: Metrics::default(),
            grace: GRACE,
            sync_limit: SYNC_LIMIT,
        }
    }

    /// Its name, which is also that of its lease.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Adds a controller.
    pub fn controller(mut self, controller: Controller) -> Manager {
        self.controllers.push(controller);
        self
    }

    /// Adds another cluster, for sources with [`Source::in_cluster`](crate::Source::in_cluster). Its caches are
    /// synced before controllers that use it start, and writes through its client are in them when they return.
    /// The lease is in the manager's own cluster, and stops writes to all of them.
    pub fn cluster(mut self, name: &str, client: Client) -> Manager {
        self.clusters.insert(name.to_owned(), client);
        self
    }

    /// Adds a check to `/healthz`: if it fails, the process should be restarted.
    ///
    /// ```
    /// # use operator::Manager;
    /// # let _ = |manager: Manager, licence: std::path::PathBuf| {
    /// manager
    ///     .health_check("licence", move || licence.exists().then_some(()).ok_or_else(|| "there is none".into()))
    ///     .ready_check("warm", || Err("not yet".into()))
    /// # };
    /// ```
    pub fn health_check(
        mut self,
        name: &str,
        check: impl Fn() -> Result<(), String> + Send + Sync + 'static,
    ) -> Manager {
        self.checks.live.insert(name.to_owned(), Arc::new(check));
        self
    }

    /// Adds a check to `/readyz`: while it fails, the process should get no requests.
    pub fn ready_check(
        mut self,
        name: &str,
        check: impl Fn() -> Result<(), String> + Send + Sync + 'static,
    ) -> Manager {
        self.checks.ready.insert(name.to_owned(), Arc::new(check));
        self
    }

    /// Reconciles only while it holds the lease of its name in `namespace`. Its caches fill before that.
    pub fn elect_in(self, namespace: &str) -> Manager {
        let election = Election::new(&self.world, namespace, &self.name);
        self.elect(election)
    }

    /// Reconciles only while it holds this lease.
    pub fn elect(mut self, election: Election) -> Manager {
        self.election = Some(election);
        self
    }

    /// Serves `/metrics`, `/healthz` and `/readyz` at this address.
    pub fn probes(mut self, address: impl Into<SocketAddr>) -> Manager {
        self.probes = Some(address.into());
        self
    }

    /// Serves webhooks at `address`, also while another process leads. The API server reaches them at `site`.
    pub fn webhooks(mut self, webhooks: Webhooks, address: impl Into<SocketAddr>, site: Site) -> Manager {
        self.webhooks.push((webhooks, address.into(), site));
        self
    }

    /// Opens no sockets: webhooks are called through `host`, and there are no probes.
    pub fn hosted(mut self, host: Arc<dyn webhook::Host>) -> Manager {
        self.host = Some(host);
        self.probes = None;
        self
    }

    /// How long reconciles in progress may take to end when the manager stops.
    pub fn grace(mut self, grace: Duration) -> Manager {
        self.grace = grace;
        self
    }

    /// How long the first lists of the caches may take.
    pub fn sync_limit(mut self, limit: Duration) -> Manager {
        self.sync_limit = limit;
        self
    }

    /// The metrics of this process, which `/metrics` shows: counters, gauges and histograms of the operator's own are
    /// added here, or in a reconcile with [`Context::metrics`](crate::Context::metrics).
    ///
    /// ```
    /// use operator::Manager;
    ///
    /// # tokio::runtime::Runtime::new().expect("a runtime").block_on(async {
    /// let manager = Manager::disconnected("baker");
    /// let loaves = manager.metrics().counter("bakery_loaves_total", "Loaves baked.", &[("flour", "rye")]);
    /// loaves.add(3);
    /// assert!(manager.metrics().render().contains("bakery_loaves_total{flour=\"rye\"} 3\n"));
    /// # });
    /// ```
    pub fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// The kinds that its controllers use, for their RBAC rules.
    pub fn declared(&self) -> Vec<Declared> {
        self.controllers.iter().flat_map(|controller| controller.declared().to_vec()).collect()
    }

    /// Runs until SIGTERM or Ctrl-C, then waits for reconciles in progress and releases the lease.
    pub async fn run(self) -> Result<(), Error> {
        self.run_until(stop_signal()).await
    }

    /// Runs until `end`, then waits for reconciles in progress and releases the lease.
    pub async fn run_until(self, end: impl Future<Output = ()>) -> Result<(), Error> {
        let Running { stop, task, stop_on_drop: _stop_on_drop, .. } = self.start();
        let end = std::pin::pin!(end);
        match select(task, end).await {
            futures::future::Either::Left((ended, _)) => ended?,
            futures::future::Either::Right(((), task)) => {
                stop.set(true);
                task.await?
            }
        }
    }

    /// Runs until the caller stops it.
    pub fn start(self) -> Running {
        run::start(self)
    }
}

impl Running {
    /// Whether no key waits, is in progress or in back-off; also while another process leads.
    pub fn is_idle(&self) -> bool {
        self.idle_probe()()
    }

    /// [`Running::is_idle`] as a function that outlives this manager: after its end it is idle.
    pub fn idle_probe(&self) -> impl Fn() -> bool + Send + Sync + 'static {
        let (queues, fence) = (Arc::downgrade(&self.queues), self.stop_on_drop.fence.clone());
        move || {
            let are_idle = || queues.upgrade().is_none_or(|queues| queues.iter().all(|(_, it)| it.is_idle()));
            !fence.lets_pass() || are_idle()
        }
    }

    /// The queue of a controller.
    pub fn queue(&self, controller: &str) -> Option<&Queue> {
        self.queues.iter().find(|(name, _)| name == controller).map(|(_, queue)| queue)
    }

    /// The metrics of this process.
    pub fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// Waits for reconciles in progress, releases the lease, and ends.
    pub async fn stop(self) -> Result<(), Error> {
        self.stop.set(true);
        self.ended().await
    }

    /// Waits until the manager ends by itself.
    pub async fn ended(self) -> Result<(), Error> {
        // The sender stays alive meanwhile: dropping it would stop the manager.
        let Running { stop: _stop, task, stop_on_drop: _stop_on_drop, .. } = self;
        task.await?
    }
}

async fn stop_signal() {
    let interrupt = tokio::signal::ctrl_c().map(drop);
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        if let Ok(mut terminate) = signal(SignalKind::terminate()) {
            let terminate = std::pin::pin!(async move { terminate.recv().await }.map(drop));
            select(std::pin::pin!(interrupt), terminate).await;
            return;
        }
    }
    interrupt.await;
}

impl fmt::Debug for Manager {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Manager").field("name", &self.name).field("controllers", &self.controllers).finish()
    }
}
