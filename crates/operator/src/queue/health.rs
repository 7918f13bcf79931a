//! A controller that is stuck, told from one that has nothing to do.

use super::{Census, InWork};
use std::time::Duration;

/// Keys that wait while a worker is free are taken within microseconds. A minute is no accident.
const UNTAKEN_LIMIT: Duration = Duration::from_secs(60);
/// A reconcile is given up at its deadline, unless it blocks its thread; a busy machine gets this
/// much longer before it looks like that.
const OVERTIME: Duration = Duration::from_secs(30);

/// Who takes keys out of a queue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Duty {
    pub(crate) workers: usize,
    pub(crate) deadline: Duration,
}

/// Why a controller gets nowhere.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Stuck {
    #[error("the reconcile of \"{}\" has run for {:?}, though {deadline:?} is its deadline", work.key, work.age)]
    Reconcile { work: InWork, deadline: Duration },
    #[error("{waiting} keys wait and none was taken for {untaken:?}")]
    Queue { waiting: usize, untaken: Duration },
}

pub(super) fn check(census: &Census, oldest: Option<InWork>, duty: Duty) -> Result<(), Stuck> {
    let deadline = duty.deadline;
    if let Some(work) = oldest.filter(|work| work.age > deadline.saturating_add(OVERTIME)) {
        return Err(Stuck::Reconcile { work, deadline });
    }
    let (waiting, untaken) = (census.background + census.fresh, census.untaken);
    if waiting > 0 && census.in_work < duty.workers && untaken > UNTAKEN_LIMIT {
        return Err(Stuck::Queue { waiting, untaken });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Key;

    #[test]
    fn stuck_is_not_idle_and_not_busy() {
        let duty = Duty { workers: 2, deadline: Duration::from_secs(100) };
        for (told, waiting, in_work, untaken, oldest) in [
            ("", 0, 0, 0, None),
            // Busy, or just begun.
            ("", 5, 2, 99, Some(99)),
            ("", 5, 1, 9, Some(99)),
            // A deadline that is not kept yet, and one that will not be.
            ("", 0, 1, 0, Some(120)),
            (r#"the reconcile of "n/a" has run for 131s, though 100s is its deadline"#, 0, 1, 0, Some(131)),
            ("5 keys wait and none was taken for 61s", 5, 1, 61, Some(61)),
            ("5 keys wait and none was taken for 61s", 5, 0, 61, None),
        ] {
            let census = Census {
                fresh: waiting,
                in_work,
                untaken: Duration::from_secs(untaken),
                ..Census::default()
            };
            let oldest = oldest.map(|age| InWork { key: Key::parse("n/a"), age: Duration::from_secs(age) });
            let found = check(&census, oldest, duty).err().map(|stuck| stuck.to_string());
            assert_eq!(found.unwrap_or_default(), told);
        }
    }
}
