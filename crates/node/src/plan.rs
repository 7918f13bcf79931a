//! The plan of a pod: from its object, its script and the time to its next status, as a kubelet would write it.
//!
//! What a container has done is read from the pod's status, so that a new process goes on where the old one has
//! ended. [`Memory`] holds the rest, which a kubelet forgets too when it restarts: pull attempts and back-offs.
//! What happens at the same moment is one status: a container that starts and ends at once is never seen running.

mod advance;
mod back_off;
mod conditions;
mod course;
mod phase;
mod probe;
mod restart;
mod slot;
mod start;
mod status;
mod stop;
#[cfg(test)]
mod tests;

use crate::{
    shell::{Change, Texts},
    simulation::Simulation,
};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Pod, PodStatus};
use operator::event::EventType;
use slot::Slot;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

pub(crate) use conditions::is_of_kubelet;
pub(crate) use course::{Course, course};
pub(crate) use slot::{Role, roles};

/// All that a plan depends on.
#[derive(Clone, Debug)]
pub(crate) struct Input<'a> {
    pub(crate) simulation: &'a Simulation<'a>,
    pub(crate) place: &'a Place,
    /// What keeps it from starting.
    pub(crate) obstacles: &'a [Obstacle],
    /// Its new requests do not fit: it keeps the old ones.
    pub(crate) pending_resize: Option<&'a PendingResize>,
    pub(crate) memory: Memory,
    pub(crate) now: Timestamp,
}

/// What the node gives a pod.
#[derive(Clone, Debug, Default)]
pub(crate) struct Place {
    pub(crate) host_ip: String,
    pub(crate) pod_ip: String,
    /// The images that it has pulled already.
    pub(crate) images: BTreeSet<String>,
    /// The files in those folders of the node that are volumes of the pod.
    pub(crate) files: Arc<Texts>,
}

/// Something that a pod or one of its containers needs and that is not there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Obstacle {
    /// A volume that cannot be mounted.
    Volume { message: String },
    /// An environment variable without its source.
    Environment { container: String, message: String },
}

impl Obstacle {
    /// The first message for each container.
    fn of_environments(obstacles: &[Obstacle]) -> BTreeMap<&str, &str> {
        let mut problems = BTreeMap::new();
        for obstacle in obstacles {
            if let Obstacle::Environment { container, message } = obstacle {
                problems.entry(container.as_str()).or_insert(message.as_str());
            }
        }
        problems
    }
}

/// Why a resize is not carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PendingResize {
    /// `Infeasible` if it never fits, `Deferred` if it fits when other pods leave.
    pub(crate) reason: &'static str,
    pub(crate) message: String,
}

/// What this process remembers of a pod.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Memory {
    containers: BTreeMap<String, ContainerMemory>,
    /// Messages of events on the pod that have been recorded.
    told: BTreeSet<String>,
}

/// What this process remembers of a container.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct ContainerMemory {
    /// Since when it is being started.
    starting: Option<Timestamp>,
    failed_pull: Option<FailedPull>,
    /// The restarts before its last long run: they do not count for the back-off.
    calm_restarts: i32,
    /// Events of the present run that have been recorded.
    told: BTreeSet<&'static str>,
    /// The files of the node when the present run started.
    files: Arc<Texts>,
    /// So many changes of files in the present run have been carried out.
    changes: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FailedPull {
    failures: i32,
    at: Timestamp,
}

/// What to do for a pod.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) status: PodStatus,
    /// When to plan again if nothing changes.
    pub(crate) wake: Option<Timestamp>,
    pub(crate) events: Vec<PodEvent>,
    /// Everything has ended: the pod can be deleted for good.
    pub(crate) is_gone: bool,
    pub(crate) memory: Memory,
    /// Images that it has pulled.
    pub(crate) pulled: Vec<String>,
    /// The files of the node that its containers have written or deleted.
    pub(crate) changes: Vec<Change>,
}

/// An event on a pod or one of its containers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PodEvent {
    /// `spec.containers{app}`; empty for the pod itself.
    pub(crate) field_path: String,
    pub(crate) event_type: EventType,
    pub(crate) reason: &'static str,
    pub(crate) message: String,
}

/// The unchanging part of a plan.
struct Frame<'a> {
    simulation: &'a Simulation<'a>,
    pod: &'a Pod,
    place: &'a Place,
    obstacles: &'a [Obstacle],
    /// The first problem of each container's environment.
    environment_problems: BTreeMap<&'a str, &'a str>,
    pending_resize: Option<&'a PendingResize>,
    now: Timestamp,
}

