//! The conditions of a pod that a kubelet owns.

use super::{
    Frame, Progress, phase,
    slot::{Role, Slot},
    whole_second,
};
use k8s_openapi::{
    api::core::v1::{PodCondition, PodStatus},
    apimachinery::pkg::apis::meta::v1::Time,
};

/// Kubernetes: the conditions of a kubelet, in the order in which it writes them.
const OWN: [&str; 5] =
    ["PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled"];

/// Kubernetes: only while a resize is not carried out.
const RESIZE_PENDING: &str = "PodResizePending";

/// Whether a condition is the kubelet's own.
pub(crate) fn is_of_kubelet(condition: &str) -> bool {
    condition == RESIZE_PENDING || OWN.contains(&condition)
}

/// What a condition says.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Verdict {
    is_true: bool,
    reason: Option<&'static str>,
    message: Option<String>,
}

/// The conditions of other controllers first, as they are, then the kubelet's.
pub(super) fn conditions(
    slots: &[Slot<'_>],
    frame: &Frame<'_>,
    old: &PodStatus,
    phase: &str,
    progress: Progress,
) -> Vec<PodCondition> {
    let before: Vec<PodCondition> = old.conditions.clone().unwrap_or_default();
    let mut all: Vec<PodCondition> = before.iter().filter(|it| !is_of_kubelet(&it.type_)).cloned().collect();
    if let Some(resize) = frame.pending_resize.filter(|_| progress == Progress::Running) {
        let message = Some(resize.message.clone());
        let verdict = Verdict { is_true: true, reason: Some(resize.reason), message };
        let old = before.iter().find(|it| it.type_ == RESIZE_PENDING);
        all.push(condition(RESIZE_PENDING, verdict, old, frame));
    }
    let has_sandbox = Verdict { is_true: progress == Progress::Running, reason: None, message: None };
    let containers_ready = containers_ready(slots, phase);
    let ready = ready(frame, &all, &containers_ready);
    let scheduled = Verdict { is_true: true, reason: None, message: None };
    let verdicts = [has_sandbox, initialized(slots, phase), ready, containers_ready, scheduled];
    for (name, verdict) in OWN.into_iter().zip(verdicts) {
        let old = before.iter().find(|it| it.type_ == name);
        all.push(condition(name, verdict, old, frame));
    }
    all
}

fn condition(name: &str, verdict: Verdict, old: Option<&PodCondition>, frame: &Frame<'_>) -> PodCondition {
    let status = if verdict.is_true { "True" } else { "False" };
    let since = old.filter(|it| it.status == status).and_then(|it| it.last_transition_time.clone());
    PodCondition {
        type_: name.to_owned(),
        status: status.to_owned(),
        reason: verdict.reason.map(str::to_owned),
        message: verdict.message,
        last_probe_time: None,
        last_transition_time: since.or_else(|| Some(Time(whole_second(frame.now)))),
        observed_generation: frame.pod.metadata.generation,
    }
}

fn initialized(slots: &[Slot<'_>], phase: &str) -> Verdict {
    if phase == phase::SUCCEEDED {
        return Verdict { is_true: true, reason: Some("PodCompleted"), message: None };
    }
    let has_started = slots.iter().any(|slot| slot.role == Role::Regular && slot.has_run());
    let is_incomplete = |slot: &&Slot<'_>| match slot.role {
        Role::Init => !slot.status.ready,
        Role::Sidecar => slot.status.started != Some(true),
        Role::Regular | Role::Ephemeral => false,
    };
    let incomplete: Vec<&str> = slots.iter().filter(is_incomplete).map(Slot::name).collect();
    match has_started || incomplete.is_empty() {
        true => Verdict { is_true: true, reason: None, message: None },
        false => Verdict {
            is_true: false,
            reason: Some("ContainersNotInitialized"),
            // Kubernetes: Go's text of a list.
            message: Some(format!("containers with incomplete status: [{}]", incomplete.join(" "))),
        },
    }
}

fn containers_ready(slots: &[Slot<'_>], phase: &str) -> Verdict {
    let finished = match phase {
        phase::SUCCEEDED => Some("PodCompleted"),
        phase::FAILED => Some("PodFailed"),
        _ => None,
    };
    if finished.is_some() {
        return Verdict { is_true: false, reason: finished, message: None };
    }
    let counts = |slot: &&Slot<'_>| matches!(slot.role, Role::Sidecar | Role::Regular) && !slot.status.ready;
    let unready: Vec<&str> = slots.iter().filter(counts).map(Slot::name).collect();
    match unready.is_empty() {
        true => Verdict { is_true: true, reason: None, message: None },
        false => Verdict {
            is_true: false,
            reason: Some("ContainersNotReady"),
            message: Some(format!("containers with unready status: [{}]", unready.join(" "))),
        },
    }
}

/// As ContainersReady, and all readiness gates must be true.
fn ready(frame: &Frame<'_>, others: &[PodCondition], containers_ready: &Verdict) -> Verdict {
    let gates = frame.pod.spec.iter().flat_map(|spec| spec.readiness_gates.iter().flatten());
    let problem = |gate: &str| match others.iter().find(|it| it.type_ == gate) {
        None => Some(format!("corresponding condition of pod readiness gate \"{gate}\" does not exist.")),
        Some(found) if found.status != "True" => {
            let status = &found.status;
            Some(format!("the status of pod readiness gate \"{gate}\" is not \"True\", but {status}"))
        }
        Some(_) => None,
    };
    let problems: Vec<String> = gates.filter_map(|gate| problem(&gate.condition_type)).collect();
    if !containers_ready.is_true || problems.is_empty() {
        return containers_ready.clone();
    }
    let message = Some(problems.join(", "));
    Verdict { is_true: false, reason: Some("ReadinessGatesNotReady"), message }
}
