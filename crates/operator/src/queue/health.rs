//! Tells a controller that is stuck from one that has nothing to do.

use super::{InProgress, Stats};
use std::time::Duration;

/// A free worker takes a waiting key within microseconds. After a minute something is wrong.
const UNTAKEN_LIMIT: Duration = Duration::from_secs(60);
/// A reconcile ends at its deadline unless it blocks its thread. On a busy machine that may take this
/// much longer.
const OVERTIME: Duration = Duration::from_secs(30);

/// The workers that take keys out of a queue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WorkerSettings {
    pub(crate) workers: usize,
    pub(crate) deadline: Duration,
}

/// Why a controller makes no progress.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Stuck {
    /// A reconcile has not ended long after its deadline.
    #[error("the reconcile of \"{}\" has run for {:?}, though {deadline:?} is its deadline", work.key, work.age)]
    Reconcile {
        /// Its key, and how long it has run.
        work: InProgress,
        /// How long it may run.
        deadline: Duration,
    },
    /// Workers are free and keys wait, but none is taken.
    #[error("{waiting} keys wait and none was taken for {untaken:?}")]
    Queue {
        /// How many keys wait.
        waiting: usize,
        /// Since when none was taken.
        untaken: Duration,
    },
}

pub(super) fn check(
    stats: &Stats,
    oldest: Option<InProgress>,
    settings: WorkerSettings,
) -> Result<(), Stuck> {
    let WorkerSettings { workers, deadline } = settings;
    if let Some(work) = oldest.filter(|work| work.age > deadline.saturating_add(OVERTIME)) {
        return Err(Stuck::Reconcile { work, deadline });
    }
    let (waiting, untaken) = (stats.background + stats.fresh, stats.untaken);
    if waiting > 0 && stats.in_progress < workers && untaken > UNTAKEN_LIMIT {
        return Err(Stuck::Queue { waiting, untaken });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Key;

    #[test]
    fn idle_and_busy_controllers_are_not_stuck() {
        let settings = WorkerSettings { workers: 2, deadline: Duration::from_secs(100) };
        for (told, waiting, in_progress, untaken, oldest) in [
            ("", 0, 0, 0, None),
            // Busy, or just begun.
            ("", 5, 2, 99, Some(99)),
            ("", 5, 1, 9, Some(99)),
            // A little over the deadline, and far over it.
            ("", 0, 1, 0, Some(120)),
            (r#"the reconcile of "n/a" has run for 131s, though 100s is its deadline"#, 0, 1, 0, Some(131)),
            ("5 keys wait and none was taken for 61s", 5, 1, 61, Some(61)),
            ("5 keys wait and none was taken for 61s", 5, 0, 61, None),
        ] {
            let stats = Stats {
                fresh: waiting,
                in_progress,
                untaken: Duration::from_secs(untaken),
                ..Stats::default()
            };
            let oldest =
                oldest.map(|age| InProgress { key: Key::parse("n/a"), age: Duration::from_secs(age) });
            let found = check(&stats, oldest, settings).err().map(|stuck| stuck.to_string());
            assert_eq!(found.unwrap_or_default(), told);
        }
    }
}
