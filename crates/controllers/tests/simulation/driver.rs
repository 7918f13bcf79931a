//! Plays a story: its steps as the administrator, faults and crashes of the control plane between them.

use super::{
    faults::{self, Faults},
    oracle,
};
use futures::future::{Either, select};
use k8s_openapi::api::{
    batch::v1::CronJob,
    core::v1::{Namespace, Node, Pod},
};
use kube::{
    Api, ResourceExt,
    api::{
        ApiResource, DeleteParams, DynamicObject, EvictParams, GroupVersionKind, ListParams, Patch,
        PatchParams, PostParams,
    },
};
use operator::Running;
use serde_json::json;
use std::{pin::pin, time::Duration};
use testkit::{Cluster, CrashPoint, Entry};
use twin::{
    draw::Draw,
    workload::{self, Edit, Kind, Limits, NODES, Policy},
};

/// Where the story happens.
pub(crate) const NAMESPACE: &str = "story";
/// The longest the control plane is down after a crash.
const LONGEST_OUTAGE: usize = 60;
/// After the last fault: longer than the deadlines and back-offs of the stories together.
const AFTERMATH: Duration = Duration::from_secs(240);
/// Control loops write nothing for so long in the end.
const QUIET: Duration = Duration::from_secs(60);

/// How a story ended.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) requests: u64,
    pub(crate) elapsed: Duration,
    /// All requests, as text.
    pub(crate) trace: Vec<String>,
}

/// A cluster whose control plane may crash.
pub(crate) struct Machine {
    pub(crate) cluster: Cluster,
    pub(crate) draw: Draw,
    running: Option<Running>,
    pub(crate) crash: Option<CrashPoint>,
    /// Watches are late, perhaps for ever: the first lists of a manager may not come in time, and then it ends.
    pub(crate) has_late_watches: bool,
}

pub(crate) async fn play(cluster: Cluster, seed: u64) -> Outcome {
    let story = workload::story(seed, 0, Limits::default());
    let started = cluster.world().now();
    let namespace = Namespace {
        metadata: kube::core::ObjectMeta { name: Some(NAMESPACE.to_owned()), ..Default::default() },
        ..Default::default()
    };
    cluster.create(&namespace).await;
    let draw = Draw::new(seed, u64::MAX);
    let mut machine = Machine { cluster, draw, running: None, crash: None, has_late_watches: false };
    machine.start();
    machine.pass(Duration::from_secs(1)).await;
    let mut faults = Faults::default();
    for step in &story.steps {
        faults::change(&mut machine, &mut faults).await;
        machine.carry_out(step).await;
    }
    drop(faults);
    machine.recover().await;
    let mut problems = oracle::problems(&machine.cluster, &story).await;
    problems.extend(machine.writes_at_rest().await);
    assert!(problems.is_empty(), "seed {seed}:\n{story}is not as specified:\n{}", problems.join("\n"));
    let trace = machine.cluster.trace();
    Outcome {
        requests: trace.forgotten + trace.entries.len() as u64,
        elapsed: machine.cluster.world().now().since(started),
        trace: trace.entries.iter().map(ToString::to_string).collect(),
    }
}

impl Machine {
    fn start(&mut self) {
        self.running = Some(self.cluster.control_plane().nodes(NODES).start());
    }

    /// The control plane crashes, and comes back after a while.
    pub(crate) async fn restart(&mut self) {
        self.running = None;
        self.crash = None;
        let seconds = if self.draw.one_in(2) { 0 } else { self.draw.below(LONGEST_OUTAGE) as u64 };
        self.cluster.world().sleep(Duration::from_secs(seconds)).await;
        self.start();
    }

    /// Lets time pass; the control plane may crash on the way.
    async fn pass(&mut self, duration: Duration) {
        let world = self.cluster.world().clone();
        let Some(crash) = self.crash.clone() else { return world.sleep(duration).await };
        let begun = world.now();
        let is_reached = {
            let (sleep, reached) = (pin!(world.sleep(duration)), pin!(crash.reached()));
            matches!(select(sleep, reached).await, Either::Right(_))
        };
        if is_reached {
            self.restart().await;
            world.sleep(duration.saturating_sub(world.now().since(begun))).await;
        }
    }

