//! A cluster inside a test: its clients, its faults, its trace.

use crate::{
    Fault, HeldWatches, Injected, Trace,
    outside::Outside,
    settle::{IdleChecks, MAX_REQUESTS},
    simulated_nodes::SimulatedNodes,
    webhooks::WebhookHandlers,
};
use bytes::Bytes;
use node::Kubelet;
use operator::{Manager, Running};
use server::{Caller, Config, Exchange, Outbound, Server, SigningKey};
use std::sync::{Arc, OnceLock};
use store::{Limits, Memory};
use testing::Transport;
use world::World;

/// The key that signs the tokens of all clusters in tests. It protects nothing. RSA, because its signatures
/// are the same each time: those of ECDSA have random numbers of their own.
pub(crate) const SIGNING_KEY: &str = include_str!("signing_key.pem");

/// A control plane inside a test. Clones share it.
#[derive(Debug)]
pub struct Cluster {
    pub(crate) inner: Arc<Inner>,
    /// The first one tells the story when its test fails.
    is_first: bool,
}

pub(crate) struct Inner {
    pub(crate) transport: Arc<Transport>,
    pub(crate) store: Arc<Memory>,
    pub(crate) idle_checks: IdleChecks,
    pub(crate) admin: kube::Client,
    pub(crate) webhooks: Arc<WebhookHandlers>,
    /// Answers for the simulated nodes.
    pub(crate) kubelet: Kubelet,
    pub(crate) setup: Setup,
    /// The socket for programs outside, once someone asked for it.
    pub(crate) outside: OnceLock<Outside>,
}

/// The settings of a cluster.
///
/// ```
/// use testkit::Setup;
///
/// // A controller that never comes to rest fails the test sooner.
/// let setup = Setup { max_requests: 500, ..Setup::default() };
/// setup.run(|cluster| async move { cluster.settle().await });
/// ```
#[derive(Clone, Debug)]
pub struct Setup {
    /// How much history watches can start from; earlier versions get 410.
    pub window: Limits,
    /// How the server reaches webhooks; by default, those of [`Cluster::handle_webhooks`].
    pub outbound: Option<Arc<dyn Outbound>>,
    /// More requests within one [`Cluster::settle`] mean an endless loop.
    pub max_requests: u64,
}

impl Default for Setup {
    fn default() -> Setup {
        Setup { window: Limits::default(), outbound: None, max_requests: MAX_REQUESTS }
    }
}

impl Setup {
    /// Starts a cluster with these settings.
    pub async fn start(self, world: &World) -> Cluster {
        let store = Arc::new(Memory::with_limits(self.window));
        Cluster::on(world, store, self, Arc::default()).await
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
        webhooks: Arc<WebhookHandlers>,
    ) -> Cluster {
        let outbound = setup.outbound.clone().unwrap_or_else(|| Arc::clone(&webhooks) as Arc<dyn Outbound>);
        let key = SigningKey::from_pem(SIGNING_KEY).expect("the file holds a key");
        let kubelet = Kubelet::default();
        let kubelets = Some(Arc::new(SimulatedNodes::new(world, &kubelet)) as Arc<dyn server::Kubelets>);
        let config = Config { signing_key: Some(key), outbound, kubelets, ..Config::default() };
        let server = Server::start(world, Arc::clone(&store) as _, config).await;
        let server = server.expect("a store in memory does not fail");
        let transport = Arc::new(Transport::new(world, server, Arc::clone(&store) as _));
        let admin = transport.client(administrator("admin"));
        let inner = Inner {
            transport,
            store,
            idle_checks: IdleChecks::default(),
            admin,
            webhooks,
            kubelet,
            setup,
            outside: OnceLock::new(),
        };
        Cluster { inner: Arc::new(inner), is_first: true }
    }

    /// Its time, random numbers and tasks.
    pub fn world(&self) -> &World {
        &self.inner.transport.world
    }

    /// A client that may do everything.
    pub fn client(&self) -> kube::Client {
        self.inner.admin.clone()
    }

    /// A client of another user; RBAC decides what it may do.
    pub fn client_as(&self, user: &str, groups: &[&str]) -> kube::Client {
        let groups = groups.iter().map(|group| (*group).to_owned()).collect();
        self.inner.transport.client(Caller::known(user, "", groups))
    }

    /// Starts a manager: [`Cluster::settle`] waits for its controllers, and the server reaches its webhooks.
    /// To drop the result is a crash.
    ///
    /// ```
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use operator::{Context, Controller, Failure, Key, Manager, Next, all};
    /// # async fn reconcile(_: Context<()>, _: Key) -> Result<Next, Failure> { Ok(Next::Settled) }
    /// # fn controller() -> Controller { Controller::new("copier", all::<ConfigMap>()).reconcile((), reconcile) }
    /// testkit::run(|cluster| async move {
    ///     let client = cluster.client_as("copier", &["system:masters"]);
    ///     let _running = cluster.run(Manager::new("copier", cluster.world(), client).controller(controller()));
    ///     cluster.settle().await;
    /// });
    /// ```
    pub fn run(&self, manager: Manager) -> Running {
        let name = manager.name().to_owned();
        let host = Arc::clone(&self.inner.webhooks);
        let running = manager.hosted(host).start();
        self.watch_idle(&name, running.idle_probe());
        running
    }

