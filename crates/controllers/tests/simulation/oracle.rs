//! What must be true when nothing is left to do: a list of everything that is not as the specs say.

mod around;
mod jobs;
mod replicas;
mod rollouts;

use super::driver::NAMESPACE;
use k8s_openapi::{
    api::{
        apps::v1::{ControllerRevision, DaemonSet, Deployment, ReplicaSet, StatefulSet},
        batch::v1::{CronJob, Job},
        core::v1::{Endpoints, Node, PersistentVolumeClaim, Pod, ReplicationController, Service},
        discovery::v1::EndpointSlice,
        policy::v1::PodDisruptionBudget,
    },
    apimachinery::pkg::apis::meta::v1::{LabelSelector, OwnerReference},
};
use kube::{Resource, ResourceExt, core::ObjectMeta};
use serde::Serialize;
use serde_json::Value;
use std::{collections::BTreeSet, fmt::Debug};
use testkit::Cluster;
use twin::workload::{APP, NODES, SCRIPT, WorkloadStory};

/// Everything in the namespace of the story.
pub(super) struct State<'a> {
    story: &'a WorkloadStory,
    pods: Vec<Pod>,
    replica_sets: Vec<ReplicaSet>,
    deployments: Vec<Deployment>,
    replication_controllers: Vec<ReplicationController>,
    stateful_sets: Vec<StatefulSet>,
    daemon_sets: Vec<DaemonSet>,
    revisions: Vec<ControllerRevision>,
    claims: Vec<PersistentVolumeClaim>,
    jobs: Vec<Job>,
    cron_jobs: Vec<CronJob>,
    services: Vec<Service>,
    slices: Vec<EndpointSlice>,
    endpoints: Vec<Endpoints>,
    budgets: Vec<PodDisruptionBudget>,
    nodes: Vec<Node>,
}

/// Collects what is wrong.
#[derive(Default)]
pub(super) struct Problems(Vec<String>);

impl Problems {
    fn equal<T: PartialEq + Debug>(&mut self, object: &impl ResourceExt, what: &str, found: T, expected: T) {
        if found != expected {
            self.add(object, format!("{what} is {found:?}, not {expected:?}"));
        }
    }

    fn add(&mut self, object: &impl ResourceExt, problem: impl Into<String>) {
        self.0.push(format!("{}: {}", object.name_any(), problem.into()));
    }
}

pub(super) async fn problems(cluster: &Cluster, story: &WorkloadStory) -> Vec<String> {
    let state = State {
        story,
        pods: cluster.list(NAMESPACE).await,
        replica_sets: cluster.list(NAMESPACE).await,
        deployments: cluster.list(NAMESPACE).await,
        replication_controllers: cluster.list(NAMESPACE).await,
        stateful_sets: cluster.list(NAMESPACE).await,
        daemon_sets: cluster.list(NAMESPACE).await,
        revisions: cluster.list(NAMESPACE).await,
        claims: cluster.list(NAMESPACE).await,
        jobs: cluster.list(NAMESPACE).await,
        cron_jobs: cluster.list(NAMESPACE).await,
        services: cluster.list(NAMESPACE).await,
        slices: cluster.list(NAMESPACE).await,
        endpoints: cluster.list(NAMESPACE).await,
        budgets: cluster.list(NAMESPACE).await,
        nodes: cluster.list(None).await,
    };
    let mut problems = Problems::default();
    if state.nodes.len() != NODES {
        problems.0.push(format!("there are {} nodes", state.nodes.len()));
    }
    owners(&state, &mut problems);
    deletions(&state, &mut problems);
    replicas::check(&state, &mut problems);
    rollouts::check(&state, &mut problems);
    jobs::check(&state, &mut problems);
    around::check(&state, &mut problems);
    problems.0
}

impl State<'_> {
    fn metadata(&self) -> Vec<(&'static str, &ObjectMeta)> {
        fn of<'a, K: Resource>(kind: &'static str, objects: &'a [K]) -> Vec<(&'static str, &'a ObjectMeta)> {
            objects.iter().map(|it| (kind, it.meta())).collect()
        }
        [
            of("Pod", &self.pods),
            of("ReplicaSet", &self.replica_sets),
            of("Deployment", &self.deployments),
            of("ReplicationController", &self.replication_controllers),
            of("StatefulSet", &self.stateful_sets),
            of("DaemonSet", &self.daemon_sets),
            of("ControllerRevision", &self.revisions),
            of("PersistentVolumeClaim", &self.claims),
            of("Job", &self.jobs),
            of("CronJob", &self.cron_jobs),
            of("Service", &self.services),
            of("EndpointSlice", &self.slices),
            of("Endpoints", &self.endpoints),
            of("PodDisruptionBudget", &self.budgets),
        ]
        .concat()
    }

    /// The pods whose controller is this object.
    fn pods_of(&self, owner: &impl Resource) -> Vec<&Pod> {
        self.pods.iter().filter(|pod| is_controlled_by(pod.meta(), owner)).collect()
    }

    /// Those that are neither finished nor being deleted.
    fn active_pods_of(&self, owner: &impl Resource) -> Vec<&Pod> {
        let mut pods = self.pods_of(owner);
        pods.retain(|pod| is_active(pod));
        pods
    }

    fn selected_pods(&self, app: &str) -> Vec<&Pod> {
        self.pods.iter().filter(|pod| pod.labels().get(APP).is_some_and(|it| it == app)).collect()
    }
}

