//! Waits until a cluster is idle.

use crate::Cluster;
use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

/// How often the cluster is checked: virtual time passes only when every task waits.
const FIRST_INTERVAL: Duration = Duration::from_millis(5);
/// The cluster is idle after so many checks in a row without activity.
const QUIET_CHECKS: usize = 3;
/// During a back-off, checks become rarer up to this.
const LONGEST_INTERVAL: Duration = Duration::from_secs(1);
/// The back-offs of clients end well below this.
const TIME_LIMIT: Duration = Duration::from_secs(3600);
/// More requests than this mean an endless loop.
pub(crate) const MAX_REQUESTS: u64 = 50_000;

/// Functions that say whether a component is idle.
#[derive(Default)]
pub(crate) struct IdleChecks(Mutex<Vec<IdleCheck>>);

#[derive(Clone)]
struct IdleCheck {
    name: String,
    is_idle: Arc<dyn Fn() -> bool + Send + Sync>,
}

impl fmt::Debug for IdleChecks {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_list().entries(self.all().iter().map(|check| &check.name)).finish()
    }
}

impl IdleChecks {
    fn all(&self) -> Vec<IdleCheck> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// What changes while a cluster is busy.
#[derive(PartialEq, Eq)]
struct Activity {
    revision: u64,
    requests: u64,
    busy: Vec<String>,
}

impl Cluster {
    /// Adds a component that must be idle before the cluster counts as settled: no key of its queues waits, is
    /// in progress or in back-off. Delayed keys do not count.
    pub fn watch_idle(&self, name: &str, is_idle: impl Fn() -> bool + Send + Sync + 'static) {
        let check = IdleCheck { name: name.to_owned(), is_idle: Arc::new(is_idle) };
        self.inner.idle_checks.0.lock().unwrap_or_else(PoisonError::into_inner).push(check);
    }

    /// Waits until the cluster is idle: no request is pending, nothing is written, and every component of
    /// [`Cluster::watch_idle`] is idle.
    ///
    /// # Panics
    /// If it does not become idle, with the names of what is still busy.
    pub async fn settle(&self) {
        let transport = &self.inner.transport;
        let begun = self.world().now();
        let (first, max_requests) = (transport.recorder.count(), self.inner.setup.max_requests);
        let (mut interval, mut quiet) = (FIRST_INTERVAL, 0);
        let mut before = self.activity().await;
        while quiet < QUIET_CHECKS {
            transport.recorder.sleep_or_overrun(self.world(), interval, first + max_requests).await;
            let now = self.activity().await;
            let (is_still, is_idle) = (now == before, now.busy.is_empty());
            quiet = if is_still && is_idle { quiet + 1 } else { 0 };
            interval =
                if is_still && !is_idle { (interval * 2).min(LONGEST_INTERVAL) } else { FIRST_INTERVAL };
            let (waited, requests) = (self.world().now().since(begun), now.requests - first);
            assert!(
                waited < TIME_LIMIT && requests < max_requests,
                "not settled after {waited:?} and {requests} requests; still busy: {}",
                if is_idle {
                    "the objects, which change all the time".to_owned()
                } else {
                    now.busy.join("; ")
                }
            );
            before = now;
        }
    }

    /// Lets so much time pass, and waits until the cluster is idle.
    pub async fn advance(&self, duration: Duration) {
        self.world().sleep(duration).await;
        self.settle().await;
    }

    async fn activity(&self) -> Activity {
        let transport = &self.inner.transport;
        let mut busy = transport.pending.busy(self.world());
        let idle_checks = self.inner.idle_checks.all().into_iter();
        busy.extend(idle_checks.filter(|check| !(check.is_idle)()).map(|check| check.name));
        busy.sort();
        Activity { revision: transport.revision().await, requests: transport.recorder.count(), busy }
    }
}
