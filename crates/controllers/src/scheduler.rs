//! The scheduler: chooses a node for each pod without one, as Kubernetes' default profile does.
//!
//! `state` is kept in step with the caches and never decodes an object twice. One reconcile takes waiting pods in
//! the order of `waiting`, decides about each with the pure `choose` and `preempt`, and carries the decisions out
//! with `act`: decisions one after the other, their writes at the same time.

mod act;
mod choose;
mod facts;
mod filter;
mod node;
mod node_affinity;
mod pod_affinity;
mod preempt;
mod resources;
mod score;
mod snapshot;
mod spread;
mod state;
mod taints;
mod volumes;
mod waiting;

use act::DecisionWriter;
use facts::PodFacts;
use futures::{FutureExt, StreamExt, future::BoxFuture, stream::FuturesUnordered};
use k8s_openapi::{
    api::{
        apps::v1::{ReplicaSet, StatefulSet},
        core::v1::{
            Namespace, Node, PersistentVolume, PersistentVolumeClaim, Pod, ReplicationController, Service,
        },
        policy::v1::PodDisruptionBudget,
        storage::v1::StorageClass,
    },
    apimachinery::pkg::apis::meta::v1::LabelSelector,
};
use kube::{Client, ResourceExt, core::Selector};
use node::NodeFacts;
use operator::{
    Builder, Context, Controller, Failure, Key, Kind, Next, World, all,
    cache::{Delta, Item},
    predicate::Predicate,
};
use preempt::DisruptionBudget;
use serde::{Deserialize, de::DeserializeOwned};
use state::{SchedulerState, SchedulingStep};
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};
use waiting::ClusterChange;

/// So many writes at once: a store that syncs once for many writes is kept busy.
const CONCURRENT_WRITES: usize = 64;
/// A reconcile ends after so many decisions, long before its deadline; the next one goes on.
const DECISIONS_IN_A_ROW: usize = 10_000;
/// The one key of the scheduler's queue: it stands for all waiting pods.
const QUEUE: &str = "waiting-pods";

/// The scheduler, which writes as `client`: that of the user `system:kube-scheduler`.
///
/// It belongs to a manager like any control loop, and shares its caches.
pub fn scheduler(world: &World, client: Client) -> Controller {
    let state = SharedScheduler { world: world.clone(), state: Arc::default() };
    let never = Predicate::new(|_| false);
    let builder = Controller::new(facts::SCHEDULER, all::<Pod>().when(never));
    let builder = state.follow::<Namespace, _>(builder, namespace_changed);
    let builder = state.follow::<Service, _>(builder, service_changed);
    let builder = state.follow::<ReplicationController, _>(builder, |state, delta, _| {
        owner_changed::<LabelMap>(state, "ReplicationController", delta)
    });
    let builder = state.follow::<ReplicaSet, _>(builder, |state, delta, _| {
        owner_changed::<LabelSelector>(state, "ReplicaSet", delta)
    });
    let builder = state.follow::<StatefulSet, _>(builder, |state, delta, _| {
        owner_changed::<LabelSelector>(state, "StatefulSet", delta)
    });
    let builder = state.follow::<PodDisruptionBudget, _>(builder, budget_changed);
    let builder = state.follow::<StorageClass, _>(builder, |state, delta, now| {
        put(&mut state.snapshot.storage.classes, delta, |key| key.name().to_owned());
        state.waiting.notice(ClusterChange::Volumes, now)
    });
    let builder = state.follow::<PersistentVolume, _>(builder, |state, delta, now| {
        put(&mut state.snapshot.storage.volumes, delta, |key| key.name().to_owned());
        state.waiting.notice(ClusterChange::Volumes, now)
    });
    let builder = state.follow::<PersistentVolumeClaim, _>(builder, |state, delta, now| {
        put(&mut state.snapshot.storage.claims, delta, Key::clone);
        let is_awaited = delta.item().is_some_and(|item| state.waiting.claim_changed(item.key(), now));
        state.waiting.notice(ClusterChange::Volumes, now) || is_awaited
    });
    let builder = state.follow::<Node, _>(builder, node_changed);
    let builder = state.follow::<Pod, _>(builder, pod_changed);
    builder.reconcile(state, reconcile).client(client)
}

