//! The measurements of one process, the same for each framework that runs the controller in it.

use crate::{
    Figures, name,
    process::{busy, resident},
};
use futures::StreamExt;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, Client,
    api::{Patch, PatchParams},
    runtime::{
        Controller,
        controller::Action,
        reflector,
        watcher::{self, watcher},
    },
};
use operator::{Key, Manager, Next, all, cache::Caches};
use serde_json::json;
use std::{
    convert::Infallible,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};
use tokio::sync::Notify;
use world::{Moment, World};

/// Writes whose latency to the reconciler is measured.
const WRITES: usize = 1_000;
const PAUSE: Duration = Duration::from_millis(2);
/// Reconciles at once: kube-rs has no limit unless one is set.
const WORKERS: usize = 8;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Contestant {
    Framework,
    KubeRs,
    /// As `KubeRs`, with a streaming list.
    KubeRsStreaming,
    /// Measured by a program of its own, in Go.
    ControllerRuntime,
}

/// Those that this program measures itself.
const IN_RUST: [Contestant; 3] = [Contestant::Framework, Contestant::KubeRs, Contestant::KubeRsStreaming];

impl Contestant {
    pub(crate) fn all(with_controller_runtime: bool) -> Vec<Contestant> {
        let peer = with_controller_runtime.then_some(Contestant::ControllerRuntime);
        IN_RUST.into_iter().chain(peer).collect()
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Contestant::Framework => "operator",
            Contestant::KubeRs => "kube-rs",
            Contestant::KubeRsStreaming => "kube-rs, streaming lists",
            Contestant::ControllerRuntime => "controller-runtime",
        }
    }

    pub(crate) fn named(name: &str) -> Option<Contestant> {
        IN_RUST.into_iter().find(|contestant| contestant.name() == name)
    }

    fn config(self) -> watcher::Config {
        match self {
            Contestant::KubeRsStreaming => watcher::Config::default().streaming_lists(),
            _ => watcher::Config::default(),
        }
    }
}

/// What the empty reconciler records: how often it was called, when, and for which write.
#[derive(Default)]
struct Notes {
    calls: AtomicUsize,
    first: Mutex<Option<Moment>>,
    last: Mutex<Option<Moment>>,
    all: Notify,
    /// The object that is being written, and when its reconcile came.
    awaited: Mutex<Option<(String, Option<Moment>)>>,
    came: Notify,
}

impl Notes {
    fn take(&self, world: &World, name: &str, objects: usize) {
        let call = self.calls.fetch_add(1, Ordering::Relaxed) + 1;
        if call == 1 {
            *self.first.lock().unwrap() = Some(world.now());
        }
        if call == objects {
            *self.last.lock().unwrap() = Some(world.now());
            self.all.notify_one();
        }
        if call > objects {
            let mut awaited = self.awaited.lock().unwrap();
            if let Some((wanted, came @ None)) = awaited.as_mut()
                && wanted == name
            {
                *came = Some(world.now());
                self.came.notify_one();
            }
        }
    }

    fn per_second(&self, objects: usize) -> f64 {
        let [first, last] = [&self.first, &self.last].map(|moment| moment.lock().unwrap().unwrap());
        objects as f64 / last.since(first).as_secs_f64()
    }
}

