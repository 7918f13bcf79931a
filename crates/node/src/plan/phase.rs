//! The phase of a pod, from the states of its containers.

use super::{
    Frame, restart,
    slot::{Role, Slot},
};

pub(super) const PENDING: &str = "Pending";
pub(super) const RUNNING: &str = "Running";
pub(super) const SUCCEEDED: &str = "Succeeded";
pub(super) const FAILED: &str = "Failed";

/// The phase; `is_stopped` if nothing will be restarted any more.
pub(super) fn phase(slots: &[Slot<'_>], frame: &Frame<'_>, is_stopped: bool) -> &'static str {
    let of = |role: Role| slots.iter().filter(move |slot| slot.role == role);
    let has_failed = |slot: &Slot<'_>| {
        let end = slot.ended().or_else(|| slot.last_end().filter(|_| !slot.is_running()));
        end.is_some_and(|end| {
            end.exit_code != 0 && !restart::is_due(frame.pod, slot.container, slot.role, end.exit_code)
        })
    };
    if of(Role::Init).any(has_failed) {
        return FAILED;
    }
    let has_started = of(Role::Regular).any(Slot::has_run);
    let is_initializing = of(Role::Init).any(|slot| !slot.has_succeeded() && !has_started)
        || (!has_started && of(Role::Sidecar).any(|slot| slot.status.started != Some(true) && !is_stopped));
    let is_waiting = of(Role::Regular).any(|slot| !slot.has_run());
    if is_initializing || is_waiting {
        return PENDING;
    }
    if of(Role::Regular).chain(of(Role::Sidecar)).any(Slot::is_running) {
        return RUNNING;
    }
    let is_final = |slot: &Slot<'_>| is_stopped || restart::is_done(frame.pod, slot);
    match of(Role::Regular).all(is_final) {
        false => RUNNING,
        true if of(Role::Regular).all(Slot::has_succeeded) => SUCCEEDED,
        true => FAILED,
    }
}