/// What a plan collects.
#[derive(Default)]
struct Output {
    events: Vec<PodEvent>,
    wake: Option<Timestamp>,
    pulled: BTreeSet<String>,
    changes: Vec<Change>,
}

/// The next status of a pod on a simulated node.
pub(crate) fn plan(input: Input<'_>) -> Plan {
    let Input { simulation, place, obstacles, pending_resize, memory, now } = input;
    let pod = simulation.pod();
    let is_deleted = pod.metadata.deletion_timestamp.is_some();
    let old = pod.status.clone().unwrap_or_default();
    let mut slots = slot::slots(simulation, &memory);
    if is_finished(&old) && !slots.iter().any(Slot::is_running) {
        let (wake, events, pulled, changes) = (None, Vec::new(), Vec::new(), Vec::new());
        // Nothing of it happens any more: nothing needs to be remembered.
        let memory = Memory::default();
        return Plan { status: old, wake, events, is_gone: is_deleted, memory, pulled, changes };
    }
    let environment_problems = Obstacle::of_environments(obstacles);
    let frame = Frame { simulation, pod, place, obstacles, environment_problems, pending_resize, now };
    let mut out = Output::default();
    let mut told = memory.told;
    let stop = stop::order(&frame, &old);
    let end = match &stop {
        Some(stop) => stop::stop(&mut slots, stop, &frame, &mut out),
        None => advance::run(&mut slots, &frame, &mut out, &mut told),
    };
    if stop.is_none() {
        out.wake_at(stop::deadline(&frame, &old));
    }
    let status = status::status(&slots, &frame, old, end, stop.as_ref());
    let told_deadline = stop.as_ref().filter(|it| it.why == stop::Why::Deadline);
    if told_deadline.is_some() && told.insert(stop::DEADLINE_EXCEEDED.to_owned()) {
        out.tell("", EventType::Normal, stop::DEADLINE_EXCEEDED, stop::DEADLINE_MESSAGE);
    }
    let containers = slots.into_iter().map(|slot| (slot.status.name, slot.memory)).collect();
    Plan {
        status,
        wake: out.wake,
        events: out.events,
        is_gone: is_deleted && end == Progress::Over,
        memory: Memory { containers, told },
        pulled: out.pulled.into_iter().collect(),
        changes: out.changes,
    }
}

/// How far a pod is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Progress {
    /// Its volumes are not mounted: it has no address yet.
    Unmounted,
    Running,
    /// All its containers have ended for good.
    Over,
}

/// Whether a pod has one of the phases that are never left.
pub(crate) fn is_finished(status: &PodStatus) -> bool {
    matches!(status.phase.as_deref(), Some("Succeeded" | "Failed"))
}

/// Times of Kubernetes have whole seconds.
pub(crate) fn whole_second(at: Timestamp) -> Timestamp {
    Timestamp::from_second(at.as_second()).unwrap_or(at)
}

impl Output {
    fn wake_at(&mut self, at: Option<Timestamp>) {
        self.wake = [self.wake, at].into_iter().flatten().min();
    }

    fn tell(
        &mut self,
        field_path: &str,
        event_type: EventType,
        reason: &'static str,
        message: impl Into<String>,
    ) {
        let (field_path, message) = (field_path.to_owned(), message.into());
        self.events.push(PodEvent { field_path, event_type, reason, message });
    }
}

impl Frame<'_> {
    /// Kubernetes: what a container waits for that has not been started.
    fn waiting_reason(&self) -> &'static str {
        let inits = self.pod.spec.as_ref().and_then(|spec| spec.init_containers.as_deref());
        if inits.is_some_and(|inits| !inits.is_empty()) { "PodInitializing" } else { "ContainerCreating" }
    }

    /// Kubernetes: a pod in messages, `name_namespace(uid)`.
    fn pod_label(&self) -> String {
        let meta = &self.pod.metadata;
        let [name, namespace, uid] =
            [&meta.name, &meta.namespace, &meta.uid].map(|it| it.as_deref().unwrap_or_default());
        format!("{name}_{namespace}({uid})")
    }

    fn uid(&self) -> &str {
        self.pod.metadata.uid.as_deref().unwrap_or_default()
    }
}
