//! A running manager, from its first watch to the release of its lease.

use super::{
    Clusters, Error, HaltFlag, Manager, Running, StopOnDrop,
    runnable::{self, Runnable, RunnableContext, Runnables},
};
use crate::{
    Controller,
    cache::{Caches, RESYNC},
    context::{ClusterAccess, ControllerContext, Views, WrapClient},
    controller::{PrimaryReference, Sources, SyncCheck},
    event::{EventTasks, EventType},
    lease::{self, Candidate, Election, Fence, LeaseLost},
    metrics::Metrics,
    probe::{self, Checks},
    queue::Queue,
    webhook::{self, Site, Webhooks},
    worker::{self, OnFailure, Workers},
};
use futures::future::{BoxFuture, Either, FutureExt, TryFutureExt, join_all, pending, select, try_join_all};
use kube::Client;
use std::{collections::BTreeSet, net::SocketAddr, sync::Arc, time::Duration};
use tokio::net::TcpListener;
use world::{Task, World, watch};

/// How long a manager that stops writes the events that are left: usually milliseconds, longer if the server is away.
const LAST_EVENTS: Duration = Duration::from_secs(2);

/// A controller whose sources fill its queue, before its workers start.
struct ConnectedController {
    controller: Controller,
    queue: Queue,
    views: Views,
    syncs: Vec<(String, BoxFuture<'static, usize>)>,
    sources: Vec<Task<()>>,
    reference: Option<PrimaryReference>,
    sync_checks: Vec<SyncCheck>,
}

/// What the stages of a run share.
struct Runtime {
    world: World,
    /// Without the fence: for the lease itself.
    unfenced: Client,
    fence: Fence,
    halt: HaltFlag,
    event_tasks: EventTasks,
    clusters: Clusters,
    metrics: Metrics,
    /// The name of this process in events.
    instance: String,
    grace: Duration,
    sync_limit: Duration,
    stop: watch::Receiver<bool>,
}

pub(super) fn start(manager: Manager) -> Running {
    let Manager {
        name,
        world,
        client,
        clusters,
        controllers,
        runnables,
        checks,
        election,
        probes,
        webhooks,
        host,
        metrics,
        grace,
        sync_limit,
    } = manager;
    let stop = watch::Sender::new(false);
    let stopped = stop.subscribe();
    let (fence, halt) = (Fence::open(&world), HaltFlag::default());
    let event_tasks = EventTasks::new(&world, &halt);
    let clusters = Clusters::open(client.clone(), clusters, |client| {
        let around = metrics.around(&world, fence.around(client));
        Caches::paused(world.clone(), around, RESYNC)
    });
    let runtime = Runtime {
        unfenced: client,
        fence: fence.clone(),
        halt: halt.clone(),
        event_tasks: event_tasks.clone(),
        clusters,
        metrics: metrics.clone(),
        instance: election.as_ref().map_or_else(|| lease::identity(&world), |held| held.identity.clone()),
        grace,
        sync_limit,
        stop: stopped,
        world: world.clone(),
    };
    let unknown = controllers.iter().find_map(|controller| runtime.unknown_cluster(controller));
    // With an unknown cluster nothing starts, and the manager ends with the error.
    let controllers = controllers.into_iter().filter(|_| unknown.is_none());
    let controllers: Vec<ConnectedController> =
        controllers.map(|controller| runtime.connect(controller)).collect();
    let contested = runtime.clusters.contested_index();
    let refused = unknown.or(contested.map(|(kind, index)| Error::ContestedIndex { kind, index }));
    let queues: Arc<Vec<(String, Queue)>> =
        Arc::new(controllers.iter().map(|it| (it.controller.name().to_owned(), it.queue.clone())).collect());
    let mut hosted = Vec::new();
    let webhooks = webhooks.into_iter().map(|(webhooks, address, site)| match &host {
        Some(host) => {
            let webhooks = Arc::new(webhooks);
            hosted.push(host.host(&world, site.address.names(), Arc::clone(&webhooks)));
            Served::Hosted(webhooks, site)
        }
        None => Served::Listening(webhooks, address, site),
    });
    let listeners = Listeners { probes, checks, webhooks: webhooks.collect(), queues: Arc::clone(&queues) };
    let work = Work { controllers, runnables };
    let body = async move {
        match refused {
            Some(error) => Err(error),
            None => runtime.run(&name, election, work, listeners).await,
        }
    };
    let stop_on_drop = StopOnDrop { fence, halt, event_tasks, queues: Arc::clone(&queues), _hosted: hosted };
    Running { stop, task: world.spawn("manager", body), queues, metrics, stop_on_drop }
}

/// What a manager runs.
struct Work {
    controllers: Vec<ConnectedController>,
    runnables: Runnables,
}

/// The probes and webhooks of this process.
struct Listeners {
    probes: Option<SocketAddr>,
    checks: Checks,
    webhooks: Vec<Served>,
    queues: Arc<Vec<(String, Queue)>>,
}

/// How webhooks are reached.
enum Served {
    Listening(Webhooks, SocketAddr, Site),
    /// Through the host of the manager.
    Hosted(Arc<Webhooks>, Site),
}

impl Runtime {
    fn connect(&self, mut controller: Controller) -> ConnectedController {
        let queue = worker::queue(&self.world, controller.name(), controller.settings(), &self.metrics);
        let Sources { views, syncs, tasks, reference, sync_checks, .. } =
            controller.connect(&self.world, &self.clusters, &queue);
        ConnectedController { controller, queue, views, syncs, sources: tasks, reference, sync_checks }
    }

