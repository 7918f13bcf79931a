//! Leader election: of several managers only the holder of a Lease reconciles.

mod fence;
mod record;

pub use fence::{Fence, NotLeading};

use crate::metrics::Metrics;
use k8s_openapi::api::coordination::v1::Lease;
use kube::{Api, Client, api::PostParams};
use record::{LeaseAction, ObservedLease};
use std::time::Duration;
use world::{Moment, World};

/// The lease to hold, the identity of this process, and the times.
/// ```
/// use operator::{Manager, World, lease::{Election, Timing}};
/// use std::time::Duration;
///
/// # let _ = |world: World, manager: Manager| {
/// // A crashed leader is followed after five seconds instead of fifteen.
/// let timing = Timing {
///     lease: Duration::from_secs(5),
///     renew_deadline: Duration::from_secs(3),
///     retry: Duration::from_millis(500),
/// };
/// manager.elect(Election::new(&world, "operators", "redis").timing(timing))
/// # };
/// ```
#[derive(Clone, Debug)]
pub struct Election {
    /// The namespace of the lease.
    pub namespace: String,
    /// The name of the lease.
    pub name: String,
    /// The holder identity: different for every process, also for two on one host.
    pub identity: String,
    /// How long a term and its pauses are.
    pub timing: Timing,
}

/// The three times of an election. `renew_deadline` is shorter than `lease`: a leader that cannot renew
/// has stopped before another may start.
#[derive(Clone, Copy, Debug)]
pub struct Timing {
    /// How long others wait for a leader that no longer renews (client-go: LeaseDuration).
    pub lease: Duration,
    /// How long a leader continues without a renewal (client-go: RenewDeadline).
    pub renew_deadline: Duration,
    /// The pause between two attempts (client-go: RetryPeriod).
    pub retry: Duration,
}

/// Why a leader has lost its lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LeaseLost {
    /// Another process holds it.
    #[error("another process holds the lease")]
    Taken,
    /// No renewal succeeded in time.
    #[error("the lease could not be renewed in time")]
    NotRenewed,
}

/// A candidate, and after [`Candidate::acquire`] the leader.
#[derive(Debug)]
pub struct Candidate {
    world: World,
    leases: Api<Lease>,
    election: Election,
    observed: Option<ObservedLease>,
    fence: Fence,
    metrics: Metrics,
}

impl Default for Timing {
    fn default() -> Timing {
        // Kubernetes: what its own components use.
        Timing {
            lease: Duration::from_secs(15),
            renew_deadline: Duration::from_secs(10),
            retry: Duration::from_secs(2),
        }
    }
}

/// Pauses are lengthened by up to this share, so that candidates do not all write at once.
const JITTER: f64 = 0.2;

impl Election {
    /// An election for the lease `name` in `namespace`, with a random identity.
    pub fn new(world: &World, namespace: &str, name: &str) -> Election {
        Election {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            identity: identity(world),
            timing: Timing::default(),
        }
    }

    /// Sets the times.
    pub fn timing(self, timing: Timing) -> Election {
        Election { timing, ..self }
    }

    /// Sets the holder identity.
    pub fn identity(self, identity: &str) -> Election {
        Election { identity: identity.to_owned(), ..self }
    }

    /// A candidate that uses `client`. `fence` is open exactly while it leads.
    pub fn candidate(self, world: &World, client: Client, fence: Fence) -> Candidate {
        fence.shut();
        let leases = Api::namespaced(client, &self.namespace);
        let metrics = Metrics::default();
        Candidate { world: world.clone(), leases, election: self, observed: None, fence, metrics }
    }
}

/// A unique name for this process.
pub(crate) fn identity(world: &World) -> String {
    let host = std::env::var("HOSTNAME").unwrap_or_else(|_| "process".to_owned());
    format!("{host}_{}", world.uid())
}

impl Candidate {
    /// Counts renewals that had to read the lease first.
    pub fn metrics(self, metrics: &Metrics) -> Candidate {
        Candidate { metrics: metrics.clone(), ..self }
    }

    /// Waits until this process leads.
    pub async fn acquire(&mut self) {
        while !self.try_acquire().await {
            self.pause().await;
        }
    }