/// The state that the caches' changes and the reconcile share.
#[derive(Clone)]
struct SharedScheduler {
    world: World,
    state: Arc<Mutex<SchedulerState>>,
}

impl SharedScheduler {
    fn lock(&self) -> MutexGuard<'_, SchedulerState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps the state in step with a kind. `change` returns whether there is something to do.
    fn follow<K: Kind, F>(&self, builder: Builder<Pod>, change: F) -> Builder<Pod>
    where
        F: Fn(&mut SchedulerState, &Delta, world::Moment) -> bool + Send + Sync + 'static,
    {
        let shared = self.clone();
        builder.follows(all::<K>(), move |delta| {
            let now = shared.world.now();
            let is_work = change(&mut shared.lock(), delta, now);
            if is_work { vec![Key::parse(QUEUE)] } else { Vec::new() }
        })
    }
}

async fn reconcile(context: Context<SharedScheduler>, _: Key) -> Result<Next, Failure> {
    let shared = context.state();
    let world = context.world();
    let writer =
        DecisionWriter { world: world.clone(), client: context.client(), events: context.events().clone() };
    let mut writes: FuturesUnordered<BoxFuture<'static, ()>> = FuturesUnordered::new();
    for _ in 0..DECISIONS_IN_A_ROW {
        let step = shared.lock().step(world.now(), world.draw());
        match step {
            Some(step) => writes.push(carry_out(shared.clone(), writer.clone(), step).boxed()),
            None if writes.is_empty() => break,
            // The end of a write may have made another pod ready.
            None => drop(writes.next().await),
        }
        // Starts the write; waits only if there are too many.
        while writes.len() >= CONCURRENT_WRITES {
            writes.next().await;
        }
        while let Some(Some(())) = writes.next().now_or_never() {}
    }
    while writes.next().await.is_some() {}
    let due = shared.lock().next_due(world.now());
    Ok(due.map_or(Next::Settled, Next::CheckAfter))
}

async fn carry_out(shared: SharedScheduler, writer: DecisionWriter, step: SchedulingStep) {
    match step {
        SchedulingStep::Bind { pod, node } => match writer.bind(&pod, &node).await {
            Ok(()) => shared.lock().bound(&pod.key()),
            Err(error) => {
                shared.lock().not_bound(&pod.key(), shared.world.now());
                // Another client has bound or deleted the pod: its watch event follows.
                let is_stale = matches!(&error, kube::Error::Api(status) if matches!(status.code, 404 | 409));
                if !is_stale {
                    writer.report_failure(&pod, &error).await;
                }
            }
        },
        SchedulingStep::PrepareVolumes { pod, node, writes } => {
            if let Err(error) = writer.prepare_volumes(&node, &writes).await {
                tracing::debug!(pod = %pod.key(), %error, "volumes not prepared");
                shared.lock().waiting.fail(&pod.key(), shared.world.now());
            }
        }
        SchedulingStep::Reject(rejected) => writer.reject(&rejected).await,
    }
}

fn pod_changed(state: &mut SchedulerState, delta: &Delta, now: world::Moment) -> bool {
    match (&delta.after, &delta.before) {
        (Some(item), _) => match PodFacts::read(item) {
            Ok(pod) => state.set_pod(item.key(), pod, now),
            Err(problem) => {
                tracing::warn!(%problem, "a pod cannot be read");
                false
            }
        },
        (None, Some(before)) => state.remove_pod(before.key(), now),
        (None, None) => false,
    }
}

