//! A running manager, from its first watch to the release of its lease.

use super::{Error, Manager, Running, StopOnDrop};
use crate::{
    Controller,
    cache::{Caches, RESYNC},
    context::{ControllerContext, Views},
    controller::{ReferenceTo, Sources, SyncCheck},
    event::{EventType, Recorder},
    lease::{self, Candidate, Election, Fence, LeaseLost},
    metrics::Metrics,
    probe,
    queue::Queue,
    webhook::{self, Site, Webhooks},
    worker::{self, OnFailure, Workers},
};
use futures::future::{BoxFuture, Either, FutureExt, join_all, pending, select, try_join_all};
use kube::Client;
use std::{net::SocketAddr, sync::Arc, time::Duration};
use tokio::{net::TcpListener, sync::watch};
use world::{Task, World};

/// A controller whose sources fill its queue, before its workers start.
struct ConnectedController {
    controller: Controller,
    queue: Queue,
    views: Views,
    syncs: Vec<(String, BoxFuture<'static, usize>)>,
    sources: Vec<Task<()>>,
    reference: Option<ReferenceTo>,
    sync_checks: Vec<SyncCheck>,
}

/// What the stages of a run share.
struct Runtime {
    world: World,
    client: Client,
    /// Without the fence: for the lease itself.
    unfenced: Client,
    fence: Fence,
    caches: Caches,
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
        controllers,
        election,
        probes,
        webhooks,
        host,
        metrics,
        grace,
        sync_limit,
    } = manager;
    let (stop, stopped) = watch::channel(false);
    let fence = Fence::open(&world);
    let around = metrics.around(&world, fence.around(client.clone()));
    let caches = Caches::paused(world.clone(), around, RESYNC);
    let runtime = Runtime {
        client: caches.client(),
        unfenced: client,
        fence: fence.clone(),
        caches,
        metrics: metrics.clone(),
        instance: election.as_ref().map_or_else(|| lease::identity(&world), |held| held.identity.clone()),
        grace,
        sync_limit,
        stop: stopped,
        world: world.clone(),
    };
    let controllers: Vec<ConnectedController> =
        controllers.into_iter().map(|controller| runtime.connect(controller)).collect();
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
    let listeners = Listeners { probes, webhooks: webhooks.collect(), queues: Arc::clone(&queues) };
    let body = async move { runtime.run(&name, election, controllers, listeners).await };
    let stop_on_drop = StopOnDrop { fence, queues: Arc::clone(&queues), _hosted: hosted };
    Running { stop, task: world.spawn("manager", body), queues, metrics, stop_on_drop }
}

