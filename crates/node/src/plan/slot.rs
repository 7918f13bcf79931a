//! A container of a pod with its status, its part of the script and what is remembered of it.

use super::{ContainerMemory, Frame, Memory, Output, whole_second};
use crate::{image, script::Part, simulation::Simulation};
use jiff::Timestamp;
use k8s_openapi::{
    api::core::v1::{
        Container, ContainerState, ContainerStateRunning, ContainerStateTerminated, ContainerStateWaiting,
        ContainerStatus, Pod, PodStatus,
    },
    apimachinery::pkg::apis::meta::v1::Time,
};
use operator::event::EventType;
use std::{borrow::Cow, collections::BTreeMap};

/// Kubernetes: the reason of containers that a rule of another one restarts.
pub(super) const RESTARTING_ALL: &str = "RestartingAllContainers";

pub(super) struct Slot<'a> {
    /// Its place among the containers of the pod.
    pub(super) at: usize,
    pub(super) container: &'a Container,
    pub(super) role: Role,
    /// Whether the pod is to end: its restart policy is not `Always`.
    pub(super) is_of_job: bool,
    pub(super) part: &'a Part,
    pub(super) status: ContainerStatus,
    pub(super) memory: ContainerMemory,
}

/// What a container is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// Must end well before the next container starts.
    Init,
    /// An init container that is always restarted and runs beside the others.
    Sidecar,
    Regular,
    Ephemeral,
}

/// How a container ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Ending {
    pub(super) at: Timestamp,
    pub(super) code: i32,
    pub(super) reason: &'static str,
    pub(super) message: Option<String>,
}

/// The containers of a pod, in the order in which they start.
pub(crate) fn roles(pod: &Pod) -> Vec<(Cow<'_, Container>, Role)> {
    let Some(spec) = &pod.spec else { return Vec::new() };
    let inits = spec.init_containers.iter().flatten().map(|it| {
        let is_sidecar = it.restart_policy.as_deref() == Some("Always");
        (Cow::Borrowed(it), if is_sidecar { Role::Sidecar } else { Role::Init })
    });
    let regular = spec.containers.iter().map(|it| (Cow::Borrowed(it), Role::Regular));
    let ephemeral = spec.ephemeral_containers.iter().flatten().map(|it| {
        let container = Container {
            name: it.name.clone(),
            image: it.image.clone(),
            command: it.command.clone(),
            args: it.args.clone(),
            stdin: it.stdin,
            tty: it.tty,
            image_pull_policy: it.image_pull_policy.clone(),
            ..Container::default()
        };
        (Cow::Owned(container), Role::Ephemeral)
    });
    inits.chain(regular).chain(ephemeral).collect()
}

pub(super) fn slots<'a>(simulation: &'a Simulation<'_>, memory: &Memory) -> Vec<Slot<'a>> {
    let pod = simulation.pod();
    let status = pod.status.as_ref();
    let by_name = |list: fn(&PodStatus) -> &Option<Vec<ContainerStatus>>| {
        let all = status.into_iter().flat_map(move |status| list(status).iter().flatten());
        // Of several, the first one counts.
        all.rev().map(|it| (it.name.as_str(), it)).collect::<BTreeMap<_, _>>()
    };
    let inits = by_name(|status| &status.init_container_statuses);
    let regular = by_name(|status| &status.container_statuses);
    let ephemeral = by_name(|status| &status.ephemeral_container_statuses);
    let policy = pod.spec.as_ref().and_then(|spec| spec.restart_policy.as_deref());
    let is_of_job = matches!(policy, Some("OnFailure" | "Never"));
    let slot = |at: usize| {
        let (container, role) = (simulation.container(at), simulation.role(at));
        let name = container.name.as_str();
        let statuses = match role {
            Role::Init | Role::Sidecar => &inits,
            Role::Regular => &regular,
            Role::Ephemeral => &ephemeral,
        };
        let status = statuses.get(name).map(|status| (*status).clone());
        let mut status = status.unwrap_or_else(|| ContainerStatus {
            name: name.to_owned(),
            image: container.image.clone().unwrap_or_default(),
            ..ContainerStatus::default()
        });
        // Fewer would be restarts without a back-off.
        status.restart_count = status.restart_count.max(0);
        let memory = memory.containers.get(name).cloned().unwrap_or_default();
        Slot { at, part: simulation.part(name), container, role, is_of_job, status, memory }
    };
    (0..simulation.len()).map(slot).collect()
}

