//! The life of a manager, from its first watch to the release of its lease.

use super::{End, Error, Manager, Running};
use crate::{
    Controller,
    cache::Caches,
    context::{Reach, Views},
    controller::{Ready, Refer, Wiring},
    event::{Recorder, Tone},
    lease::{self, Candidate, Election, Fence, Lost},
    metrics::Metrics,
    probe,
    queue::Queue,
    webhook::{self, Site, Webhooks},
    worker::{self, OnTerminal, Workers},
};
use futures::future::{BoxFuture, Either, FutureExt, join_all, pending, select, try_join_all};
use kube::Client;
use std::{net::SocketAddr, sync::Arc, time::Duration};
use tokio::{net::TcpListener, sync::watch};
use world::{Task, World};

/// A controller whose sources are open and whose queue fills, but which does not work yet.
struct Warm {
    controller: Controller,
    queue: Queue,
    views: Views,
    syncs: Vec<(String, BoxFuture<'static, ()>)>,
    sources: Vec<Task<()>>,
    refer: Option<Refer>,
    is_ready: Vec<Ready>,
}

/// What the stages of a life share.
struct Life {
    world: World,
    client: Client,
    /// Kept for the leases, which no fence may stop.
    unfenced: Client,
    fence: Fence,
    caches: Caches,
    metrics: Metrics,
    /// The name of this process, as events tell it.
    instance: String,
    grace: Duration,
    sync_limit: Duration,
    stop: watch::Receiver<bool>,
}

pub(super) fn begin(manager: Manager) -> Running {
    let Manager { name, world, client, controllers, election, probes, webhooks, metrics, grace, sync_limit } =
        manager;
    let (stop, stopped) = watch::channel(false);
    let fence = Fence::open(&world);
    let caches = Caches::new(world.clone(), metrics.around(&world, fence.around(client.clone())));
    let life = Life {
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
    let warm: Vec<Warm> = controllers.into_iter().map(|controller| life.warm(controller)).collect();
    let queues: Arc<Vec<(String, Queue)>> =
        Arc::new(warm.iter().map(|warm| (warm.controller.name().to_owned(), warm.queue.clone())).collect());
    let outside = Outside { probes, webhooks, queues: Arc::clone(&queues) };
    let body = async move { life.run(&name, election, warm, outside).await };
    let end = End { fence, queues: Arc::clone(&queues) };
    Running { stop, life: world.spawn("manager", body), queues, metrics, _end: end }
}

/// What others ask of this process.
struct Outside {
    probes: Option<SocketAddr>,
    webhooks: Vec<(Webhooks, SocketAddr, Site)>,
    queues: Arc<Vec<(String, Queue)>>,
}

impl Life {
    fn warm(&self, mut controller: Controller) -> Warm {
        let queue = worker::queue(&self.world, controller.name(), controller.settings(), &self.metrics);
        let Wiring { views, syncs, tasks, refer, is_ready, .. } =
            controller.wire(&self.world, &self.caches, &queue);
        Warm { controller, queue, views, syncs, sources: tasks, refer, is_ready }
    }

    /// Answers who asks from outside, and meanwhile lives.
    async fn run(
        self,
        name: &str,
        election: Option<Election>,
        warm: Vec<Warm>,
        outside: Outside,
    ) -> Result<(), Error> {
        let cannot_listen = |address| move |source| Error::Listen { address, source };
        let is_ready: Vec<Ready> = warm.iter().flat_map(|warm| warm.is_ready.clone()).collect();
        let _probes = match outside.probes {
            Some(address) => {
                let probes = probe::serve(&self.world, address, &self.metrics, &outside.queues, is_ready);
                Some(probes.await.map_err(cannot_listen(address))?)
            }
            None => None,
        };
        let mut hooks = Vec::new();
        for (webhooks, address, site) in outside.webhooks {
            let listener = TcpListener::bind(address).await.map_err(cannot_listen(address))?;
            hooks.push(self.serve(webhooks, listener, site).boxed());
        }
        let life = std::pin::pin!(self.live(name, election, warm));
        match select(std::pin::pin!(all(hooks)), life).await {
            Either::Left((Ok(()), life)) => life.await,
            Either::Left((Err(error), _)) => Err(error.into()),
            Either::Right((ended, _)) => ended,
        }
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

    async fn live(&self, name: &str, election: Option<Election>, warm: Vec<Warm>) -> Result<(), Error> {
        let mut candidate = election
            .map(|election| election.candidate(&self.world, self.unfenced.clone(), self.fence.clone()));
        if let Some(candidate) = &mut candidate {
            self.metrics.leads(name, false);
            if self.unless_stopped(candidate.win()).await.is_none() {
                return Ok(());
            }
            self.metrics.leads(name, true);
        }
        let ended = {
            let office = std::pin::pin!(hold(candidate.as_mut()));
            // Losing the office drops the work, and with it every reconcile that is under way.
            match select(office, std::pin::pin!(self.work(warm))).await {
                Either::Left((lost, _)) => Err(Error::NoLongerLeading(lost)),
                Either::Right((ended, _)) => ended,
            }
        };
        self.metrics.leads(name, false);
        if let (Some(candidate), false) = (candidate, matches!(ended, Err(Error::NoLongerLeading(_)))) {
            candidate.release().await;
        }
        ended
    }

    /// Works until asked to stop, then lets what is under way come to its end.
    async fn work(&self, warm: Vec<Warm>) -> Result<(), Error> {
        let mut crews: Vec<(Workers, Vec<Task<()>>)> = Vec::new();
        for Warm { controller, queue, views, syncs, sources, refer, .. } in warm {
            let Some(synced) = self.unless_stopped(self.sync(controller.name(), syncs)).await else {
                return Ok(());
            };
            synced?;
            let mut settings = controller.settings().clone();
            let name = controller.name().to_owned();
            let recorder = Recorder::new(&self.world, self.client.clone(), &name, &self.instance);
            settings.on_terminal = refer.map(|refer| tell(recorder.clone(), refer));
            let reach = Reach {
                controller: name,
                world: self.world.clone(),
                client: self.client.clone(),
                recorder,
                views,
            };
            let reach = Arc::new(reach);
            let reconciler = controller.reconciler(Arc::clone(&reach));
            crews.push((worker::start(&reach, queue, reconciler, settings, &self.metrics), sources));
        }
        self.unless_stopped(pending::<()>()).await;
        join_all(crews.into_iter().map(|(workers, _sources)| workers.stop(self.grace))).await;
        Ok(())
    }

    async fn sync(
        &self,
        controller: &str,
        syncs: Vec<(String, BoxFuture<'static, ()>)>,
    ) -> Result<(), Error> {
        let begun = self.world.now();
        for (kind, sync) in syncs {
            let left = self.sync_limit.saturating_sub(self.world.now().since(begun));
            if self.world.timeout(left, sync).await.is_err() {
                let (controller, limit) = (controller.to_owned(), self.sync_limit);
                return Err(Error::NotSynced { controller, kind, limit });
            }
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

/// Tells of what no retry helps by an event on the object.
fn tell(recorder: Recorder, refer: Refer) -> OnTerminal {
    Arc::new(move |key, reason, message| {
        recorder.record(refer(key), Tone::Warning, reason, "Reconcile", message.to_owned());
    })
}

/// Ends well when all have, and badly as soon as one has.
async fn all(hooks: Vec<BoxFuture<'_, Result<(), webhook::Error>>>) -> Result<(), webhook::Error> {
    match hooks.is_empty() {
        true => pending().await,
        false => try_join_all(hooks).await.map(drop),
    }
}

/// Ends when the office is lost; without an election there is none to lose.
async fn hold(candidate: Option<&mut Candidate>) -> Lost {
    match candidate {
        Some(candidate) => candidate.keep().await,
        None => pending().await,
    }
}