    /// The server itself, for tests with a transport of their own. Such requests meet no faults and are not
    /// in the trace.
    pub fn server(&self) -> &Server {
        &self.inner.transport.server
    }

    /// What answers the server for simulated nodes: for tests that start nodes of their own.
    pub fn kubelet(&self) -> &Kubelet {
        &self.inner.kubelet
    }

    /// Adds a fault.
    pub fn inject(&self, fault: Fault) -> Injected {
        self.inner.transport.faults.inject(fault)
    }

    /// Ends all faults.
    pub fn lift_faults(&self) {
        self.inner.transport.faults.lift_all();
    }

    /// Breaks the connections of all watches of a resource, or of all with `*`; returns how many.
    ///
    /// ```
    /// use k8s_openapi::api::core::v1::ConfigMap;
    /// use operator::cache::{Caches, Scope};
    ///
    /// testkit::run(|cluster| async move {
    ///     let caches = Caches::new(cluster.world().clone(), cluster.client());
    ///     let maps = caches.kind::<ConfigMap>(Scope::default());
    ///     maps.synced().await;
    ///     assert_eq!(cluster.drop_watches("configmaps"), 1);
    ///     cluster.apply("{apiVersion: v1, kind: ConfigMap, metadata: {name: later}}").await;
    ///     cluster.settle().await;
    ///     assert!(maps.list().unwrap().iter().any(|map| map.metadata.name.as_deref() == Some("later")));
    /// });
    /// ```
    pub fn drop_watches(&self, resource: &str) -> usize {
        self.inner.transport.pending.disconnect(resource)
    }

    /// Holds back all events of a resource, or of all with `*`, until the result is dropped, so that caches go stale.
    ///
    /// ```
    /// use k8s_openapi::api::core::v1::ConfigMap;
    /// use operator::cache::{Caches, Scope};
    ///
    /// testkit::run(|cluster| async move {
    ///     let caches = Caches::new(cluster.world().clone(), cluster.client());
    ///     let maps = caches.kind::<ConfigMap>(Scope::default().in_namespace("default"));
    ///     maps.synced().await;
    ///     let held = cluster.hold_watches("configmaps");
    ///     cluster.apply("{apiVersion: v1, kind: ConfigMap, metadata: {name: web}}").await;
    ///     cluster.settle().await;
    ///     assert!(!maps.contains(&"default/web".parse().unwrap()), "the cache does not know it yet");
    ///     drop(held);
    ///     cluster.settle().await;
    ///     assert!(maps.contains(&"default/web".parse().unwrap()));
    /// });
    /// ```
    pub fn hold_watches(&self, resource: &str) -> HeldWatches {
        self.inner.transport.pending.hold(resource)
    }

    /// The requests so far.
    pub fn trace(&self) -> Trace {
        self.inner.transport.recorder.trace()
    }

    /// The latest revision: the resourceVersion of the last write.
    pub async fn revision(&self) -> u64 {
        self.inner.transport.revision().await
    }

    /// Compacts the store: watches from an earlier version get 410.
    pub async fn compact(&self) {
        use store::{ReadStore, Store};
        let store = &self.inner.store;
        let revision = store.revision().await.expect("a store in memory does not fail");
        store.compact(revision).await.expect("the latest revision can be compacted");
    }

    /// Calls `answer` for the webhooks with this server name, which is the host of a URL or
    /// `service.namespace.svc`. It gets the request, and returns a status code and a body.
    pub fn handle_webhooks<F, A>(&self, server_name: &str, answer: F)
    where
        F: Fn(Exchange) -> A + Send + Sync + 'static,
        A: Future<Output = (u16, Bytes)> + Send + 'static,
    {
        self.inner.webhooks.insert(server_name, Arc::new(move |exchange| Box::pin(answer(exchange))));
    }
}

/// A user who may do everything.
pub(crate) fn administrator(name: &str) -> Caller {
    Caller::known(name, "", vec!["system:masters".to_owned()])
}

impl Clone for Cluster {
    fn clone(&self) -> Cluster {
        Cluster { inner: Arc::clone(&self.inner), is_first: false }
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if self.is_first && std::thread::panicking() {
            self.tell();
        }
    }
}

impl std::fmt::Debug for Inner {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Inner").field("transport", &self.transport).finish_non_exhaustive()
    }
}