impl Slot<'_> {
    pub(super) fn name(&self) -> &str {
        &self.container.name
    }

    pub(super) fn image(&self) -> &str {
        self.container.image.as_deref().unwrap_or_default()
    }

    /// Since when it runs.
    pub(super) fn running_since(&self) -> Option<Timestamp> {
        let running = self.status.state.as_ref()?.running.as_ref()?;
        Some(running.started_at.as_ref().map_or(Timestamp::UNIX_EPOCH, |time| time.0))
    }

    pub(super) fn is_running(&self) -> bool {
        self.running_since().is_some()
    }

    /// How it has ended, if it does not run and is not about to be restarted.
    pub(super) fn ended(&self) -> Option<&ContainerStateTerminated> {
        self.status.state.as_ref()?.terminated.as_ref()
    }

    pub(super) fn last_end(&self) -> Option<&ContainerStateTerminated> {
        self.status.last_state.as_ref()?.terminated.as_ref()
    }

    pub(super) fn waiting(&self) -> Option<&ContainerStateWaiting> {
        self.status.state.as_ref()?.waiting.as_ref()
    }

    /// Whether it has been started since all containers were restarted last.
    pub(super) fn has_run(&self) -> bool {
        let restarts_all = self.waiting().is_some_and(|it| it.reason.as_deref() == Some(RESTARTING_ALL));
        self.is_running() || self.ended().is_some() || (self.last_end().is_some() && !restarts_all)
    }

    pub(super) fn has_succeeded(&self) -> bool {
        self.ended().is_some_and(|end| end.exit_code == 0)
    }

    pub(super) fn wait(&mut self, reason: &str, message: Option<String>) {
        let waiting = ContainerStateWaiting { reason: Some(reason.to_owned()), message };
        self.status.state = Some(ContainerState { waiting: Some(waiting), ..ContainerState::default() });
        (self.status.ready, self.status.started) = (false, Some(false));
    }

    /// Starts its next run.
    pub(super) fn start(&mut self, frame: &Frame<'_>) {
        if self.last_end().is_some() {
            self.status.restart_count = self.status.restart_count.saturating_add(1);
        }
        let started_at = Some(Time(whole_second(frame.now)));
        let running = Some(ContainerStateRunning { started_at });
        self.status.state = Some(ContainerState { running, ..ContainerState::default() });
        let id = image::container_id(frame.uid(), self.name(), self.status.restart_count);
        self.status.container_id = Some(id);
        self.status.image = image::full_name(self.image());
        self.status.image_id = image::id(self.image());
        self.memory.starting = None;
        self.memory.failed_pull = None;
        self.memory.told.clear();
    }

    pub(super) fn end(&mut self, ending: Ending) {
        let started_at = self.running_since().map(Time);
        let terminated = ContainerStateTerminated {
            exit_code: ending.code,
            reason: Some(ending.reason.to_owned()),
            message: ending.message,
            started_at,
            finished_at: Some(Time(whole_second(ending.at))),
            container_id: self.status.container_id.clone(),
            signal: None,
        };
        self.status.state =
            Some(ContainerState { terminated: Some(terminated), ..ContainerState::default() });
        self.status.ready = self.role == Role::Init && ending.code == 0;
        self.status.started = Some(false);
    }

    /// Makes its end the last one, so that it can be restarted.
    pub(super) fn retire_end(&mut self) {
        if self.ended().is_some() {
            self.status.last_state = self.status.state.take();
        }
    }

    /// Makes its last end the present one: it is not restarted any more.
    pub(super) fn restore_end(&mut self) {
        if !self.is_running() && self.ended().is_none() && self.last_end().is_some() {
            self.status.state = self.status.last_state.take();
            self.status.ready = self.role == Role::Init && self.has_succeeded();
        }
    }

    pub(super) fn field_path(&self) -> String {
        let list = match self.role {
            Role::Init | Role::Sidecar => "initContainers",
            Role::Regular => "containers",
            Role::Ephemeral => "ephemeralContainers",
        };
        format!("spec.{list}{{{}}}", self.name())
    }

    pub(super) fn tell(
        &self,
        out: &mut Output,
        event_type: EventType,
        reason: &'static str,
        message: String,
    ) {
        out.tell(&self.field_path(), event_type, reason, message);
    }

    /// Whether this has not been recorded in the present run; from now on it has.
    pub(super) fn is_news(&mut self, what: &'static str) -> bool {
        self.memory.told.insert(what)
    }
}

/// When a container has finished.
pub(super) fn finished_at(end: &ContainerStateTerminated) -> Timestamp {
    end.finished_at.as_ref().map_or(Timestamp::UNIX_EPOCH, |time| time.0)
}