/// The probes and webhooks of this process.
struct Listeners {
    probes: Option<SocketAddr>,
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
            controller.connect(&self.world, &self.caches, &queue);
        ConnectedController { controller, queue, views, syncs, sources: tasks, reference, sync_checks }
    }

    /// Serves probes and webhooks while the controllers run.
    async fn run(
        self,
        name: &str,
        election: Option<Election>,
        controllers: Vec<ConnectedController>,
        listeners: Listeners,
    ) -> Result<(), Error> {
        let names: Vec<&str> = controllers.iter().map(|it| it.controller.name()).collect();
        tracing::info!(manager = name, controllers = names.join(","), "started");
        let cannot_listen = |address| move |source| Error::Listen { address, source };
        let sync_checks: Vec<SyncCheck> = controllers.iter().flat_map(|it| it.sync_checks.clone()).collect();
        let _probes = match listeners.probes {
            Some(address) => {
                let probes =
                    probe::serve(&self.world, address, &self.metrics, &listeners.queues, sync_checks);
                Some(probes.await.map_err(cannot_listen(address))?)
            }
            None => None,
        };
        let mut hooks = Vec::new();
        for served in listeners.webhooks {
            hooks.push(match served {
                Served::Listening(webhooks, address, site) => {
                    let listener = TcpListener::bind(address).await.map_err(cannot_listen(address))?;
                    self.serve(webhooks, listener, site).boxed()
                }
                Served::Hosted(webhooks, site) => self.keep_registered(webhooks, site).boxed(),
            });
        }
        let leading = std::pin::pin!(self.lead(name, election, controllers));
        match select(std::pin::pin!(all(hooks)), leading).await {
            Either::Left((Ok(()), leading)) => leading.await,
            Either::Left((Err(error), _)) => Err(error.into()),
            Either::Right((ended, _)) => ended,
        }
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
    ) -> Result<(), Error> {
        let mut candidate = election
            .map(|election| election.candidate(&self.world, self.unfenced.clone(), self.fence.clone()));
        if let Some(candidate) = &mut candidate {
            self.metrics.set_leader(name, false);
            if self.unless_stopped(self.acquire(candidate)).await.is_none() {
                return Ok(());
            }
            self.metrics.set_leader(name, true);
            tracing::info!(manager = name, identity = self.instance, "leading");
        }
        self.caches.start();
        let ended = {
            let lease = std::pin::pin!(hold(candidate.as_mut()));
            // Losing the lease drops the workers, and cancels their reconciles.
            match select(lease, std::pin::pin!(self.work(controllers))).await {
                Either::Left((lost, _)) => {
                    tracing::warn!(manager = name, identity = self.instance, problem = %lost, "lost the lease");
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
        self.caches.start();
        candidate.pause().await;
        candidate.acquire().await;
        self.caches.refresh();
    }

    /// Reconciles until the manager stops, then waits for reconciles in progress.
    async fn work(&self, controllers: Vec<ConnectedController>) -> Result<(), Error> {
        let mut running: Vec<(Workers, Vec<Task<()>>)> = Vec::new();
        for ConnectedController { controller, queue, views, syncs, sources, reference, .. } in controllers {
            let Some(synced) = self.unless_stopped(self.sync(controller.name(), syncs)).await else {
                return Ok(());
            };
            synced?;
            let mut settings = controller.settings().clone();
            let name = controller.name().to_owned();
            let client = controller.own_client().map_or_else(|| self.client.clone(), |own| self.wrap(own));
            let recorder = controller.recorder(&self.world, client.clone(), &self.instance);
            settings.on_failure = reference.map(|reference| record_terminal(recorder.clone(), reference));
            let context = Arc::new(ControllerContext {
                controller: name,
                world: self.world.clone(),
                client,
                caches: self.caches.clone(),
                recorder,
                views,
            });
            let reconciler = controller.reconciler(Arc::clone(&context));
            running.push((worker::start(&context, queue, reconciler, settings, &self.metrics), sources));
        }
        self.unless_stopped(pending::<()>()).await;
        join_all(running.into_iter().map(|(workers, _sources)| workers.stop(self.grace))).await;
        Ok(())
    }

    /// The client of one controller as the manager's: fenced, measured, with its writes in the caches.
    fn wrap(&self, own: &Client) -> Client {
        let around = self.metrics.around(&self.world, self.fence.around(own.clone()));
        self.caches.client_around(&around)
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
fn record_terminal(recorder: Recorder, reference: ReferenceTo) -> OnFailure {
    Arc::new(move |key, reason, message| {
        recorder.record(reference(key), EventType::Warning, reason, "Reconcile", message.to_owned());
    })
}

/// Ends when all have ended, or with the first error.
async fn all(hooks: Vec<BoxFuture<'_, Result<(), webhook::Error>>>) -> Result<(), webhook::Error> {
    match hooks.is_empty() {
        true => pending().await,
        false => try_join_all(hooks).await.map(drop),
    }
}

/// Ends when the lease is lost; never without an election.
async fn hold(candidate: Option<&mut Candidate>) -> LeaseLost {
    match candidate {
        Some(candidate) => candidate.renew().await,
        None => pending().await,
    }
}
