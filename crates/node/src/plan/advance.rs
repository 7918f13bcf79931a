//! Moves the containers of a pod on to the present: starts, runs, ends and restarts.

use super::{
    Frame, Obstacle, Output, Progress, back_off,
    course::Course,
    probe::{self, Health},
    restart,
    slot::{Ending, Role, Slot, finished_at},
    start, stop,
};
use crate::{budget::ending, environment, times::later};
use jiff::Timestamp;
use operator::event::EventType;
use std::{collections::BTreeSet, rc::Rc};

/// A container makes so many steps at one moment: a start, an end, an immediate restart, an end, a back-off.
const STEPS: usize = 8;
/// Kubernetes: so much of a log becomes the termination message of a container that fails.
const MESSAGE_LINES: usize = 80;
/// So many bytes of them.
// Kubernetes: MaxContainerTerminationMessageLogLength.
const MESSAGE_LOG_BYTES: usize = 2048;

/// Moves all containers on.
pub(super) fn run(
    slots: &mut [Slot<'_>],
    frame: &Frame<'_>,
    out: &mut Output,
    told: &mut BTreeSet<String>,
) -> Progress {
    if !slots.iter().any(Slot::has_run) && is_unmounted(frame, out, told) {
        slots.iter_mut().for_each(|slot| slot.wait(frame.waiting_reason(), None));
        return Progress::Unmounted;
    }
    // Twice: what ends in the first round may restart all containers.
    for _ in 0..2 {
        restart::restart_all(slots, frame.now);
        round(slots, frame, out);
    }
    if !is_over(slots, frame) {
        return Progress::Running;
    }
    let at = slots.iter().filter_map(Slot::ended).map(finished_at).max().unwrap_or(frame.now);
    let completed = stop::Stop { at, grace: stop::grace_of(frame.pod), why: stop::Why::Completed };
    stop::stop(slots, &completed, frame, out)
}

fn round(slots: &mut [Slot<'_>], frame: &Frame<'_>, out: &mut Output) {
    let is_initialized = slots.iter().any(|slot| slot.role == Role::Regular && slot.has_run());
    let mut is_blocked = false;
    for slot in slots {
        match slot.role {
            _ if is_blocked => keep_waiting(slot, frame),
            Role::Init if is_initialized => {}
            Role::Init => {
                advance(slot, frame, out);
                is_blocked = !slot.has_succeeded();
            }
            Role::Sidecar => {
                advance(slot, frame, out);
                is_blocked = !is_initialized && slot.status.started != Some(true);
            }
            Role::Regular | Role::Ephemeral => advance(slot, frame, out),
        }
    }
}

/// Whether all regular containers have ended for good, or an init container has failed for good.
fn is_over(slots: &[Slot<'_>], frame: &Frame<'_>) -> bool {
    let has_failed = |slot: &Slot<'_>| {
        slot.role == Role::Init && restart::is_done(frame.pod, slot) && !slot.has_succeeded()
    };
    let mut regular = slots.iter().filter(|slot| slot.role == Role::Regular);
    slots.iter().any(has_failed) || regular.all(|slot| restart::is_done(frame.pod, slot))
}

fn keep_waiting(slot: &mut Slot<'_>, frame: &Frame<'_>) {
    if !slot.has_run() && slot.waiting().is_none() {
        slot.wait(frame.waiting_reason(), None);
    }
}

/// Whether volumes are missing; records an event for each.
fn is_unmounted(frame: &Frame<'_>, out: &mut Output, told: &mut BTreeSet<String>) -> bool {
    let messages: Vec<&String> = frame
        .obstacles
        .iter()
        .filter_map(|it| match it {
            Obstacle::Volume { message } => Some(message),
            Obstacle::Environment { .. } => None,
        })
        .collect();
    for message in &messages {
        if told.insert((*message).clone()) {
            out.tell("", EventType::Warning, "FailedMount", message.as_str());
        }
    }
    !messages.is_empty()
}

/// Moves one container on.
fn advance(slot: &mut Slot<'_>, frame: &Frame<'_>, out: &mut Output) {
    for _ in 0..STEPS {
        let has_moved = if let Some(since) = slot.running_since() {
            end_if_due(slot, since, frame, out)
        } else if let Some(end) = slot.ended() {
            let is_due = restart::is_due(frame.pod, slot.container, slot.role, end.exit_code)
                && !restart::asks_for_all(slot);
            if is_due {
                slot.retire_end();
            }
            is_due
        } else {
            !is_in_back_off(slot, frame, out) && start::start(slot, frame, out)
        };
        if !has_moved {
            break;
        }
    }
    if let Some(since) = slot.running_since() {
        let health = probe::health(slot, since, frame.simulation);
        slot.status.started = Some(health.is_started(frame.now));
        slot.status.ready =
            slot.role != Role::Init && slot.role != Role::Ephemeral && health.is_ready(frame.now);
        tell_of_readiness(slot, &health, frame, out);
        out.wake_at(health.next_change(frame.now));
    }
}

/// Ends a run whose time is over. Returns whether it has ended.
fn end_if_due(slot: &mut Slot<'_>, since: Timestamp, frame: &Frame<'_>, out: &mut Output) -> bool {
    change_files(slot, since, frame, out);
    let by_itself = own_end(slot, since, frame);
    let by_probe = probe::health(slot, since, frame.simulation).kill.and_then(|kill| {
        if by_itself.as_ref().is_some_and(|end| end.at <= kill.at) {
            return None;
        }
        if kill.at > frame.now {
            out.wake_at(Some(kill.first_failure).filter(|at| *at > frame.now));
            let ending = stop::ending_after(slot, kill.at, kill.grace(frame.pod), frame);
            return Some(Ending { at: kill.at, ..ending });
        }
        if slot.is_news("killed by a probe") {
            tell_of_kill(slot, &kill, frame, out);
        }
        Some(stop::ending_after(slot, kill.at, kill.grace(frame.pod), frame))
    });
    let endings = [by_itself, by_probe];
    let Some(ending) = endings.into_iter().flatten().min_by_key(|ending| ending.at) else { return false };
    if ending.at > frame.now {
        out.wake_at(Some(ending.at));
        return false;
    }
    slot.end(ending);
    true
}

/// How a run ends by itself.
pub(super) fn own_end(slot: &Slot<'_>, since: Timestamp, frame: &Frame<'_>) -> Option<Ending> {
    let course = course_of(slot, frame);
    let (after, code) = course.end?;
    let reason = match code {
        _ if course.is_oom_killed => "OOMKilled",
        0 => "Completed",
        _ => "Error",
    };
    let falls_back =
        code != 0 && slot.container.termination_message_policy.as_deref() == Some("FallbackToLogsOnError");
    let last_lines = || {
        let first = course.lines.len().saturating_sub(MESSAGE_LINES);
        let lines = course.lines[first..].iter().filter(|(at, _)| *at <= after);
        let text: String = lines.map(|(_, line)| format!("{line}\n")).collect();
        ending(&text, MESSAGE_LOG_BYTES).to_owned()
    };
    let message = course.message.clone().or_else(|| falls_back.then(last_lines));
    Some(Ending { at: later(since, after), code, reason, message: message.filter(|text| !text.is_empty()) })
}

fn course_of(slot: &Slot<'_>, frame: &Frame<'_>) -> Rc<Course> {
    frame.simulation.course(slot.at, slot.status.restart_count, &slot.memory.files)
}

/// Collects the changes of files of the node that a run has made until now.
fn change_files(slot: &mut Slot<'_>, since: Timestamp, frame: &Frame<'_>, out: &mut Output) {
    if environment::folders_of_node(frame.pod).is_empty() {
        return;
    }
    for change in course_of(slot, frame).changes.iter().skip(slot.memory.changes) {
        let at = later(since, change.0);
        if at > frame.now {
            return out.wake_at(Some(at));
        }
        slot.memory.changes += 1;
        out.changes.push(change.clone());
    }
}

/// Whether a restart must wait.
fn is_in_back_off(slot: &mut Slot<'_>, frame: &Frame<'_>, out: &mut Output) -> bool {
    let Some((due, seconds)) = back_off::restart(slot) else { return false };
    if due <= frame.now {
        return false;
    }
    out.wake_at(Some(due));
    let (name, pod) = (slot.name().to_owned(), frame.pod_label());
    let pause = back_off::text(seconds);
    let message = format!("back-off {pause} restarting failed container={name} pod={pod}");
    slot.wait("CrashLoopBackOff", Some(message));
    if slot.is_news("back-off") {
        let message = format!("Back-off restarting failed container {name} in pod {pod}");
        slot.tell(out, EventType::Warning, "BackOff", message);
    }
    true
}

fn tell_of_kill(slot: &Slot<'_>, kill: &probe::Kill, frame: &Frame<'_>, out: &mut Output) {
    let text = kill.output(&frame.place.pod_ip);
    slot.tell(out, EventType::Warning, "Unhealthy", format!("{} probe failed: {text}", kill.title()));
    let (name, probe) = (slot.name(), kill.probe);
    let is_restarted = restart::is_due(frame.pod, slot.container, slot.role, stop::KILLED);
    let end = if is_restarted { ", will be restarted" } else { "" };
    slot.tell(out, EventType::Normal, "Killing", format!("Container {name} failed {probe} probe{end}"));
}

fn tell_of_readiness(slot: &mut Slot<'_>, health: &Health, frame: &Frame<'_>, out: &mut Output) {
    let Some(failure) = &health.readiness_failure else { return };
    if failure.at <= frame.now && !slot.status.ready && slot.is_news("unready") {
        let text = probe::output(&failure.probe, &frame.place.pod_ip);
        slot.tell(out, EventType::Warning, "Unhealthy", format!("Readiness probe failed: {text}"));
    }
}
