//! Leader election: of many managers one works, the one whose name stands in a Lease that it renews.

mod fence;
mod record;

pub use fence::{Fence, NotLeading};

use k8s_openapi::api::coordination::v1::Lease;
use kube::{Api, Client, api::PostParams};
use record::{Move, Seen};
use std::time::Duration;
use world::{Moment, World};

/// Which lease, under which name, and how patiently.
#[derive(Clone, Debug)]
pub struct Election {
    pub namespace: String,
    pub name: String,
    /// Who stands for election: distinct for every process, also for two on one host.
    pub identity: String,
    pub timing: Timing,
}

/// The three times of an election. `renew_deadline` lies below `lease`: who cannot renew has
/// stopped before another may begin.
#[derive(Clone, Copy, Debug)]
pub struct Timing {
    /// How long others leave a leader alone that they no longer hear.
    pub lease: Duration,
    /// How long a leader goes on without a renewal.
    pub renew_deadline: Duration,
    /// The pause between two looks at the lease.
    pub retry: Duration,
}

/// Somebody else leads, or nobody could be asked in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Lost {
    #[error("another process holds the lease")]
    Taken,
    #[error("the lease could not be renewed in time")]
    Silent,
}

/// A candidate, and after [`Candidate::win`] the leader.
#[derive(Debug)]
pub struct Candidate {
    world: World,
    leases: Api<Lease>,
    election: Election,
    seen: Option<Seen>,
    fence: Fence,
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

/// Pauses are lengthened by up to this share, so that candidates do not ask in step.
const JITTER: f64 = 0.2;

impl Election {
    /// An election for `name` in `namespace`, under a name drawn for this process.
    pub fn new(world: &World, namespace: &str, name: &str) -> Election {
        Election {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            identity: identity(world),
            timing: Timing::default(),
        }
    }

    pub fn timing(self, timing: Timing) -> Election {
        Election { timing, ..self }
    }

    pub fn identity(self, identity: &str) -> Election {
        Election { identity: identity.to_owned(), ..self }
    }

    /// A candidate that speaks through `client`. `fence` is open exactly while it leads.
    pub fn candidate(self, world: &World, client: Client, fence: Fence) -> Candidate {
        fence.shut();
        let leases = Api::namespaced(client, &self.namespace);
        Candidate { world: world.clone(), leases, election: self, seen: None, fence }
    }
}

/// A name for this process that no other has.
pub(crate) fn identity(world: &World) -> String {
    let host = std::env::var("HOSTNAME").unwrap_or_else(|_| "process".to_owned());
    format!("{host}_{}", world.uid())
}

impl Candidate {
    /// Waits until this process leads.
    pub async fn win(&mut self) {
        loop {
            match self.attempt().await {
                Ok(true) => return,
                Ok(false) => {}
                Err(error) => {
                    tracing::warn!(lease = self.election.name, problem = %error, "the lease cannot be asked for");
                }
            }
            self.pause().await;
        }
    }

    /// Renews until that fails for too long or somebody else is found in office.
    pub async fn keep(&mut self) -> Lost {
        let Timing { renew_deadline, .. } = self.election.timing;
        let mut renewed = self.world.now();
        loop {
            self.pause().await;
            let begun = self.world.now();
            let left = renew_deadline.saturating_sub(begun.since(renewed));
            let world = self.world.clone();
            match world.timeout(left, self.attempt()).await {
                Ok(Ok(true)) => renewed = begun,
                Ok(Ok(false)) => return self.lose(Lost::Taken),
                Ok(Err(error)) => tracing::warn!(problem = %error, "the lease was not renewed"),
                Err(_) => {}
            }
            if self.world.now().since(renewed) >= renew_deadline {
                return self.lose(Lost::Silent);
            }
        }
    }

    /// Gives the lease back, so that the next one need not wait for its end.
    pub async fn release(mut self) {
        self.fence.shut();
        let Some(seen) = self.seen.take() else { return };
        let Some(lease) = record::released(seen.lease, &self.election.identity, self.world.wall()) else {
            return;
        };
        if let Err(error) = self.leases.replace(&self.election.name, &PostParams::default(), &lease).await {
            tracing::debug!(problem = %error, "the lease ends by itself");
        }
    }

    /// One look at the lease and, where that is right, one write. True if this process leads now.
    async fn attempt(&mut self) -> Result<bool, kube::Error> {
        let begun = self.world.now();
        let found = self.leases.get_opt(&self.election.name).await?;
        self.look(found, begun);
        let seen = self.seen.as_ref();
        let wall = self.world.wall();
        let written = match record::plan(&self.election, seen, self.world.now(), wall) {
            Move::Wait => return Ok(false),
            Move::Create(lease) => self.leases.create(&PostParams::default(), &lease).await,
            Move::Replace(lease) => {
                self.leases.replace(&self.election.name, &PostParams::default(), &lease).await
            }
        };
        match written {
            Ok(lease) => {
                self.look(Some(lease), begun);
                // Counted from before the request: others cannot have seen it earlier.
                self.fence.open_until(begun + self.election.timing.renew_deadline);
                Ok(true)
            }
            // Somebody was faster; who leads is seen at the next look.
            Err(kube::Error::Api(status)) if status.code == 409 => Err(kube::Error::Api(status)),
            Err(error) => Err(error),
        }
    }

    /// Remembers the lease, and when it was first seen like this by the clock of this process:
    /// the times inside it come from other clocks and are not trusted.
    fn look(&mut self, found: Option<Lease>, now: Moment) {
        self.seen = found.map(|lease| match self.seen.take() {
            Some(seen) if seen.lease.spec == lease.spec => Seen { lease, since: seen.since },
            _ => Seen { lease, since: now },
        });
    }

    fn lose(&self, lost: Lost) -> Lost {
        self.fence.shut();
        lost
    }

    async fn pause(&self) {
        self.world.sleep(self.world.jitter(self.election.timing.retry, JITTER)).await;
    }
}