    /// Asks for the lease once. True if this process leads now.
    pub async fn try_acquire(&mut self) -> bool {
        self.attempt().await.unwrap_or_else(|error| {
            tracing::warn!(lease = self.election.name, problem = %error, "the lease cannot be asked for");
            false
        })
    }

    /// Renews the lease until that fails for too long, or another process holds it.
    pub async fn renew(&mut self) -> LeaseLost {
        let Timing { renew_deadline, .. } = self.election.timing;
        let mut renewed = self.world.now();
        loop {
            self.pause().await;
            let begun = self.world.now();
            let left = renew_deadline.saturating_sub(begun.since(renewed));
            let world = self.world.clone();
            match world.timeout(left, self.try_renew()).await {
                Ok(Ok(true)) => renewed = begun,
                Ok(Ok(false)) => return self.lose(LeaseLost::Taken),
                Ok(Err(error)) => tracing::warn!(problem = %error, "the lease was not renewed"),
                Err(_) => {}
            }
            if self.world.now().since(renewed) >= renew_deadline {
                return self.lose(LeaseLost::NotRenewed);
            }
        }
    }

    /// Releases the lease, so that the next leader need not wait until it expires.
    pub async fn release(mut self) {
        self.fence.shut();
        let Some(observed) = self.observed.take() else { return };
        let Some(lease) = record::released(observed.lease, &self.election.identity, self.world.wall()) else {
            return;
        };
        if let Err(error) = self.leases.replace(&self.election.name, &PostParams::default(), &lease).await {
            tracing::debug!(problem = %error, "the lease is not released, and will expire");
        }
    }

    /// Writes the lease as this process has written it last, and reads it first only if it has changed since.
    async fn try_renew(&mut self) -> Result<bool, kube::Error> {
        let (begun, wall) = (self.world.now(), self.world.wall());
        let own = self.observed.as_ref().filter(|it| record::is_held_by(&it.lease, &self.election.identity));
        if let LeaseAction::Replace(lease) = record::plan(&self.election, own, begun, wall) {
            match self.leases.replace(&self.election.name, &PostParams::default(), &lease).await {
                Ok(lease) => {
                    self.wrote(lease, begun);
                    return Ok(true);
                }
                // It was changed or deleted.
                Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => {}
                Err(error) => return Err(error),
            }
        }
        self.metrics.count_slow_renewal(&self.election.name);
        self.attempt().await
    }

    /// Reads the lease and, if this process may hold it, writes it. True if this process leads now.
    async fn attempt(&mut self) -> Result<bool, kube::Error> {
        let begun = self.world.now();
        let found = self.leases.get_opt(&self.election.name).await?;
        self.observe(found, begun);
        let observed = self.observed.as_ref();
        let wall = self.world.wall();
        let written = match record::plan(&self.election, observed, self.world.now(), wall) {
            LeaseAction::Wait => return Ok(false),
            LeaseAction::Create(lease) => self.leases.create(&PostParams::default(), &lease).await,
            LeaseAction::Replace(lease) => {
                self.leases.replace(&self.election.name, &PostParams::default(), &lease).await
            }
        };
        // With a conflict another candidate was faster; the next attempt sees which.
        self.wrote(written?, begun);
        Ok(true)
    }

    /// This process has written the lease, in a request that begun at this time.
    fn wrote(&mut self, lease: Lease, begun: Moment) {
        self.observe(Some(lease), begun);
        // From before the request: others cannot have seen the renewal earlier than that.
        self.fence.open_until(begun + self.election.timing.renew_deadline);
    }

    /// Remembers the lease, and since when it is like this by the clock of this process: the times in the
    /// lease are of other clocks.
    fn observe(&mut self, found: Option<Lease>, now: Moment) {
        self.observed = found.map(|lease| match self.observed.take() {
            Some(observed) if observed.lease.spec == lease.spec => {
                ObservedLease { lease, since: observed.since }
            }
            _ => ObservedLease { lease, since: now },
        });
    }

    fn lose(&self, lost: LeaseLost) -> LeaseLost {
        self.fence.shut();
        lost
    }

    /// The pause between two attempts.
    pub(crate) async fn pause(&self) {
        self.world.sleep(self.world.jitter(self.election.timing.retry, JITTER)).await;
    }
}
