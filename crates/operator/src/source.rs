//! A source of a controller: which objects of a kind it watches, and which of their changes count.

use crate::{
    cache::{Caches, IndexFunction, Scope, Transform, View},
    predicate::Predicate,
    rules::{Declared, Use},
};
use kube::{
    Resource,
    core::{ApiResource, DynamicObject, PartialObjectMeta},
};
use serde::de::DeserializeOwned;
use std::{
    fmt::{self, Debug},
    marker::PhantomData,
};

/// A Rust type into which cached objects are decoded: a [`Kind`], `DynamicObject`, or the metadata of either.
pub trait Cacheable: Clone + Debug + DeserializeOwned + Send + Sync + 'static {}

impl<K> Cacheable for K where K: Clone + Debug + DeserializeOwned + Send + Sync + 'static {}

/// A kind with a Rust type: those of k8s-openapi, and your own with kube's `CustomResource`.
pub trait Kind: Resource<DynamicType = ()> + Cacheable {}

impl<K> Kind for K where K: Resource<DynamicType = ()> + Cacheable {}

/// The objects of a kind to watch, and the predicate that their changes must pass. Start with [`all`] or
/// [`dynamic`].
pub struct Source<K> {
    kind: ApiResource,
    /// `None` is the manager's own.
    cluster: Option<String>,
    scope: Scope,
    is_metadata_only: bool,
    predicate: Option<Predicate>,
    indexes: Vec<(&'static str, IndexFunction)>,
    object: PhantomData<fn() -> K>,
}

/// All objects of a kind, and all their changes.
pub fn all<K: Kind>() -> Source<K> {
    Source::new(ApiResource::erase::<K>(&()))
}

/// [`all`] for a kind that is known only when the program runs. [`Context::view_of`](crate::Context::view_of)
/// and [`Context::get_of`](crate::Context::get_of) read it.
///
/// ```
/// use kube::core::{ApiResource, DynamicObject, GroupVersionKind};
/// use operator::{Context, Controller, Failure, Key, Next, dynamic};
///
/// async fn reconcile(context: Context<ApiResource>, key: Key) -> Result<Next, Failure> {
///     let Some(widget) = context.get_of::<DynamicObject>(context.state(), &key)? else { return Ok(Next::Settled) };
///     println!("{}", widget.data["spec"]);
///     Ok(Next::Settled)
/// }
/// // From a flag, a file or discovery.
/// let widgets = ApiResource::from_gvk(&GroupVersionKind::gvk("example.com", "v1", "Widget"));
/// let controller = Controller::new("widgets", dynamic(&widgets)).reconcile(widgets, reconcile);
/// assert_eq!(controller.declared()[0].kind.plural, "widgets");
/// ```
pub fn dynamic(kind: &ApiResource) -> Source<DynamicObject> {
    Source::new(kind.clone())
}

impl<K: Cacheable> Source<K> {
    /// Adds an index of this kind, for [`View::indexed`]. `values` must depend on nothing but the object. Controllers
    /// may share an index by giving the same function; two functions need two names.
    ///
    /// ```
    /// use k8s_openapi::api::core::v1::{Node, Pod};
    /// use operator::{Context, Controller, Failure, Key, Next, all};
    ///
    /// async fn reconcile(context: Context<()>, node: Key) -> Result<Next, Failure> {
    ///     println!("{} pods", context.view::<Pod>()?.indexed("node", node.name())?.len());
    ///     Ok(Next::Settled)
    /// }
    /// let pods = all::<Pod>().index("node", |pod| pod.spec.iter().filter_map(|it| it.node_name.clone()).collect());
    /// let controller = Controller::new("nodes", all::<Node>()).reads(pods).reconcile((), reconcile);
    /// ```
    pub fn index(
        mut self,
        name: &'static str,
        values: impl Fn(&K) -> Vec<String> + Send + Sync + 'static,
    ) -> Source<K> {
        self.indexes.push((name, IndexFunction::typed(values)));
        self
    }
}

impl<K> Source<K> {
    fn new(kind: ApiResource) -> Source<K> {
        Source {
            kind,
            cluster: None,
            scope: Scope::default(),
            is_metadata_only: false,
            predicate: None,
            indexes: Vec::new(),
            object: PhantomData,
        }
    }

