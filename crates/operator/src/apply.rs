//! Server-side apply of one object, or of all children of an owner.
//!
//! The children of a set are applied in the order of their dependencies; then children that are no longer in
//! the set are pruned. The kinds of a set are recorded in an annotation of its owner before the first
//! object of a kind is applied, so that neither a crash nor a new version of the program forgets a kind
//! that has left the set.

mod error;

pub use error::Error;

use crate::{
    client::{self, CachedRead, OnlyIfAbsent},
    name,
    owner::{self, OwnerError},
    prune::{self, MemberKind, Pruned},
    retry,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::{
    Api, Client, Resource,
    api::{Patch, PatchParams},
    core::{ApiResource, DynamicObject, ObjectMeta, PartialObjectMeta, Status},
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};
use std::{borrow::Cow, collections::BTreeSet, fmt::Debug};

/// The label of every child; its value is unique to the owner and the manager.
pub const SET_LABEL: &str = "setpoint.dev/set";
/// The domain of the annotation on the owner, which is named after the manager.
const DOMAIN: &str = "setpoint.dev";

/// Metadata that the server sets: applying it would be refused, or make us its owner.
const SERVER_WRITTEN: &[&str] = &[
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "generation",
    "managedFields",
    "resourceVersion",
    "selfLink",
    "uid",
];

/// Whether to take over fields that another manager has set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Force {
    /// A field that another manager has set to another value is a conflict.
    No,
    /// The field is overwritten. Right for fields that belong to this controller by design.
    Yes,
}

/// The children that an owner should have, of any kinds.
///
/// ```
/// use k8s_openapi::api::core::v1::{ConfigMap, Secret};
/// use operator::apply::{Force, Set};
///
/// testkit::run(|cluster| async move {
///     cluster.apply("{apiVersion: v1, kind: ConfigMap, metadata: {name: web}}").await;
///     for names in [&["user", "password"][..], &["user"]] {
///         let web: ConfigMap = cluster.get("default", "web").await;
///         let mut set = Set::of(&web, "web.example.com").unwrap();
///         for name in names {
///             let mut secret = Secret::default();
///             secret.metadata.name = Some((*name).to_owned());
///             set.add(secret).unwrap();
///         }
///         // A reconcile has a client that writes only what differs: `context.client()`.
///         set.apply(&cluster.client(), Force::No).await.unwrap();
///         assert_eq!(cluster.list::<Secret>("default").await.len(), names.len(), "the others are pruned");
///     }
/// });
/// ```
#[derive(Debug)]
pub struct Set<'a, O: Resource> {
    owner: &'a O,
    owner_kind: ApiResource,
    reference: OwnerReference,
    manager: &'a str,
    adopts: bool,
    children: Vec<Child>,
}

#[derive(Debug)]
struct Child {
    kind: MemberKind,
    kind_name: String,
    namespace: Option<String>,
    name: String,
    body: Value,
}

/// What [`Set::apply`] did.
#[derive(Debug)]
pub struct Applied {
    /// The children after the apply, in the order in which they were applied. Those that did not have to be
    /// written are without their managed fields, as the cache has them.
    pub children: Vec<DynamicObject>,
    /// The objects that had left the set.
    pub pruned: Pruned,
}

/// Applies one object. `manager` is the name of the controller, and must never change.
pub async fn object<K>(api: &Api<K>, object: &K, manager: &str, force: Force) -> Result<K, kube::Error>
where
    K: Resource + Clone + Debug + Serialize + DeserializeOwned,
    K::DynamicType: Default,
{
    let name = object.meta().name.clone().unwrap_or_default();
    let kind = ApiResource::erase::<K>(&K::DynamicType::default());
    let body = intent(object, &kind).map_err(kube::Error::SerdeError)?;
    api.patch(&name, &params(manager, force), &Patch::Apply(body)).await
}