pub(crate) async fn measure(world: &World, client: Client, who: Contestant, objects: usize) -> Figures {
    // Connect before measuring: connection and certificates are not part of the cache.
    let configs: Api<ConfigMap> = Api::namespaced(client.clone(), "default");
    configs.get(&name(0)).await.unwrap();
    let before = (resident(std::process::id()), busy(std::process::id()), world.now());
    let kept: Box<dyn std::any::Any> = match who {
        Contestant::Framework => Box::new(sync(world, &client, objects).await),
        _ => Box::new(sync_kube_rs(world, &configs, who, objects).await),
    };
    let sync_seconds = world.now().since(before.2).as_secs_f64();
    let work = busy(std::process::id()).saturating_sub(before.1).as_secs_f64();
    let memory = resident(std::process::id()).saturating_sub(before.0) as f64 / objects as f64;
    drop(kept);

    let notes = Arc::new(Notes::default());
    let running: Box<dyn std::any::Any> = match who {
        Contestant::Framework => Box::new(control(world, &client, &notes, objects)),
        _ => Box::new(control_kube_rs(world, &configs, who, &notes, objects)),
    };
    notes.all.notified().await;
    let rate = notes.per_second(objects);
    let mut latencies = latencies(world, &configs, &notes, objects).await;
    drop(running);
    latencies.sort_by(f64::total_cmp);
    let percentile = |share: f64| latencies[((latencies.len() - 1) as f64 * share) as usize];
    Figures::of([sync_seconds, work, memory, rate, percentile(0.5), percentile(0.99)])
}

/// In milliseconds, one write after the other.
async fn latencies(world: &World, configs: &Api<ConfigMap>, notes: &Notes, objects: usize) -> Vec<f64> {
    let mut latencies = Vec::new();
    for number in 0..WRITES {
        let name = name(number * 7919 % objects);
        *notes.awaited.lock().unwrap() = Some((name.clone(), None));
        let patch = Patch::Merge(json!({"data": {"value": world.draw().to_string()}}));
        let begin = world.now();
        configs.patch(&name, &PatchParams::default(), &patch).await.unwrap();
        notes.came.notified().await;
        let came = notes.awaited.lock().unwrap().take().and_then(|(_, came)| came).unwrap();
        latencies.push(came.since(begin).as_secs_f64() * 1e3);
        world.sleep(PAUSE).await;
    }
    latencies
}

// ------------------------------------------------------------------------------------ the framework

async fn sync(world: &World, client: &Client, objects: usize) -> Caches {
    let caches = Caches::new(world.clone(), client.clone());
    let view = caches.kind::<ConfigMap>(operator::cache::Scope::default());
    view.synced().await;
    assert!(view.len() >= objects);
    caches
}

fn control(world: &World, client: &Client, notes: &Arc<Notes>, objects: usize) -> operator::Running {
    let (notes, clock) = (Arc::clone(notes), world.clone());
    let controller = operator::Controller::new("bench", all::<ConfigMap>()).workers(WORKERS);
    let controller = controller.reconcile((), move |_context, key: Key| {
        notes.take(&clock, key.name(), objects);
        async { Ok(Next::Settled) }
    });
    Manager::new("bench", world, client.clone()).controller(controller).start()
}

// ------------------------------------------------------------------------------------------ kube-rs

async fn sync_kube_rs(
    world: &World,
    configs: &Api<ConfigMap>,
    who: Contestant,
    objects: usize,
) -> (reflector::Store<ConfigMap>, world::Task<()>) {
    let (reader, writer) = reflector::store();
    let mut events = Box::pin(reflector(writer, watcher(configs.clone(), who.config())));
    let task = world.spawn("reflector", async move { while events.next().await.is_some() {} });
    reader.wait_until_ready().await.unwrap();
    assert!(reader.len() >= objects);
    (reader, task)
}

fn control_kube_rs(
    world: &World,
    configs: &Api<ConfigMap>,
    who: Contestant,
    notes: &Arc<Notes>,
    objects: usize,
) -> world::Task<()> {
    let controller = Controller::new(configs.clone(), who.config());
    let (notes, clock) = (Arc::clone(notes), world.clone());
    let reconciles = controller.run(
        move |object: Arc<ConfigMap>, _context| {
            notes.take(&clock, object.metadata.name.as_deref().unwrap_or_default(), objects);
            async { Ok::<_, Infallible>(Action::await_change()) }
        },
        |_object, _error, _context| Action::await_change(),
        Arc::new(()),
    );
    world.spawn("controller", async move { reconciles.for_each(|_| async {}).await })
}