    fn unknown_cluster(&self, controller: &Controller) -> Option<Error> {
        let mut names = controller.declared().iter().filter_map(|declared| declared.cluster.clone());
        let cluster = names.find(|name| self.clusters.get(Some(name)).is_none())?;
        Some(Error::UnknownCluster { controller: controller.name().to_owned(), cluster })
    }

    /// Serves probes and webhooks while the controllers run.
    async fn run(
        self,
        name: &str,
        election: Option<Election>,
        work: Work,
        listeners: Listeners,
    ) -> Result<(), Error> {
        let Work { controllers, runnables } = work;
        let names: Vec<&str> = controllers.iter().map(|it| it.controller.name()).collect();
        tracing::info!(manager = name, controllers = names.join(","), "started");
        let cannot_listen = |address| move |source| Error::Listen { address, source };
        let sync_checks: Vec<SyncCheck> = controllers.iter().flat_map(|it| it.sync_checks.clone()).collect();
        let _probes = match listeners.probes {
            Some(address) => {
                let (checks, queues) = (listeners.checks, &listeners.queues);
                let probes = probe::serve(&self.world, address, &self.metrics, checks, queues, sync_checks);
                Some(probes.await.map_err(cannot_listen(address))?)
            }
            None => None,
        };
        let mut beside = vec![self.run_all(runnables.always).boxed()];
        for served in listeners.webhooks {
            beside.push(match served {
                Served::Listening(webhooks, address, site) => {
                    let listener = TcpListener::bind(address).await.map_err(cannot_listen(address))?;
                    self.serve(webhooks, listener, site).map_err(Error::from).boxed()
                }
                Served::Hosted(webhooks, site) => {
                    self.keep_registered(webhooks, site).map_err(Error::from).boxed()
                }
            });
        }
        let leading = self.lead(name, election, controllers, runnables.while_leading);
        beside_until(try_join_all(beside).map_ok(drop), leading).await
    }

    async fn run_all(&self, runnables: Vec<Runnable>) -> Result<(), Error> {
        let context = RunnableContext { world: self.world.clone(), caches: self.clusters.own().clone() };
        runnable::run_all(runnables, &context, &self.halt).await
    }