fn node_changed(state: &mut SchedulerState, delta: &Delta, now: world::Moment) -> bool {
    match (decoded::<Node>(delta.after.as_ref()), &delta.before) {
        (Some(node), _) => state.set_node(NodeFacts::read(&node), now),
        (None, Some(before)) => {
            state.snapshot.remove_node(before.key().name());
            // Fewer domains may fit a spread constraint.
            state.waiting.notice(ClusterChange::Pods, now)
        }
        (None, None) => false,
    }
}

fn namespace_changed(state: &mut SchedulerState, delta: &Delta, now: world::Moment) -> bool {
    let Some(item) = delta.item() else { return false };
    let name = item.key().name().to_owned();
    match decoded::<Namespace>(delta.after.as_ref()) {
        Some(namespace) => {
            let labels = namespace.labels().clone();
            let before = state.snapshot.namespaces.insert(name, labels.clone());
            before.as_ref() != Some(&labels) && state.waiting.notice(ClusterChange::Pods, now)
        }
        None => {
            state.snapshot.namespaces.remove(&name);
            false
        }
    }
}

fn service_changed(state: &mut SchedulerState, delta: &Delta, _: world::Moment) -> bool {
    let Some(item) = delta.item() else { return false };
    let service = decoded::<Service>(delta.after.as_ref());
    match service.and_then(|service| service.spec?.selector).filter(|selector| !selector.is_empty()) {
        Some(selector) => drop(state.snapshot.services.insert(item.key().clone(), selector)),
        None => drop(state.snapshot.services.remove(item.key())),
    }
    false
}

fn budget_changed(state: &mut SchedulerState, delta: &Delta, _: world::Moment) -> bool {
    let Some(item) = delta.item() else { return false };
    match decoded::<PodDisruptionBudget>(delta.after.as_ref()).as_ref().and_then(DisruptionBudget::read) {
        Some(budget) => drop(state.budgets.insert(item.key().clone(), budget)),
        None => drop(state.budgets.remove(item.key())),
    }
    false
}

/// The selector of a ReplicationController.
#[derive(Deserialize)]
struct LabelMap(BTreeMap<String, String>);

#[derive(Deserialize)]
struct OwnerFields<S> {
    spec: OwnerSpec<S>,
}

#[derive(Deserialize)]
struct OwnerSpec<S> {
    selector: Option<S>,
}

impl From<LabelMap> for LabelSelector {
    fn from(labels: LabelMap) -> LabelSelector {
        LabelSelector { match_labels: Some(labels.0), match_expressions: None }
    }
}

fn owner_changed<S: DeserializeOwned + Into<LabelSelector>>(
    state: &mut SchedulerState,
    kind: &'static str,
    delta: &Delta,
) -> bool {
    let is_same = |before: &Item, after: &Item| {
        before.uid() == after.uid() && before.generation() == after.generation()
    };
    if let (Some(before), Some(after)) = (&delta.before, &delta.after)
        && is_same(before, after)
    {
        return false;
    }
    let Some(item) = delta.item() else { return false };
    let key = (kind, item.key().clone());
    let fields = decoded::<OwnerFields<S>>(delta.after.as_ref());
    let selector = fields.and_then(|fields| Selector::try_from(fields.spec.selector?.into()).ok());
    match selector {
        Some(selector) => drop(state.snapshot.owners.insert(key, selector)),
        None => drop(state.snapshot.owners.remove(&key)),
    }
    false
}

fn put<K: DeserializeOwned, N: Ord>(kept: &mut BTreeMap<N, Arc<K>>, delta: &Delta, name: impl Fn(&Key) -> N) {
    let Some(item) = delta.item() else { return };
    match decoded::<K>(delta.after.as_ref()) {
        Some(object) => drop(kept.insert(name(item.key()), Arc::new(object))),
        None => drop(kept.remove(&name(item.key()))),
    }
}

fn decoded<K: DeserializeOwned>(item: Option<&Item>) -> Option<K> {
    let decoded = item?.decode::<K>();
    decoded.inspect_err(|problem| tracing::warn!(%problem, "an object cannot be read")).ok()
}
