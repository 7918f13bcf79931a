//! Runs a cluster until nothing has anything left to do, and then, where asked, for a while longer.

use crate::Cluster;
use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

/// A look at the cluster comes after this time: in virtual time it passes only when every task waits.
const GLANCE: Duration = Duration::from_millis(5);
/// So many looks in a row must find nothing before the cluster counts as settled.
const QUIET_LOOKS: usize = 3;
/// While somebody waits (a back-off), looks become rarer up to this.
const MAX_GLANCE: Duration = Duration::from_secs(1);
/// Nothing that settles takes longer; back-offs of a client end well below.
const PATIENCE: Duration = Duration::from_secs(3600);
/// A cluster that is asked this often goes round in circles.
pub(crate) const MAX_REQUESTS: u64 = 50_000;

/// Those who say whether they have something to do.
#[derive(Default)]
pub(crate) struct Probes(Mutex<Vec<Probe>>);

#[derive(Clone)]
struct Probe {
    name: String,
    is_idle: Arc<dyn Fn() -> bool + Send + Sync>,
}

impl fmt::Debug for Probes {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_list().entries(self.all().iter().map(|probe| &probe.name)).finish()
    }
}

impl Probes {
    fn all(&self) -> Vec<Probe> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// What can be seen to change.
#[derive(PartialEq, Eq)]
struct Seen {
    revision: u64,
    requests: u64,
    busy: Vec<String>,
}

impl Cluster {
    /// From now on the cluster counts as settled only when `is_idle` says so too: no key that
    /// waits, is in work or in back-off. Timers of later checks do not count.
    pub fn watch_idle(&self, name: &str, is_idle: impl Fn() -> bool + Send + Sync + 'static) {
        let probe = Probe { name: name.to_owned(), is_idle: Arc::new(is_idle) };
        self.inner.probes.0.lock().unwrap_or_else(PoisonError::into_inner).push(probe);
    }

    /// Runs until nothing has anything left to do: no request without an answer, nothing written,
    /// and all that [`Cluster::watch_idle`] was given is idle.
    ///
    /// # Panics
    /// When that does not come to pass, naming what is still busy.
    pub async fn settle(&self) {
        let wire = &self.inner.wire;
        let begun = self.world().now();
        let (first, max_requests) = (wire.recorder.count(), self.inner.max_requests);
        let (mut glance, mut quiet) = (GLANCE, 0);
        let mut before = self.look().await;
        while quiet < QUIET_LOOKS {
            wire.recorder.sleep_or_overrun(self.world(), glance, first + max_requests).await;
            let now = self.look().await;
            let (is_still, is_idle) = (now == before, now.busy.is_empty());
            quiet = if is_still && is_idle { quiet + 1 } else { 0 };
            glance = if is_still && !is_idle { (glance * 2).min(MAX_GLANCE) } else { GLANCE };
            let (waited, asked) = (self.world().now().since(begun), now.requests - first);
            assert!(
                waited < PATIENCE && asked < max_requests,
                "not settled after {waited:?} and {asked} requests; still busy: {}",
                if is_idle {
                    "the objects, which change all the time".to_owned()
                } else {
                    now.busy.join("; ")
                }
            );
            before = now;
        }
    }

    /// Lets so much time pass, and settles.
    pub async fn advance(&self, duration: Duration) {
        self.world().sleep(duration).await;
        self.settle().await;
    }

    async fn look(&self) -> Seen {
        let wire = &self.inner.wire;
        let mut busy = wire.pending.busy(self.world());
        let probes = self.inner.probes.all().into_iter();
        busy.extend(probes.filter(|probe| !(probe.is_idle)()).map(|probe| probe.name));
        busy.sort();
        Seen { revision: wire.revision().await, requests: wire.recorder.count(), busy }
    }
}