    /// Caches only the metadata: for large or numerous objects.
    pub fn metadata_only(self) -> Source<PartialObjectMeta<K>> {
        let Source { kind, cluster, scope, is_metadata_only: _, predicate, indexes, object: _ } = self;
        Source { kind, cluster, scope, is_metadata_only: true, predicate, indexes, object: PhantomData }
    }

    /// Objects of another cluster, which the manager knows by this name. A reconcile reads and writes them with
    /// [`Context::in_cluster`](crate::Context::in_cluster).
    ///
    /// ```
    /// use k8s_openapi::api::core::v1::{ConfigMap, Secret};
    /// use kube::{Api, Client, api::{Patch, PatchParams}};
    /// use operator::{Context, Controller, Failure, Key, Manager, Next, World, all};
    ///
    /// /// Copies config maps of the manager's cluster to cluster `east`.
    /// async fn copy(context: Context<()>, key: Key) -> Result<Next, Failure> {
    ///     let Some(map) = context.get::<ConfigMap>(&key)? else { return Ok(Next::Settled) };
    ///     let east = context.in_cluster("east")?;
    ///     if east.get::<ConfigMap>(&key)?.is_none_or(|copy| copy.data != map.data) {
    ///         let copy = serde_json::json!({"apiVersion": "v1", "kind": "ConfigMap", "data": map.data});
    ///         let maps: Api<ConfigMap> = east.namespaced(&key);
    ///         maps.patch(key.name(), &PatchParams::apply("copy").force(), &Patch::Apply(&copy)).await?;
    ///     }
    ///     Ok(Next::Settled)
    /// }
    /// fn manager(world: &World, own: Client, east: Client) -> Manager {
    ///     let copies = all::<ConfigMap>().in_cluster("east");
    ///     let same_name = |copy: &ConfigMap| vec![Key::of(copy)];
    ///     let controller = Controller::new("copy", all::<ConfigMap>()).watches(copies, same_name);
    ///     Manager::new("copy", world, own).cluster("east", east).controller(controller.reconcile((), copy))
    /// }
    /// ```
    pub fn in_cluster(mut self, name: &str) -> Source<K> {
        self.cluster = Some(name.to_owned());
        self
    }

    /// Only objects in this namespace. Further calls add namespaces.
    pub fn in_namespace(mut self, namespace: &str) -> Source<K> {
        self.scope = self.scope.in_namespace(namespace);
        self
    }

    /// Only objects whose labels match, as `app=web,tier!=db`.
    pub fn labelled(mut self, selector: &str) -> Source<K> {
        self.scope = self.scope.labelled(selector);
        self
    }

    /// Only objects whose fields match, as `spec.nodeName=node-1`, for fields that the server selects by.
    pub fn with_fields(mut self, selector: &str) -> Source<K> {
        self.scope = self.scope.with_fields(selector);
        self
    }

    /// Does not keep the field at this path: see [`Scope::without`].
    pub fn without(mut self, path: &[&str]) -> Source<K> {
        self.scope = self.scope.without(path);
        self
    }

    /// Changes every object before it is kept: see [`Transform`].
    pub fn transformed(mut self, transform: &Transform) -> Source<K> {
        self.scope = self.scope.transformed(transform);
        self
    }

    /// Only changes that pass `predicate`; with several, they must pass all.
    pub fn when(mut self, predicate: Predicate) -> Source<K> {
        self.predicate = Some(match self.predicate {
            Some(first) => first & predicate,
            None => predicate,
        });
        self
    }

    pub(crate) fn kind(&self) -> &ApiResource {
        &self.kind
    }

    pub(crate) fn cluster(&self) -> Option<&str> {
        self.cluster.as_deref()
    }

    pub(crate) fn predicate(&self) -> Option<Predicate> {
        self.predicate.clone()
    }

    pub(crate) fn declared(&self, uses: Use) -> Declared {
        let namespaces = self.scope.namespaces().into_iter().flatten().collect();
        Declared { cluster: self.cluster.clone(), namespaces, ..Declared::of_kind(&self.kind, uses) }
    }

    pub(crate) fn open(&self, caches: &Caches) -> View<K> {
        let view = caches.open(&self.kind, self.scope.clone(), self.is_metadata_only);
        self.indexes.iter().for_each(|(name, values)| view.add_index(name, values.clone()));
        view
    }
}

impl<K> Debug for Source<K> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Source")
            .field("kind", &self.kind.kind)
            .field("scope", &self.scope)
            .finish_non_exhaustive()
    }
}
