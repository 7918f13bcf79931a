//! Starts a container: its image, its configuration, its start.

use super::{FailedPull, Frame, Output, back_off, slot::Slot};
use crate::{
    environment,
    image::{self, PullProblem},
    script::ImagePull,
    simulation::Hook,
    times::later,
};
use jiff::{SignedDuration, Timestamp};
use operator::event::EventType;
use std::{sync::Arc, time::Duration};

/// How long ErrImagePull is shown before ImagePullBackOff.
const SHOWS_PULL_ERROR: SignedDuration = SignedDuration::from_secs(1);

/// Starts a container if nothing is in the way. Returns whether it runs now.
pub(super) fn start(slot: &mut Slot<'_>, frame: &Frame<'_>, out: &mut Output) -> bool {
    let problem = match slot.part.image_pull {
        ImagePull::Auto => image::problem(slot.image()),
        ImagePull::Fail => Some(image::absent(slot.image())),
        ImagePull::Succeed => None,
    };
    match problem {
        Some(PullProblem::InvalidName(message)) => {
            refuse_name(slot, message, out);
            return false;
        }
        Some(PullProblem::Absent(message)) => {
            fail_pull(slot, &message, frame, out);
            return false;
        }
        None => {}
    }
    if let Some(message) = configuration_problem(slot, frame) {
        slot.wait("CreateContainerConfigError", Some(message.clone()));
        if slot.is_news("no configuration") {
            slot.tell(out, EventType::Warning, "Failed", format!("Error: {message}"));
        }
        return false;
    }
    let takes = slot.part.start_after.0.saturating_add(frame.simulation.hook_time(slot.at, Hook::PostStart));
    let due = later(*slot.memory.starting.get_or_insert(frame.now), takes);
    tell_of_pull(slot, frame, out, takes);
    if due > frame.now {
        out.wake_at(Some(due));
        slot.wait(frame.waiting_reason(), None);
        return false;
    }
    slot.start(frame);
    slot.memory.files = Arc::clone(&frame.place.files);
    if !out.changes.is_empty() {
        environment::apply(Arc::make_mut(&mut slot.memory.files), out.changes.iter().cloned());
    }
    slot.memory.changes = 0;
    slot.tell(out, EventType::Normal, "Created", "Container created".to_owned());
    slot.tell(out, EventType::Normal, "Started", "Container started".to_owned());
    true
}

fn configuration_problem(slot: &Slot<'_>, frame: &Frame<'_>) -> Option<String> {
    let missing = || frame.environment_problems.get(slot.name()).copied();
    frame.simulation.script_problem().or_else(missing).map(str::to_owned)
}

fn refuse_name(slot: &mut Slot<'_>, message: String, out: &mut Output) {
    slot.wait("InvalidImageName", Some(message.clone()));
    if slot.is_news("invalid image") {
        slot.tell(out, EventType::Warning, "InspectFailed", message);
        slot.tell(out, EventType::Warning, "Failed", "Error: InvalidImageName".to_owned());
    }
}

/// Tries to pull, shows the error, and waits for the next attempt.
fn fail_pull(slot: &mut Slot<'_>, message: &str, frame: &Frame<'_>, out: &mut Output) {
    let image = slot.image().to_owned();
    let next_attempt = |pull: FailedPull| later(pull.at, back_off::pause(pull.failures));
    let pull = match slot.memory.failed_pull {
        Some(pull) if frame.now < next_attempt(pull) => pull,
        earlier => {
            let failures = earlier.map_or(0, |pull| pull.failures).saturating_add(1);
            slot.tell(out, EventType::Normal, "Pulling", format!("Pulling image \"{image}\""));
            slot.tell(
                out,
                EventType::Warning,
                "Failed",
                format!("Failed to pull image \"{image}\": {message}"),
            );
            slot.tell(out, EventType::Warning, "Failed", "Error: ErrImagePull".to_owned());
            slot.memory.told.remove("pull back-off");
            let pull = FailedPull { failures, at: frame.now };
            slot.memory.failed_pull = Some(pull);
            pull
        }
    };
    let shown_until: Timestamp = later(pull.at, SHOWS_PULL_ERROR);
    if frame.now < shown_until {
        slot.wait("ErrImagePull", Some(message.to_owned()));
        out.wake_at(Some(shown_until));
        return;
    }
    let text = format!("Back-off pulling image \"{image}\"");
    slot.wait("ImagePullBackOff", Some(format!("{text}: ErrImagePull: {message}")));
    if slot.is_news("pull back-off") {
        slot.tell(out, EventType::Normal, "BackOff", text);
        slot.tell(out, EventType::Warning, "Failed", "Error: ImagePullBackOff".to_owned());
    }
    out.wake_at(Some(next_attempt(pull)));
}

/// Records that the image is pulled, or is there already.
fn tell_of_pull(slot: &mut Slot<'_>, frame: &Frame<'_>, out: &mut Output, takes: Duration) {
    let image = slot.image().to_owned();
    let is_present = frame.place.images.contains(&image) || out.pulled.contains(&image);
    let is_pulled = match slot.container.image_pull_policy.as_deref() {
        Some("Always") => true,
        Some("Never") => false,
        _ => !is_present,
    };
    let is_done = slot.memory.starting.is_none_or(|at| later(at, takes) <= frame.now);
    if is_pulled && slot.is_news("pulling") {
        slot.tell(out, EventType::Normal, "Pulling", format!("Pulling image \"{image}\""));
    }
    if !is_done {
        return;
    }
    let message = match is_pulled {
        true => {
            let seconds = i64::try_from(takes.as_secs()).unwrap_or(i64::MAX);
            let (time, bytes) = (back_off::text(seconds), image::bytes(&image));
            format!(
                "Successfully pulled image \"{image}\" in {time} ({time} including waiting). Image size: {bytes} bytes."
            )
        }
        false => {
            format!("Container image \"{image}\" already present on machine and can be accessed by the pod")
        }
    };
    slot.tell(out, EventType::Normal, "Pulled", message);
    if !is_present {
        out.pulled.insert(image);
    }
}