    async fn keep_registered(&self, webhooks: Arc<Webhooks>, site: Site) -> Result<(), webhook::Error> {
        let kept = webhooks.keep_registered(&self.world, self.unfenced.clone(), site);
        self.unless_stopped(kept).await.unwrap_or(Ok(()))
    }

    async fn serve(
        &self,
        webhooks: Webhooks,
        listener: TcpListener,
        site: Site,
    ) -> Result<(), webhook::Error> {
        let stopped = async { _ = self.unless_stopped(pending::<()>()).await };
        webhooks.serve(&self.world, self.unfenced.clone(), listener, site, stopped).await
    }

    /// Waits for the lease if there is an election, and runs the controllers while this process holds it.
    async fn lead(
        &self,
        name: &str,
        election: Option<Election>,
        controllers: Vec<ConnectedController>,
        runnables: Vec<Runnable>,
    ) -> Result<(), Error> {
        let mut candidate = election.map(|election| {
            let candidate = election.candidate(&self.world, self.unfenced.clone(), self.fence.clone());
            candidate.metrics(&self.metrics)
        });
        if let Some(candidate) = &mut candidate {
            self.metrics.set_leader(name, false);
            if self.unless_stopped(self.acquire(candidate)).await.is_none() {
                return Ok(());
            }
            self.metrics.set_leader(name, true);
            tracing::info!(manager = name, identity = self.instance, "leading");
        }
        self.clusters.start();
        let ended = {
            let lease = std::pin::pin!(hold(candidate.as_mut()));
            let work = self.sync_and_work(controllers, runnables);
            // Losing the lease drops the workers, and cancels their reconciles.
            match select(lease, std::pin::pin!(work)).await {
                Either::Left((lost, _)) => {
                    tracing::warn!(manager = name, identity = self.instance, problem = %lost, "lost the lease");
                    self.event_tasks.cancel();
                    Err(Error::NoLongerLeading(lost))
                }
                Either::Right((ended, _)) => ended,
            }
        };
        self.metrics.set_leader(name, false);
        if let (Some(candidate), false) = (candidate, matches!(ended, Err(Error::NoLongerLeading(_)))) {
            candidate.release().await;
        }
        ended
    }

    /// Waits for the lease, with caches that fill meanwhile. A list from before the lease may lack what the
    /// leader before did last: then every cache lists again, and [`Runtime::sync`] waits for that.
    async fn acquire(&self, candidate: &mut Candidate) {
        if candidate.try_acquire().await {
            return;
        }
        self.clusters.start();
        candidate.pause().await;
        candidate.acquire().await;
        self.clusters.refresh();
    }

    /// Works when the caches of all controllers are synced: none acts on what another does not see yet.
    async fn sync_and_work(
        &self,
        mut controllers: Vec<ConnectedController>,
        runnables: Vec<Runnable>,
    ) -> Result<(), Error> {
        let syncs = controllers.iter_mut().map(|it| (it.controller.name(), std::mem::take(&mut it.syncs)));
        let syncs = try_join_all(syncs.map(|(controller, syncs)| self.sync(controller, syncs)));
        let Some(synced) = self.unless_stopped(syncs).await else { return Ok(()) };
        synced?;
        beside_until(self.run_all(runnables), self.work(controllers)).await
    }

    /// Reconciles until the manager stops, then waits for reconciles in progress.
    async fn work(&self, controllers: Vec<ConnectedController>) -> Result<(), Error> {
        let mut running: Vec<(Workers, Vec<Task<()>>)> = Vec::new();
        for ConnectedController { controller, queue, views, sources, reference, .. } in controllers {
            let mut settings = controller.settings().clone();
            settings.halt = self.halt.clone();
            let context = Arc::new(self.context(&controller, views));
            settings.on_failure = reference.map(|reference| record_terminal(&context, reference));
            let reconciler = controller.reconciler(Arc::clone(&context));
            running.push((worker::start(&context, queue, reconciler, settings, &self.metrics), sources));
        }
        self.unless_stopped(pending::<()>()).await;
        join_all(running.into_iter().map(|(workers, _sources)| workers.stop(self.grace))).await;
        // Before the lease is released: from then on no write is sent.
        self.event_tasks.finish(LAST_EVENTS).await;
        Ok(())
    }