impl<'a, O> Set<'a, O>
where
    O: Resource,
    O::DynamicType: Default,
{
    /// An empty set; to apply it prunes all children of the owner. `manager` is the name of the controller.
    pub fn of(owner: &'a O, manager: &'a str) -> Result<Set<'a, O>, Error> {
        let owner_kind = ApiResource::erase::<O>(&O::DynamicType::default());
        let reference = owner::reference(owner)?;
        if owner.meta().deletion_timestamp.is_some() {
            return Err(Error::OwnerDeleting { owner: reference.name });
        }
        Ok(Set { owner, owner_kind, reference, manager, adopts: false, children: Vec::new() })
    }

    /// Adopts objects that have the name of a child and no controller; otherwise they are an error.
    /// ```
    /// use k8s_openapi::api::core::v1::{ConfigMap, Secret};
    /// use operator::apply::{Force, Set};
    ///
    /// testkit::run(|cluster| async move {
    ///     cluster.apply("{apiVersion: v1, kind: ConfigMap, metadata: {name: web}}").await;
    ///     // Made by hand, before there was an operator.
    ///     cluster.apply("{apiVersion: v1, kind: Secret, metadata: {name: key}}").await;
    ///     let owner: ConfigMap = cluster.get("default", "web").await;
    ///     let mut key = Secret::default();
    ///     key.metadata.name = Some("key".into());
    ///     let mut set = Set::of(&owner, "keys").unwrap().adopting();
    ///     set.add(key).unwrap();
    ///     set.apply(&cluster.client(), Force::No).await.unwrap();
    ///     let key: Secret = cluster.get("default", "key").await;
    ///     assert!(operator::owner::is_controlled_by(&key, &owner));
    /// });
    /// ```
    pub fn adopting(mut self) -> Self {
        self.adopts = true;
        self
    }

    /// Adds a child, and makes the owner its controller.
    pub fn add<C>(&mut self, child: C) -> Result<&mut Self, Error>
    where
        C: Resource + Serialize,
        C::DynamicType: Default,
        C::Scope: 'static,
    {
        self.add_with(&ApiResource::erase::<C>(&C::DynamicType::default()), child)
    }

    /// [`Set::add`] for a child of a kind that is known only when the program runs.
    pub fn add_dynamic(&mut self, kind: &ApiResource, child: DynamicObject) -> Result<&mut Self, Error> {
        self.add_with(kind, child)
    }

    fn add_with<C>(&mut self, kind: &ApiResource, mut child: C) -> Result<&mut Self, Error>
    where
        C: Resource + Serialize,
        C::Scope: 'static,
    {
        owner::control(self.owner, &mut child)?;
        let Some(name) = child.meta().name.clone() else {
            return Err(Error::Nameless { kind: kind.kind.clone() });
        };
        let labels = child.meta_mut().labels.get_or_insert_default();
        labels.insert(SET_LABEL.into(), label(self.manager, &self.reference.uid));
        let body = intent(&child, kind).map_err(|source| Error::Kube {
            kind: kind.kind.clone(),
            name: name.clone(),
            source: kube::Error::SerdeError(source),
        })?;
        let namespace = child.meta().namespace.clone();
        let new = Child { kind: MemberKind::of(kind), kind_name: kind.kind.clone(), namespace, name, body };
        if self.children.iter().any(|child| child.address() == new.address()) {
            return Err(Error::Twice { kind: new.kind_name, name: new.name });
        }
        self.children.push(new);
        Ok(self)
    }

    /// Applies all children, then prunes the owner's other children of this manager.
    ///
    /// With the manager's client, what is cached is read from the cache, and only what differs is written: a
    /// set that is as it should be costs no request.
    ///
    /// An object that another owner controls is never taken over: that is
    /// [`OwnerError::Controlled`], whatever `force` says. Nothing is pruned before all children are applied.
    pub async fn apply(mut self, client: &Client, force: Force) -> Result<Applied, Error> {
        self.children.sort_by(|one, other| one.order().cmp(&other.order()));
        let wanted: BTreeSet<MemberKind> = self.children.iter().map(|child| child.kind.clone()).collect();
        let recorded = recorded(self.owner.meta(), self.manager);
        let known = prune::union(&wanted, &recorded);
        self.record(client, &recorded, &known).await?;

        let mut children = Vec::with_capacity(self.children.len());
        for child in &self.children {
            children.push(self.apply_child(client, child, force).await?);
        }

        let scope = self.owner.meta().namespace.as_deref();
        let set = label(self.manager, &self.reference.uid);
        let keep = children.iter().filter_map(|child| child.metadata.uid.clone()).collect();
        let pruning = prune::run(client, &known, scope, &set, &self.reference.uid, &keep).await;
        let pruned = pruning.map_err(|source| self.failed(source))?;

        let left = prune::union(&wanted, &pruned.unfinished);
        self.record(client, &known, &left).await?;
        Ok(Applied { children, pruned })
    }

    async fn apply_child(
        &self,
        client: &Client,
        child: &Child,
        force: Force,
    ) -> Result<DynamicObject, Error> {
        let api = prune::api(client, &child.kind.resource(), child.namespace.as_deref());
        let present = client::metadata(client, api.resource_url(), &child.name, CachedRead::Always).await;
        let present = present.map_err(|source| child.failed(source))?;
        let body = match &present {
            Some(present) => self.body_over(client, child, present).await?,
            None => Cow::Borrowed(&child.body),
        };
        let request = kube::core::Request::new(api.resource_url());
        let request = request.patch(&child.name, &params(self.manager, force), &Patch::Apply(&body));
        let mut request = request.map_err(|error| child.failed(kube::Error::BuildRequest(error)))?;
        if present.is_none() {
            request.extensions_mut().insert(OnlyIfAbsent);
        }
        client.request(request).await.map_err(|source| child.failed(source))
    }

    /// What to apply over an object that is there, if the owner controls or may adopt it.
    async fn body_over<'c>(
        &self,
        client: &Client,
        child: &'c Child,
        present: &PartialObjectMeta<DynamicObject>,
    ) -> Result<Cow<'c, Value>, Error> {
        match owner::controller_of(present) {
            Some(controller) if controller.uid == self.reference.uid => Ok(Cow::Borrowed(&child.body)),
            Some(controller) if self.may_exist(client, controller).await? => {
                Err(OwnerError::controlled(present, controller).into())
            }
            // The owner that the child had is deleted, and the garbage collector has not seen it yet.
            Some(_) => Ok(Cow::Borrowed(&child.body)),
            None if self.adopts => {
                let mut body = child.body.clone();
                // A conflict if another owner adopts it at the same time.
                body["metadata"]["resourceVersion"] = json!(present.metadata.resource_version);
                Ok(Cow::Owned(body))
            }
            None => Err(OwnerError::Uncontrolled { child: child.name.clone() }.into()),
        }
    }

    /// Whether another owner exists, as far as is known: an owner of another kind cannot be read.
    async fn may_exist(&self, client: &Client, other: &OwnerReference) -> Result<bool, Error> {
        if (&other.kind, &other.api_version) != (&self.reference.kind, &self.reference.api_version) {
            return Ok(true);
        }
        let owners = prune::api(client, &self.owner_kind, self.owner.meta().namespace.as_deref());
        let live = client::metadata(client, owners.resource_url(), &other.name, CachedRead::Always).await;
        let live = live.map_err(|source| self.failed(source))?;
        Ok(live.is_some_and(|live| live.metadata.uid.as_ref() == Some(&other.uid)))
    }

    /// Records the kinds of which the set may have objects, if they have changed.
    async fn record(
        &self,
        client: &Client,
        before: &BTreeSet<MemberKind>,
        after: &BTreeSet<MemberKind>,
    ) -> Result<(), Error> {
        if before == after {
            return Ok(());
        }
        let key = annotation(self.manager);
        let operations = record(self.owner.meta(), &key, before, after);
        let patch = serde_json::from_value(operations).expect("operations are a JSON patch");
        let api = prune::api(client, &self.owner_kind, self.owner.meta().namespace.as_deref());
        match api.patch(&self.reference.name, &PatchParams::default(), &Patch::<()>::Json(patch)).await {
            Ok(_) => Ok(()),
            Err(error) if retry::is_invalid(&error) => Err(self.failed(stale())),
            Err(source) => Err(self.failed(source)),
        }
    }

    fn failed(&self, source: kube::Error) -> Error {
        Error::Kube { kind: self.owner_kind.kind.clone(), name: self.reference.name.clone(), source }
    }
}

