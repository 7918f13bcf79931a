//! Stops the containers of a pod: because it is deleted, too old, or done.

use super::{
    Frame, Output, Progress,
    advance::own_end,
    slot::{Ending, Role, Slot},
};
use crate::{
    simulation::Hook,
    times::{earlier, later},
};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{Pod, PodStatus};
use operator::event::EventType;
use std::time::Duration;

/// Kubernetes: the default of terminationGracePeriodSeconds.
const GRACE: i64 = 30;
/// The exit code after SIGKILL.
pub(super) const KILLED: i32 = 137;
/// The exit code of a process that does not handle SIGTERM.
const TERMINATED: i32 = 143;

pub(super) const DEADLINE_EXCEEDED: &str = "DeadlineExceeded";
pub(super) const DEADLINE_MESSAGE: &str = "Pod was active on the node longer than the specified deadline";

/// Since when a pod is to be stopped, and how long its containers may take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Stop {
    pub(super) at: Timestamp,
    pub(super) grace: Duration,
    pub(super) why: Why,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Why {
    Deleted,
    Deadline,
    /// Its phase says that it is finished: its own containers, or another controller.
    Completed,
}

/// Whether a pod is to be stopped.
pub(super) fn order(frame: &Frame<'_>, status: &PodStatus) -> Option<Stop> {
    let (pod, now) = (frame.pod, frame.now);
    if let Some(deadline) = &pod.metadata.deletion_timestamp {
        let grace = pod.metadata.deletion_grace_period_seconds.unwrap_or(GRACE).max(0);
        let at = earlier(deadline.0, SignedDuration::from_secs(grace));
        // Kubernetes: the deadline of the longest grace periods is the last timestamp.
        let start = status.start_time.as_ref().map_or(at, |time| time.0);
        return Some(Stop { at: at.max(start).min(now), grace: seconds(grace), why: Why::Deleted });
    }
    if let Some(at) = deadline(frame, status).filter(|at| *at <= now) {
        return Some(Stop { at, grace: grace_of(pod), why: Why::Deadline });
    }
    super::is_finished(status).then(|| Stop { at: now, grace: grace_of(pod), why: Why::Completed })
}

/// When a pod has been active for too long.
pub(super) fn deadline(frame: &Frame<'_>, status: &PodStatus) -> Option<Timestamp> {
    let limit = frame.pod.spec.as_ref()?.active_deadline_seconds?;
    let start = status.start_time.as_ref().map_or(super::whole_second(frame.now), |time| time.0);
    start.checked_add(SignedDuration::from_secs(limit)).ok()
}

pub(super) fn grace_of(pod: &Pod) -> Duration {
    seconds(pod.spec.as_ref().and_then(|spec| spec.termination_grace_period_seconds).unwrap_or(GRACE))
}

fn seconds(count: i64) -> Duration {
    Duration::from_secs(u64::try_from(count).unwrap_or_default())
}

/// Stops all containers; sidecars after the others, the last one first.
pub(super) fn stop(slots: &mut [Slot<'_>], stop: &Stop, frame: &Frame<'_>, out: &mut Output) -> Progress {
    let mut turn = stop.at;
    let (sidecars, others): (Vec<_>, Vec<_>) = slots.iter_mut().partition(|slot| slot.role == Role::Sidecar);
    for slot in others {
        turn = turn.max(stop_one(slot, stop, stop.at, frame, out));
    }
    for slot in sidecars.into_iter().rev() {
        turn = turn.max(stop_one(slot, stop, turn, frame, out));
    }
    if slots.iter().any(Slot::is_running) { Progress::Running } else { Progress::Over }
}

/// Stops one container from `turn` on. Returns when it ends.
fn stop_one(
    slot: &mut Slot<'_>,
    stop: &Stop,
    turn: Timestamp,
    frame: &Frame<'_>,
    out: &mut Output,
) -> Timestamp {
    let Some(since) = slot.running_since() else {
        slot.restore_end();
        if slot.waiting().is_none() && slot.ended().is_none() {
            slot.wait(frame.waiting_reason(), None);
        }
        return stop.at;
    };
    let by_itself = own_end(slot, since, frame);
    let left = Duration::try_from(later(stop.at, stop.grace).duration_since(turn)).unwrap_or_default();
    let stopped = ending_after(slot, turn, left, frame);
    let ending = [by_itself, Some(stopped)].into_iter().flatten().min_by_key(|ending| ending.at);
    let ending = ending.expect("a stopped container ends");
    if slot.is_news("stopping") && ending.at >= stop.at {
        slot.tell(out, EventType::Normal, "Killing", format!("Stopping container {}", slot.name()));
    }
    let at = ending.at;
    if at > frame.now {
        out.wake_at(Some(at));
        // Kubernetes: it stays as ready as it was until it ends.
    } else {
        slot.end(ending);
    }
    at
}

/// How a container ends that gets SIGTERM at this time, and SIGKILL after the grace period.
pub(super) fn ending_after(slot: &Slot<'_>, at: Timestamp, grace: Duration, frame: &Frame<'_>) -> Ending {
    let pre_stop = frame.simulation.hook_time(slot.at, Hook::PreStop);
    let takes = pre_stop.saturating_add(slot.part.stop_after.0);
    let code = match slot.part.stop_code {
        _ if takes > grace => KILLED,
        Some(code) => code,
        // Servers handle SIGTERM, the commands of jobs do not.
        None if is_server(slot) => 0,
        None => TERMINATED,
    };
    let reason = if code == 0 { "Completed" } else { "Error" };
    Ending { at: later(at, takes.min(grace)), code, reason, message: None }
}

/// Whether it is meant to run until it is stopped.
fn is_server(slot: &Slot<'_>) -> bool {
    slot.role == Role::Sidecar || (slot.role == Role::Regular && !slot.is_of_job)
}
