//! Runs the pods of simulated nodes: plans each pod's status, and writes it as its node.

use crate::{
    admission, environment,
    fleet::{Account, Fleet, is_stopped},
    machine,
    obstacles::{self, Found, Need, Needed},
    plan::{self, Input, Obstacle, PendingResize, Place, Plan, PodEvent},
    times::later,
};
use jiff::SignedDuration;
use k8s_openapi::api::core::v1::{ConfigMap, Node, ObjectReference, PersistentVolumeClaim, Pod, Secret};
use kube::{
    Api, Resource, ResourceExt,
    api::{DeleteParams, Preconditions},
    core::PartialObjectMeta,
};
use operator::{Context, Controller, Failure, Key, Next, all, event::EventType, predicate, status};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

/// So many pods are written at once.
const WORKERS: usize = 32;
/// Kubernetes: how often deferred resizes are tried again.
const RESIZE_RETRY: SignedDuration = SignedDuration::from_secs(3 * 60);

type PodContext = Context<Arc<Fleet>>;

pub(crate) fn controller(fleet: &Arc<Fleet>) -> Controller {
    let waiting = |needed: Needed| {
        let fleet = Arc::clone(fleet);
        move |namespace: Option<&str>, name: &str| fleet.waiting_for(needed, Key::new(namespace, name))
    };
    let (of_map, of_secret, of_claim) =
        (waiting(Needed::ConfigMap), waiting(Needed::Secret), waiting(Needed::Claim));
    let by_node = Arc::clone(fleet);
    Controller::new("simulated-pods", all::<Pod>())
        // A node that registers, is stopped or is started again.
        .watches(all::<Node>().when(predicate::annotations()), move |node| {
            by_node.ledger().pods_on(&node.name_any())
        })
        .watches(all::<ConfigMap>().metadata_only(), move |it| {
            of_map(it.meta().namespace.as_deref(), &it.name_any())
        })
        .watches(all::<Secret>().metadata_only(), move |it| {
            of_secret(it.meta().namespace.as_deref(), &it.name_any())
        })
        .watches(all::<PersistentVolumeClaim>(), move |it| {
            of_claim(it.meta().namespace.as_deref(), &it.name_any())
        })
        .workers(WORKERS)
        .reconcile(Arc::clone(fleet), reconcile)
}

async fn reconcile(context: PodContext, key: Key) -> Result<Next, Failure> {
    let fleet = Arc::clone(context.state());
    let Some(pod) = context.get::<Pod>(&key)? else {
        fleet.ledger().forget(&key);
        return Ok(Next::Settled);
    };
    let Some(node_name) = pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref()) else {
        return Ok(Next::Settled);
    };
    fill_ledger(&context)?;
    fleet.ledger().note(&key, &pod, node_name);
    let Some(node) = context.get::<Node>(&Key::new(None, node_name))? else {
        return Ok(Next::WaitFor("its node"));
    };
    if !fleet.simulates(&node) {
        return Ok(Next::Settled);
    }
    if is_stopped(&node) {
        return Ok(Next::WaitFor("its node to be started again"));
    }
    let account = fleet.account(&context, node_name);
    let pod = PodOnNode { key: &key, pod: &pod, node: &node, account: &account };
    if pod.reject(&fleet, &context).await? {
        return Ok(Next::Settled);
    }
    pod.carry_on(&fleet, &context).await
}

/// Before the first pod is started, the addresses and requests of all others must be known.
fn fill_ledger(context: &PodContext) -> Result<(), Failure> {
    if !context.state().ledger().is_filled() {
        let pods = context.view::<Pod>()?.list()?;
        // The fleet has the kubelet: a strong reference would be a circle.
        let fleet = Arc::downgrade(context.state());
        let simulates = move |node: &Node| fleet.upgrade().is_some_and(|fleet| fleet.simulates(node));
        let kubelet = &context.state().settings.kubelet;
        kubelet.read(context.view::<Pod>()?, context.view::<Node>()?, Arc::new(simulates));
        context.state().ledger().fill(pods.iter().map(|pod| &**pod));
    }
    Ok(())
}

/// A pod on a simulated node.
struct PodOnNode<'a> {
    key: &'a Key,
    pod: &'a Pod,
    node: &'a Node,
    account: &'a Account,
}

