//! What a reconcile may use: cached reads, the manager's client, events, time, and state of its own.

use crate::{
    Failure, Key,
    cache::{Caches, View},
    event::{EventTasks, Recorder},
    metrics::Metrics,
    queue::Reason,
    source::{Cacheable, Kind},
};
use k8s_openapi::{ClusterResourceScope, NamespaceResourceScope};
use kube::{Api, Client, Resource, core::ApiResource};
use std::{any::Any, fmt, sync::Arc};
use world::{Timestamp, World};

/// The argument of every reconcile beside the key. Cheap to clone.
pub struct Context<S> {
    inner: Arc<ControllerContext>,
    /// Set for another cluster than the manager's own.
    other: Option<Arc<ClusterAccess>>,
    reason: Reason,
    state: Arc<S>,
}

/// The part of a context that does not depend on the type of the state.
pub(crate) struct ControllerContext {
    pub(crate) controller: String,
    pub(crate) world: World,
    pub(crate) own: ClusterAccess,
    pub(crate) others: Vec<Arc<ClusterAccess>>,
    pub(crate) caches: Caches,
    pub(crate) views: Views,
    pub(crate) wrap: WrapClient,
    pub(crate) event_tasks: EventTasks,
    pub(crate) metrics: Metrics,
}

/// Makes a client as the manager's: fenced, measured, with its writes in the caches.
pub(crate) type WrapClient = Arc<dyn Fn(&Client) -> Client + Send + Sync>;

/// How a controller writes to one cluster.
pub(crate) struct ClusterAccess {
    /// `None` for the manager's own.
    pub(crate) name: Option<String>,
    pub(crate) client: Client,
    pub(crate) recorder: Recorder,
}

/// The views of a controller: a handful, in the order of its declarations.
#[derive(Default)]
pub(crate) struct Views(Vec<OpenView>);

struct OpenView {
    cluster: Option<String>,
    kind: ApiResource,
    /// A `View<K>`.
    view: Box<dyn Any + Send + Sync>,
}

impl<S> Context<S> {
    pub(crate) fn new(inner: Arc<ControllerContext>, state: Arc<S>) -> Context<S> {
        Context { inner, other: None, reason: Reason::Asked, state }
    }

    /// The same context for a reconcile with this reason.
    pub(crate) fn because(&self, reason: Reason) -> Context<S> {
        Context { reason, ..self.clone() }
    }

    /// The same context for another cluster, in which the controller has a source: `get`, `view`, `client`,
    /// `namespaced`, `cluster` and `events` are those of that cluster.
    pub fn in_cluster(&self, name: &str) -> Result<Context<S>, Failure> {
        let other = self.inner.others.iter().find(|other| other.name.as_deref() == Some(name)).cloned();
        let other = other.ok_or_else(|| {
            let message =
                format!("controller \"{}\" has no source in cluster {name:?}", self.inner.controller);
            Failure::terminal("UnknownCluster", message)
        })?;
        Ok(Context { other: Some(other), ..self.clone() })
    }

    /// Why the key is reconciled: to tell a cold start ([`Reason::Initial`]: the object was there when this process
    /// started) from a change. What a reconcile makes of the object must not depend on it: after a crash or a failed
    /// attempt the reason is another one.
    ///
    /// ```
    /// use k8s_openapi::api::core::v1::ConfigMap;
    /// use operator::{Context, Failure, Key, Next, queue::Reason};
    ///
    /// async fn reconcile(context: Context<()>, key: Key) -> Result<Next, Failure> {
    ///     if context.reason() != Reason::Initial {
    ///         println!("{key} has changed");
    ///     }
    ///     Ok(Next::Settled)
    /// }
    /// ```
    pub fn reason(&self) -> Reason {
        self.reason
    }

    fn access(&self) -> &ClusterAccess {
        self.other.as_deref().unwrap_or(&self.inner.own)
    }

    fn cluster_name(&self) -> Option<&str> {
        self.other.as_ref().and_then(|other| other.name.as_deref())
    }

    /// The cached object: never older than what this process has written.
    pub fn get<K: Kind>(&self, key: &Key) -> Result<Option<Arc<K>>, Failure> {
        Ok(self.view::<K>()?.get(key)?)
    }

    /// The cached objects of a kind that the controller has declared.
    pub fn view<K: Kind>(&self) -> Result<View<K>, Failure> {
        self.inner.views.find(self.cluster_name(), |_| true).ok_or_else(|| {
            let kind = K::kind(&());
            self.undeclared(&kind, &format!("all::<{kind}>()"))
        })
    }