impl Child {
    fn address(&self) -> (&MemberKind, Option<&str>, &str) {
        (&self.kind, self.namespace.as_deref(), &self.name)
    }

    fn order(&self) -> (usize, &MemberKind, Option<&str>, &str) {
        (self.kind.rank(), &self.kind, self.namespace.as_deref(), &self.name)
    }

    fn failed(&self, source: kube::Error) -> Error {
        Error::Kube { kind: self.kind_name.clone(), name: self.name.clone(), source }
    }
}

/// The object without the fields that the server sets.
fn intent(object: &impl Serialize, kind: &ApiResource) -> Result<Value, serde_json::Error> {
    let mut body = serde_json::to_value(object)?;
    body["apiVersion"] = json!(kind.api_version);
    body["kind"] = json!(kind.kind);
    if let Some(metadata) = body.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.retain(|field, _| !SERVER_WRITTEN.contains(&field.as_str()));
    }
    if let Some(fields) = body.as_object_mut() {
        // The status is written through its subresource.
        fields.remove("status");
    }
    Ok(body)
}

/// A patch whose test fails is refused as invalid, but here it means a conflict.
fn stale() -> kube::Error {
    let status = Status::failure("the record of kinds is not as it was read", "Conflict");
    kube::Error::Api(status.with_code(409).boxed())
}

fn params(manager: &str, force: Force) -> PatchParams {
    PatchParams { force: force == Force::Yes, ..PatchParams::apply(manager) }
}

fn label(manager: &str, uid: &str) -> String {
    name::child(manager, uid)
}

fn annotation(manager: &str) -> String {
    format!("{DOMAIN}/{}", name::child(manager, "children"))
}

fn recorded(owner: &ObjectMeta, manager: &str) -> BTreeSet<MemberKind> {
    let text = owner.annotations.as_ref().and_then(|all| all.get(&annotation(manager)));
    text.map(|text| prune::read(text)).unwrap_or_default()
}

/// Tests that the record has not changed since it was read: another process may have added a kind.
fn record(
    owner: &ObjectMeta,
    key: &str,
    before: &BTreeSet<MemberKind>,
    after: &BTreeSet<MemberKind>,
) -> Value {
    let path = format!("/metadata/annotations/{}", key.replace('~', "~0").replace('/', "~1"));
    let uid = json!({ "op": "test", "path": "/metadata/uid", "value": owner.uid });
    let present = (!before.is_empty()).then(|| prune::write(before));
    if owner.annotations.is_none() && present.is_none() {
        return json!([
            uid,
            { "op": "test", "path": "/metadata/annotations", "value": null },
            { "op": "add", "path": "/metadata/annotations", "value": { (key): prune::write(after) } },
        ]);
    }
    let change = match after.is_empty() {
        true => json!({ "op": "remove", "path": path }),
        false => json!({ "op": "add", "path": path, "value": prune::write(after) }),
    };
    json!([uid, { "op": "test", "path": path, "value": present }, change])
}

#[cfg(test)]
mod tests;