    fn context(&self, controller: &Controller, views: Views) -> ControllerContext {
        let access = |name: Option<&str>, client: Client| ClusterAccess {
            name: name.map(str::to_owned),
            recorder: controller.recorder(&self.event_tasks, client.clone(), &self.instance),
            client,
        };
        let (own, wrap) = (controller.own_client(), self.wrap());
        let own = own.map_or_else(|| self.clusters.own().client(), |client| wrap(client));
        let others: BTreeSet<&str> =
            controller.declared().iter().filter_map(|declared| declared.cluster.as_deref()).collect();
        let caches_of = |name| Some((name, self.clusters.get(Some(name))?));
        let others = others.into_iter().filter_map(caches_of);
        ControllerContext {
            controller: controller.name().to_owned(),
            world: self.world.clone(),
            own: access(None, own),
            others: others.map(|(name, caches)| Arc::new(access(Some(name), caches.client()))).collect(),
            views,
            caches: self.clusters.own().clone(),
            wrap,
            event_tasks: self.event_tasks.clone(),
            metrics: self.metrics.clone(),
        }
    }

    /// Makes the client of another account as the manager's: fenced, measured, with its writes in the caches.
    fn wrap(&self) -> WrapClient {
        let (world, metrics) = (self.world.clone(), self.metrics.clone());
        let (fence, caches) = (self.fence.clone(), self.clusters.own().clone());
        Arc::new(move |own| caches.client_around(&metrics.around(&world, fence.around(own.clone()))))
    }

    async fn sync(
        &self,
        controller: &str,
        syncs: Vec<(String, BoxFuture<'static, usize>)>,
    ) -> Result<(), Error> {
        let begun = self.world.now();
        for (kind, sync) in syncs {
            let left = self.sync_limit.saturating_sub(self.world.now().since(begun));
            let Ok(objects) = self.world.timeout(left, sync).await else {
                let (controller, limit) = (controller.to_owned(), self.sync_limit);
                return Err(Error::NotSynced { controller, kind, limit });
            };
            let took = self.world.now().since(begun);
            tracing::info!(controller, kind, objects, ?took, "synced");
        }
        Ok(())
    }

    async fn unless_stopped<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        let mut stop = self.stop.clone();
        let stopped = std::pin::pin!(stop.wait_for(|stop| *stop));
        match select(stopped, std::pin::pin!(work)).await {
            Either::Left(_) => None,
            Either::Right((output, _)) => Some(output),
        }
    }
}

/// Records terminal failures as events on their objects.
fn record_terminal(context: &ControllerContext, reference: PrimaryReference) -> OnFailure {
    let PrimaryReference { cluster, reference } = reference;
    let recorder = context.access(cluster.as_deref()).unwrap_or(&context.own).recorder.clone();
    Arc::new(move |key, reason, message| {
        recorder.record(reference(key), EventType::Warning, reason, "Reconcile", message.to_owned());
    })
}

/// Ends with `work`, or with an error of `beside`.
async fn beside_until(
    beside: impl Future<Output = Result<(), Error>>,
    work: impl Future<Output = Result<(), Error>>,
) -> Result<(), Error> {
    match select(std::pin::pin!(beside), std::pin::pin!(work)).await {
        Either::Left((Ok(()), work)) => work.await,
        Either::Left((Err(error), _)) => Err(error),
        Either::Right((ended, _)) => ended,
    }
}

/// Ends when the lease is lost; never without an election.
async fn hold(candidate: Option<&mut Candidate>) -> LeaseLost {
    match candidate {
        Some(candidate) => candidate.renew().await,
        None => pending().await,
    }
}