    /// [`Context::get`] for a kind that is known only when the program runs.
    pub fn get_of<K: Cacheable>(&self, kind: &ApiResource, key: &Key) -> Result<Option<Arc<K>>, Failure> {
        Ok(self.view_of::<K>(kind)?.get(key)?)
    }

    /// [`Context::view`] for a kind that is known only when the program runs: `K` is `DynamicObject`, or
    /// `PartialObjectMeta<DynamicObject>` if the source is of metadata only.
    pub fn view_of<K: Cacheable>(&self, kind: &ApiResource) -> Result<View<K>, Failure> {
        let is_same = |other: &ApiResource| {
            (&other.group, &other.version, &other.plural) == (&kind.group, &kind.version, &kind.plural)
        };
        let found = self.inner.views.find(self.cluster_name(), is_same);
        found.ok_or_else(|| self.undeclared(&kind.kind, "dynamic(…)"))
    }

    fn undeclared(&self, kind: &str, source: &str) -> Failure {
        let name = &self.inner.controller;
        let message =
            format!("controller \"{name}\" reads {kind} without having declared it: add `.reads({source})`");
        Failure::terminal("UndeclaredKind", message)
    }

    /// The manager's client: its writes are in the caches when they return, an apply that would change nothing
    /// is not sent, and it refuses to write while another process leads.
    pub fn client(&self) -> Client {
        self.access().client.clone()
    }

    /// A client as [`Context::client`] with the permissions of `account`: for controllers that write as several
    /// accounts. Keep the result: each call makes a new one.
    pub fn client_around(&self, account: &Client) -> Client {
        (self.inner.wrap)(account)
    }

    /// The manager's caches: to open and close views of kinds that are known only at run time.
    pub fn caches(&self) -> &Caches {
        &self.inner.caches
    }

    /// The API of a namespaced kind, in the namespace of `key`.
    pub fn namespaced<K>(&self, key: &Key) -> Api<K>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
    {
        match key.namespace() {
            Some(namespace) => Api::namespaced(self.client(), namespace),
            None => Api::default_namespaced(self.client()),
        }
    }

    /// The API of a cluster-scoped kind.
    pub fn cluster<K>(&self) -> Api<K>
    where
        K: Resource<DynamicType = (), Scope = ClusterResourceScope>,
    {
        Api::all(self.client())
    }

    /// Records events on objects.
    pub fn events(&self) -> &Recorder {
        &self.access().recorder
    }

    /// [`Recorder::core_on`] for a component that this manager plays, whose task ends with the manager. Keep the
    /// result: each call makes a new one.
    pub fn core_events_on(&self, client: Client, component: &str, host: &str) -> Recorder {
        self.inner.event_tasks.core_recorder(client, component, host)
    }

    /// The state that the controller was made with.
    pub fn state(&self) -> &S {
        &self.state
    }

    /// The metrics of this process, to which a reconcile may add its own.
    pub fn metrics(&self) -> &Metrics {
        &self.inner.metrics
    }

    /// Time, random numbers and tasks.
    pub fn world(&self) -> &World {
        &self.inner.world
    }

    /// The wall-clock time, for conditions and the like.
    pub fn wall(&self) -> Timestamp {
        self.inner.world.wall()
    }

    /// The name of the controller, which is also its field manager.
    pub fn controller(&self) -> &str {
        &self.inner.controller
    }
}

impl ControllerContext {
    pub(crate) fn access(&self, cluster: Option<&str>) -> Option<&ClusterAccess> {
        let mut all = std::iter::once(&self.own).chain(self.others.iter().map(|other| &**other));
        all.find(|access| access.name.as_deref() == cluster)
    }
}

impl Views {
    pub(crate) fn add<K: Cacheable>(&mut self, cluster: Option<&str>, kind: &ApiResource, view: &View<K>) {
        let (cluster, kind) = (cluster.map(str::to_owned), kind.clone());
        self.0.push(OpenView { cluster, kind, view: Box::new(view.clone()) });
    }

    /// The first view of this type whose kind is as wanted.
    fn find<K: Cacheable>(
        &self,
        cluster: Option<&str>,
        is_wanted: impl Fn(&ApiResource) -> bool,
    ) -> Option<View<K>> {
        let wanted = self.0.iter().filter(|it| it.cluster.as_deref() == cluster && is_wanted(&it.kind));
        wanted.filter_map(|it| it.view.downcast_ref::<View<K>>()).next().cloned()
    }
}

impl<S> Clone for Context<S> {
    fn clone(&self) -> Context<S> {
        let Context { inner, other, reason, state } = self;
        Context { inner: Arc::clone(inner), other: other.clone(), reason: *reason, state: Arc::clone(state) }
    }
}

impl<S> fmt::Debug for Context<S> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Context({})", self.inner.controller)
    }
}