pub(super) fn is_controlled_by(meta: &ObjectMeta, owner: &impl Resource) -> bool {
    let is_it =
        |it: &OwnerReference| it.controller == Some(true) && Some(&it.uid) == owner.meta().uid.as_ref();
    meta.owner_references.iter().flatten().any(is_it)
}

pub(super) fn phase(pod: &Pod) -> &str {
    pod.status.as_ref().and_then(|it| it.phase.as_deref()).unwrap_or_default()
}

pub(super) fn is_active(pod: &Pod) -> bool {
    pod.metadata.deletion_timestamp.is_none() && !matches!(phase(pod), "Succeeded" | "Failed")
}

pub(super) fn is_ready(pod: &Pod) -> bool {
    let conditions = pod.status.iter().flat_map(|it| it.conditions.iter().flatten());
    conditions.into_iter().any(|it| it.type_ == "Ready" && it.status == "True")
}

/// What stories change in templates: the script and the image.
pub(super) fn version(template: &impl Serialize) -> (Value, Value) {
    let template = serde_json::to_value(template).unwrap_or_default();
    let script = template["metadata"]["annotations"][SCRIPT].clone();
    (script, template["spec"]["containers"][0]["image"].clone())
}

pub(super) fn is_healthy(template: &impl Serialize) -> bool {
    twin::workload::is_healthy(&serde_json::to_value(template).unwrap_or_default())
}

/// The workload that a selector of a story names.
pub(super) fn app(selector: Option<&LabelSelector>) -> String {
    let labels = selector.and_then(|it| it.match_labels.as_ref());
    labels.and_then(|it| it.get(APP)).cloned().unwrap_or_default()
}

/// Every owner exists, no deletion is half done, and pods match the selectors of their controllers.
fn owners(state: &State<'_>, problems: &mut Problems) {
    let all = state.metadata();
    let uids: BTreeSet<&str> = all.iter().filter_map(|(_, meta)| meta.uid.as_deref()).collect();
    for (kind, meta) in &all {
        let mut add = |text: String| {
            problems.0.push(format!("{kind} {}: {text}", meta.name.as_deref().unwrap_or_default()));
        };
        let references = || meta.owner_references.iter().flatten();
        for reference in references().filter(|it| !uids.contains(&*it.uid)) {
            add(format!("its owner {} {} does not exist", reference.kind, reference.name));
        }
        if references().filter(|it| it.controller == Some(true)).count() > 1 {
            add("has two controllers".to_owned());
        }
        if meta.deletion_timestamp.is_some() {
            add(format!("is still being deleted, with finalizers {:?}", meta.finalizers));
        }
        let left = ["foregroundDeletion", "orphan"];
        if meta.finalizers.iter().flatten().any(|it| left.contains(&it.as_str())) {
            add(format!("has finalizers {:?}", meta.finalizers));
        }
    }
    for pod in &state.pods {
        let is_of_job = pod.owner_references().iter().any(|it| it.kind == "Job");
        let has_controller = pod.owner_references().iter().any(|it| it.controller == Some(true));
        if has_controller && !is_of_job && !pod.labels().contains_key(APP) {
            problems.add(pod, "does not match the selector of its controller");
        }
    }
}

/// What the story deleted last is gone.
fn deletions(state: &State<'_>, problems: &mut Problems) {
    let all = state.metadata();
    for (kind, name) in state.story.deleted() {
        if all.iter().any(|(its, meta)| *its == kind.name() && meta.name.as_deref() == Some(&name)) {
            problems.0.push(format!("{} {name} was deleted and still exists", kind.name()));
        }
    }
    if state.story.deleted().is_empty() {
        for set in state.replica_sets.iter().filter(|set| set.name_any().starts_with("web-")) {
            if set.owner_references().is_empty() {
                problems.add(set, "lost its Deployment");
            }
        }
    }
}
