//! Back-offs of restarts and pulls: 10 seconds, doubled each time, at most five minutes.

use super::slot::{Slot, finished_at};
use crate::times::later;
use jiff::{SignedDuration, Timestamp};

/// Kubernetes: the first pause, for restarts and for pulls.
const FIRST: i64 = 10;
const LONGEST: i64 = 300;
/// Kubernetes: after a run of more than twice the longest pause, the back-off starts anew.
const CALM: SignedDuration = SignedDuration::from_secs(2 * LONGEST);

/// The pause after so many failures: none before the first.
pub(super) fn seconds(failures: i32) -> i64 {
    match u32::try_from(failures) {
        Ok(0) | Err(_) => 0,
        Ok(failures) => FIRST.saturating_mul(1 << (failures - 1).min(10)).min(LONGEST),
    }
}

pub(super) fn pause(failures: i32) -> SignedDuration {
    SignedDuration::from_secs(seconds(failures))
}

/// When a container that has ended may be restarted, and how many seconds after its end that is.
///
/// Kubernetes: the first restart is immediate, the second one after ten seconds.
pub(super) fn restart(slot: &mut Slot<'_>) -> Option<(Timestamp, i64)> {
    let end = slot.last_end()?;
    let finished = finished_at(end);
    let started = end.started_at.as_ref().map_or(finished, |time| time.0);
    if finished.duration_since(started) > CALM {
        slot.memory.calm_restarts = slot.status.restart_count;
    }
    let failures = slot.status.restart_count.saturating_sub(slot.memory.calm_restarts);
    Some((later(finished, pause(failures)), seconds(failures)))
}

/// Go's text of so many seconds: `10s`, `1m20s`, `5m0s`.
pub(super) fn text(seconds: i64) -> String {
    match (seconds / 60, seconds % 60) {
        (0, seconds) => format!("{seconds}s"),
        (minutes, seconds) => format!("{minutes}m{seconds}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_five_minutes() {
        let pauses: Vec<String> = (0..9).map(|failures| text(seconds(failures))).collect();
        assert_eq!(pauses, ["0s", "10s", "20s", "40s", "1m20s", "2m40s", "5m0s", "5m0s", "5m0s"]);
    }
}
