//! A control plane of one's own: its clients, its faults, its trace.

use crate::{
    Fault, Held, Injected, Trace,
    doors::Doors,
    settle::{MAX_REQUESTS, Probes},
    wire::Wire,
};
use bytes::Bytes;
use server::{Caller, Config, Exchange, Outbound, Server, SigningKey};
use std::sync::Arc;
use store::{Limits, Memory};
use world::World;

/// A control plane inside a test. Clones are handles on the same one.
#[derive(Debug)]
pub struct Cluster {
    pub(crate) inner: Arc<Inner>,
    /// The first handle prints the trace when its test fails.
    is_first: bool,
}

pub(crate) struct Inner {
    pub(crate) wire: Arc<Wire>,
    pub(crate) probes: Probes,
    pub(crate) admin: kube::Client,
    pub(crate) doors: Arc<Doors>,
    /// PEM of the key that signs tokens: forks know the same tokens.
    pub(crate) signing_key: String,
    pub(crate) max_requests: u64,
}

/// What a cluster is started with.
#[derive(Clone, Debug)]
pub struct Setup {
    /// How much of the past can be watched from; behind it is 410.
    pub window: Limits,
    /// How webhooks are reached; by default through [`Cluster::open_door`].
    pub outbound: Option<Arc<dyn Outbound>>,
    /// More requests within one [`Cluster::settle`] mean that somebody goes round in circles.
    pub max_requests: u64,
}

impl Default for Setup {
    fn default() -> Setup {
        Setup { window: Limits::default(), outbound: None, max_requests: MAX_REQUESTS }
    }
}

impl Setup {
    pub async fn start(self, world: &World) -> Cluster {
        let (_, signing_key) = SigningKey::make().expect("the system gives random numbers");
        let store = Arc::new(Memory::with_limits(self.window));
        Cluster::on(world, store, self, Arc::default(), signing_key).await
    }
}

impl Cluster {
    /// A new, empty cluster.
    pub async fn start(world: &World) -> Cluster {
        Setup::default().start(world).await
    }

    pub(crate) async fn on(
        world: &World,
        store: Arc<Memory>,
        setup: Setup,
        doors: Arc<Doors>,
        signing_key: String,
    ) -> Cluster {
        let outbound = setup.outbound.unwrap_or_else(|| Arc::clone(&doors) as Arc<dyn Outbound>);
        let key = SigningKey::from_pem(&signing_key).expect("the key was made to be one");
        let config = Config { signing_key: Some(key), outbound, ..Config::default() };
        let server = Server::start(world, Arc::clone(&store) as _, config).await;
        let server = server.expect("a store in memory has no way to fail");
        let wire = Arc::new(Wire::new(world, server, store));
        let admin = wire.client(admin());
        let inner = Inner {
            wire,
            probes: Probes::default(),
            admin,
            doors,
            signing_key,
            max_requests: setup.max_requests,
        };
        Cluster { inner: Arc::new(inner), is_first: true }
    }

    pub fn world(&self) -> &World {
        &self.inner.wire.world
    }

    /// A client that may do everything.
    pub fn client(&self) -> kube::Client {
        self.inner.admin.clone()
    }

    /// A client of somebody else; the rules of access decide what it may do.
    pub fn client_as(&self, user: &str, groups: &[&str]) -> kube::Client {
        let groups = groups.iter().map(|group| (*group).to_owned()).collect();
        self.inner.wire.client(Caller::known(user, "", groups))
    }

    /// The server itself, for those who bring a transport of their own. What goes this way meets
    /// no fault and is in no trace.
    pub fn server(&self) -> &Server {
        &self.inner.wire.server
    }

    /// Puts a fault in force.
    pub fn inject(&self, fault: Fault) -> Injected {
        self.inner.wire.faults.inject(fault)
    }

    /// Ends all faults.
    pub fn lift_faults(&self) {
        self.inner.wire.faults.lift_all();
    }

    /// Breaks the connection of every watch of a resource, `*` standing for all; says how many.
    pub fn drop_watches(&self, resource: &str) -> usize {
        self.inner.wire.pending.cut(resource)
    }

    /// Keeps all events of a resource from its watchers, until what comes back is dropped:
    /// caches go stale.
    pub fn hold_watches(&self, resource: &str) -> Held {
        self.inner.wire.pending.hold(resource)
    }

    /// What was asked so far.
    pub fn trace(&self) -> Trace {
        self.inner.wire.recorder.trace()
    }

    /// The latest revision: the resourceVersion of the last write.
    pub async fn revision(&self) -> u64 {
        self.inner.wire.revision().await
    }

    /// Forgets the past: a watch from an earlier version gets 410.
    pub async fn compact(&self) {
        use store::{ReadStore, Store};
        let store = &self.inner.wire.store;
        let revision = store.revision().await.expect("a store in memory has no way to fail");
        store.compact(revision).await.expect("the latest revision can always be the floor");
    }

    /// Lets `answer` speak for the webhooks under this name, which is the host of a URL or
    /// `service.namespace.svc`. It gets what the server sends, and gives a status code and a body.
    pub fn open_door<F, A>(&self, server_name: &str, answer: F)
    where
        F: Fn(Exchange) -> A + Send + Sync + 'static,
        A: Future<Output = (u16, Bytes)> + Send + 'static,
    {
        self.inner.doors.open(server_name, Arc::new(move |exchange| Box::pin(answer(exchange))));
    }
}

fn admin() -> Caller {
    Caller::known("admin", "", vec!["system:masters".to_owned()])
}

impl Clone for Cluster {
    fn clone(&self) -> Cluster {
        Cluster { inner: Arc::clone(&self.inner), is_first: false }
    }
}

impl Drop for Cluster {
    #[expect(clippy::print_stderr, reason = "whoever reads the panic needs the trace beside it")]
    fn drop(&mut self) {
        if self.is_first && std::thread::panicking() {
            eprintln!("what was asked of the cluster:\n{}", self.trace());
        }
    }
}

impl std::fmt::Debug for Inner {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Inner").field("wire", &self.wire).finish_non_exhaustive()
    }
}