    async fn carry_out(&mut self, step: &Edit) {
        match step {
            Edit::Create { kind, object, .. } => {
                let object: DynamicObject = serde_json::from_value(object.clone()).unwrap();
                done(self.api(*kind).create(&PostParams::default(), &object).await, step);
            }
            Edit::Patch { kind, name, patch } => {
                let patched =
                    self.api(*kind).patch(name, &PatchParams::default(), &Patch::Merge(patch)).await;
                done(patched, step);
            }
            Edit::Delete { kind, name, policy } => {
                let parameters = match policy {
                    Policy::Background => DeleteParams::background(),
                    Policy::Foreground => DeleteParams::foreground(),
                    Policy::Orphan => DeleteParams::orphan(),
                };
                done(self.api(*kind).delete(name, &parameters).await, step);
            }
            Edit::DeletePod { app, nth } => {
                if let Some(pod) = self.pod(app, *nth).await {
                    done(self.api(Kind::Pod).delete(&pod, &DeleteParams::default()).await, step);
                }
            }
            Edit::EvictPod { app, nth } => {
                if let Some(pod) = self.pod(app, *nth).await {
                    let pods: Api<Pod> = Api::namespaced(self.cluster.client(), NAMESPACE);
                    done(pods.evict(&pod, &EvictParams::default()).await, step);
                }
            }
            Edit::ReleasePod { app, nth } => {
                if let Some(pod) = self.pod(app, *nth).await {
                    let patch = json!({"metadata": {"labels": {workload::APP: null}}});
                    let patch = Patch::Merge(&patch);
                    done(self.api(Kind::Pod).patch(&pod, &PatchParams::default(), &patch).await, step);
                }
            }
            // Only short stories have them, which are played in real time.
            Edit::SetOwner { .. } | Edit::DeleteNamespace => {}
            Edit::StopNode(node) => self.set_node(*node, json!(node::STOPPED)).await,
            Edit::StartNode(node) => self.set_node(*node, json!(null)).await,
            Edit::Wait(seconds) => self.pass(Duration::from_secs(*seconds)).await,
            // Under faults there may be no rest: some seconds are enough for most.
            Edit::Settle => self.pass(Duration::from_secs(10)).await,
        }
    }

    fn api(&self, kind: Kind) -> Api<DynamicObject> {
        let version = kind.api_version();
        let (group, version) = version.split_once('/').unwrap_or(("", version));
        let kind_of = GroupVersionKind::gvk(group, version, kind.name());
        let resource = ApiResource::from_gvk_with_plural(&kind_of, &kind.plural());
        Api::namespaced_with(self.cluster.client(), NAMESPACE, &resource)
    }

    async fn pod(&self, app: &str, nth: usize) -> Option<String> {
        let pods: Api<Pod> = Api::namespaced(self.cluster.client(), NAMESPACE);
        let selected = ListParams::default().labels(&format!("{}={app}", workload::APP));
        let mut names: Vec<String> =
            pods.list(&selected).await.unwrap().items.iter().map(ResourceExt::name_any).collect();
        names.sort();
        (!names.is_empty()).then(|| names[nth % names.len()].clone())
    }

    async fn set_node(&self, index: usize, value: serde_json::Value) {
        let patch = json!({"metadata": {"annotations": {node::NODE: value}}});
        let patched = self.cluster.try_patch::<Node>(None, &format!("node-{index}"), &patch).await;
        // Right after the start there may be no node yet.
        assert!(!matches!(patched, Err(kube::Error::Api(status)) if status.code != 404));
    }

    /// No fault lasts; everything that can end, ends.
    async fn recover(&mut self) {
        self.cluster.lift_faults();
        if self.crash.is_some() || self.has_late_watches || self.draw.one_in(2) {
            self.restart().await;
        }
        for node in 0..NODES {
            self.set_node(node, json!(null)).await;
        }
        for cron_job in self.cluster.list::<CronJob>(NAMESPACE).await {
            let suspended = json!({"spec": {"suspend": true}});
            self.cluster.patch::<CronJob>(NAMESPACE, &cron_job.name_any(), &suspended).await;
        }
        self.cluster.settle().await;
        self.cluster.advance(AFTERMATH).await;
    }

    /// The writes of control loops after everything has been done, unless containers restart again and again.
    async fn writes_at_rest(&self) -> Vec<String> {
        let pods: Vec<Pod> = self.cluster.list(NAMESPACE).await;
        let is_restarting =
            |pod: &Pod| workload::is_restarting(&serde_json::to_value(pod).unwrap_or_default());
        if pods.iter().any(is_restarting) {
            return Vec::new();
        }
        let trace = self.cluster.trace();
        let before = trace.forgotten as usize + trace.entries.len();
        self.cluster.advance(QUIET).await;
        let trace = self.cluster.trace();
        let since = &trace.entries[before.saturating_sub(trace.forgotten as usize)..];
        let is_write = |entry: &&Entry| !matches!(entry.verb, "get" | "list" | "watch");
        // Nodes renew their leases, and try again to pull images.
        let is_of_loop = |entry: &&Entry| !entry.caller.starts_with("system:node:");
        let writes = since.iter().filter(is_write).filter(is_of_loop);
        writes.map(|entry| format!("written at rest: {entry}")).collect()
    }
}

/// Objects that a step names may be gone, or not gone yet; a budget may forbid an eviction.
fn done<T>(result: kube::Result<T>, step: &Edit) {
    if let Err(error) = result {
        let is_harmless =
            matches!(&error, kube::Error::Api(status) if matches!(status.code, 404 | 409 | 429));
        assert!(is_harmless, "{step}: {error}");
    }
}