impl PodOnNode<'_> {
    fn pods(&self) -> Api<Pod> {
        Api::namespaced(self.account.client.clone(), self.namespace())
    }

    fn namespace(&self) -> &str {
        self.key.namespace().unwrap_or_default()
    }

    /// Rejects a new pod that does not fit. Returns whether it has.
    async fn reject(&self, fleet: &Fleet, context: &PodContext) -> Result<bool, Failure> {
        let is_new = self
            .pod
            .status
            .as_ref()
            .is_none_or(|status| status.start_time.is_none() && !plan::is_finished(status));
        if !is_new || self.pod.metadata.deletion_timestamp.is_some() {
            return Ok(false);
        }
        let node = self.node.name_any();
        let rejection = {
            // In one step with the check: no other pod is admitted between.
            let mut ledger = fleet.ledger();
            let has_free_ports = ledger.has_free_ports(&node, self.key, self.pod);
            let used = ledger.used(&node, self.key);
            let rejection = admission::check(self.pod, self.node, &used, has_free_ports);
            if rejection.is_none() {
                ledger.admit(self.key, self.pod);
            }
            rejection
        };
        let Some(rejection) = rejection else { return Ok(false) };
        let status = admission::rejected(self.pod, &rejection, context.wall());
        status::set_if_unchanged(&self.pods(), self.pod, &status).await?;
        self.record(fleet, String::new(), EventType::Warning, &rejection.reason, rejection.message.clone());
        Ok(true)
    }

    /// Plans the next status of an admitted pod, and carries the plan out.
    async fn carry_on(&self, fleet: &Fleet, context: &PodContext) -> Result<Next, Failure> {
        let obstacles = self.obstacles(fleet, context).await?;
        let pending_resize = self.resize(fleet);
        let (place, memory) = self.place(fleet);
        let now = context.wall();
        let workshop = fleet.settings.kubelet.workshop();
        let plan = workshop.simulate(context.world(), self.pod, |simulation| {
            plan::plan(Input {
                simulation,
                place: &place,
                obstacles: &obstacles,
                pending_resize: pending_resize.as_ref(),
                memory: memory.clone(),
                now,
            })
        });
        let Plan { status, wake, events, is_gone, memory, pulled, changes } = plan.await;
        if self.pod.status.as_ref() != Some(&status) {
            status::set_if_unchanged(&self.pods(), self.pod, &status).await?;
        }
        {
            let mut ledger = fleet.ledger();
            ledger.remember(self.key, memory);
            if !pulled.is_empty() {
                ledger.pulled(&self.node.name_any(), pulled);
            }
            if !changes.is_empty() {
                ledger.change_files(&self.node.name_any(), changes);
            }
        }
        for PodEvent { field_path, event_type, reason, message } in events {
            self.record(fleet, field_path, event_type, reason, message);
        }
        if is_gone {
            self.delete().await?;
            return Ok(Next::Settled);
        }
        // Kubernetes: a resize that is deferred is tried again after some minutes, or when the pod changes.
        let retry = pending_resize.filter(|it| it.reason == "Deferred").map(|_| later(now, RESIZE_RETRY));
        let wake = [wake, retry].into_iter().flatten().min();
        let left = wake.map(|at| Duration::try_from(at.duration_since(now)).unwrap_or_default());
        // Not at once: a plan that asks for the present moment must not run in a circle.
        Ok(left.map_or(Next::Settled, |left| Next::CheckAfter(left.max(Duration::from_millis(1)))))
    }

    /// Counts the new requests of a pod that has been resized, if they fit.
    fn resize(&self, fleet: &Fleet) -> Option<PendingResize> {
        let mut ledger = fleet.ledger();
        if !ledger.is_changed(self.key, self.pod) {
            return None;
        }
        let used = ledger.used(&self.node.name_any(), self.key);
        let pending = admission::check_resize(self.pod, self.node, &used);
        if pending.is_none() {
            ledger.admit(self.key, self.pod);
        }
        pending
    }

    fn place(&self, fleet: &Fleet) -> (Place, plan::Memory) {
        let range = machine::pod_range(&fleet.settings, self.node);
        let is_on_host = self.pod.spec.as_ref().and_then(|spec| spec.host_network) == Some(true);
        let is_finished = self.pod.status.as_ref().is_some_and(plan::is_finished);
        let mut ledger = fleet.ledger();
        let needs_ip = !is_on_host && !is_finished;
        let pod_ip = if needs_ip { ledger.address(self.key, range) } else { String::new() };
        let host_ip = machine::internal_ip(&fleet.settings, self.node);
        let images = self.pod.spec.iter().flat_map(|spec| {
            let inits = spec.init_containers.iter().flatten();
            inits.chain(&spec.containers).filter_map(|it| it.image.as_deref())
        });
        let node = self.node.name_any();
        let images = images.filter(|image| ledger.has_image(&node, image));
        let images = images.map(str::to_owned).collect();
        let memory = ledger.memory(self.key);
        let files = Arc::new(ledger.files(&node, &environment::folders_of_node(self.pod)));
        (Place { host_ip, pod_ip, images, files }, memory)
    }

    /// What is missing for a pod that has not been started.
    async fn obstacles(&self, fleet: &Fleet, context: &PodContext) -> Result<Vec<Obstacle>, Failure> {
        if self.has_started() {
            return Ok(Vec::new());
        }
        let (mut found, mut looked, mut missing) = (Vec::new(), BTreeMap::new(), BTreeSet::new());
        for need in obstacles::needs(self.pod) {
            // A container may take each of its variables from the same object: it is read once.
            let look = (need.kind, need.name.clone(), need.keys.is_empty());
            if !looked.contains_key(&look) {
                // First wait, then look: nothing that appears between is missed.
                fleet.wait(need.kind, need.key(self.namespace()), self.key);
                looked.insert(look.clone(), self.find(&need, context).await?);
            }
            let there = looked.get(&look).unwrap_or(&Found::Nothing);
            if let Some(obstacle) = obstacles::obstacle(&need, self.namespace(), there) {
                missing.insert((need.kind, need.name));
                found.push(obstacle);
            }
        }
        for (kind, name, _) in looked.into_keys() {
            let object = (kind, name);
            if !missing.contains(&object) {
                fleet.stop_waiting(kind, Key::new(Some(self.namespace()), &object.1), self.key);
            }
        }
        Ok(found)
    }

    /// Whether all containers have been started once: then nothing is missing any more.
    fn has_started(&self) -> bool {
        let statuses = self.pod.status.as_ref().and_then(|status| status.container_statuses.as_deref());
        let has_id = |it: &k8s_openapi::api::core::v1::ContainerStatus| it.container_id.is_some();
        self.pod.metadata.deletion_timestamp.is_some()
            || statuses.is_some_and(|statuses| !statuses.is_empty() && statuses.iter().all(has_id))
    }

    async fn find(&self, need: &Need, context: &PodContext) -> Result<Found, Failure> {
        let key = need.key(self.namespace());
        let is_there = match need.kind {
            Needed::ConfigMap => context.view::<PartialObjectMeta<ConfigMap>>()?.contains(&key),
            Needed::Secret => context.view::<PartialObjectMeta<Secret>>()?.contains(&key),
            Needed::Claim => {
                let Some(claim) = context.get::<PersistentVolumeClaim>(&key)? else {
                    return Ok(Found::Nothing);
                };
                let phase = claim.status.as_ref().and_then(|status| status.phase.as_deref());
                return Ok(match (phase, claim.meta().deletion_timestamp.is_some()) {
                    (_, true) => Found::Deleted,
                    (Some("Bound"), false) => Found::Object(None),
                    _ => Found::Unbound,
                });
            }
        };
        if !is_there {
            return Ok(Found::Nothing);
        }
        if need.keys.is_empty() {
            return Ok(Found::Object(None));
        }
        // Only the metadata is cached: a kubelet reads what its pods use, and nothing else may see all Secrets.
        let (client, namespace) = (self.account.client.clone(), self.namespace());
        let keys = match need.kind {
            Needed::Secret => {
                let secret = Api::<Secret>::namespaced(client, namespace).get_opt(&need.name).await?;
                secret.map(|it| it.data.unwrap_or_default().into_keys().collect())
            }
            _ => {
                let map = Api::<ConfigMap>::namespaced(client, namespace).get_opt(&need.name).await?;
                map.map(|it| {
                    let binary = it.binary_data.unwrap_or_default().into_keys();
                    it.data.unwrap_or_default().into_keys().chain(binary).collect()
                })
            }
        };
        Ok(keys.map_or(Found::Nothing, |keys| Found::Object(Some(keys))))
    }

    /// Kubernetes: the last step of a graceful deletion, only for this very pod.
    async fn delete(&self) -> Result<(), Failure> {
        let preconditions = Preconditions { uid: self.pod.uid(), resource_version: None };
        let parameters = DeleteParams {
            grace_period_seconds: Some(0),
            preconditions: Some(preconditions),
            ..DeleteParams::default()
        };
        match self.pods().delete(self.key.name(), &parameters).await {
            // Another pod of the same name, or none: this one is gone.
            Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => Ok(()),
            result => result.map(drop).map_err(Failure::from),
        }
    }

    fn record(
        &self,
        fleet: &Fleet,
        field_path: String,
        event_type: EventType,
        reason: &str,
        message: String,
    ) {
        if !fleet.settings.has_events {
            return;
        }
        let regarding = ObjectReference {
            field_path: Some(field_path).filter(|path| !path.is_empty()),
            resource_version: self.pod.resource_version(),
            ..self.pod.object_ref(&())
        };
        self.account.events.record(regarding, event_type, reason, "", message);
    }
}
