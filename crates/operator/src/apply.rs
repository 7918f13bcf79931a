//! Objects as they should be in, server-side apply out: one object, or all children of an owner.
//!
//! A set of children is applied in an order that lets each find what it needs, and then what the set
//! no longer holds is pruned. Which kinds a set ever held is kept in an annotation on its owner,
//! written before the first object of a kind is, so that no crash and no new version of the program
//! forgets a kind that vanished from the set.

use crate::{
    name, owner,
    prune::{self, Kind, Pruned},
    retry,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::{
    Api, Client, Resource,
    api::{Patch, PatchParams},
    core::{ApiResource, DynamicObject, ObjectMeta, Status},
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};
use std::{collections::BTreeSet, fmt::Debug};

/// Every child carries this label, with a value that is its own for each owner and manager.
pub const SET_LABEL: &str = "setpoint.dev/set";
/// The annotation on the owner lives under this domain and is named for the manager.
const DOMAIN: &str = "setpoint.dev";

/// What the server writes: to apply it would claim it, or be refused.
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

/// Whether to take fields from another manager that also set them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Force {
    /// A field that another manager set to something else is a conflict.
    No,
    /// What this controller says goes. Right for fields that are its own by design.
    Yes,
}

/// Why a set was not applied.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Owner(#[from] owner::Refused),
    #[error("owner {owner:?} is being deleted: what is made for it now may outlive it")]
    OwnerLeaving { owner: String },
    #[error("a {kind} of the set has no name")]
    Nameless { kind: String },
    #[error("{kind} {name:?} is in the set twice")]
    Twice { kind: String, name: String },
    #[error("{kind} {name:?} was not written")]
    Kube {
        kind: String,
        name: String,
        #[source]
        source: kube::Error,
    },
}

/// The children that an owner should have, of any kinds.
///
/// ```no_run
/// # use k8s_openapi::api::core::v1::{ConfigMap, Service};
/// # use operator::apply::{self, Force, Set};
/// # async fn example(client: kube::Client, web: ConfigMap, config: ConfigMap, service: Service) -> Result<(), apply::Error> {
/// let mut set = Set::of(&web, "web.example.com")?;
/// set.add(config)?;
/// set.add(service)?;
/// set.apply(&client, Force::Yes).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Set<'a, O: Resource> {
    owner: &'a O,
    owner_kind: ApiResource,
    reference: OwnerReference,
    manager: &'a str,
    children: Vec<Child>,
}

#[derive(Debug)]
struct Child {
    kind: Kind,
    kind_name: String,
    namespace: Option<String>,
    name: String,
    body: Value,
}

/// What [`Set::apply`] did.
#[derive(Debug)]
pub struct Applied {
    /// The children as they are now, in the order they were applied.
    pub children: Vec<DynamicObject>,
    pub pruned: Pruned,
}

/// Applies one object. `manager` must stay the same for ever: the name of the controller.
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
    /// An empty set, which prunes all that the owner had. `manager` is the name of the controller.
    pub fn of(owner: &'a O, manager: &'a str) -> Result<Set<'a, O>, Error> {
        let owner_kind = ApiResource::erase::<O>(&O::DynamicType::default());
        let reference = owner::reference(owner)?;
        if owner.meta().deletion_timestamp.is_some() {
            return Err(Error::OwnerLeaving { owner: reference.name });
        }
        Ok(Set { owner, owner_kind, reference, manager, children: Vec::new() })
    }

    /// Puts a child into the set, controlled by the owner.
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
        let new = Child { kind: Kind::of(kind), kind_name: kind.kind.clone(), namespace, name, body };
        if self.children.iter().any(|child| child.address() == new.address()) {
            return Err(Error::Twice { kind: new.kind_name, name: new.name });
        }
        self.children.push(new);
        Ok(self)
    }

    /// Applies all children, then prunes what the owner had of this manager and is not among them.
    ///
    /// Nothing is pruned before everything is applied.
    pub async fn apply(mut self, client: &Client, force: Force) -> Result<Applied, Error> {
        self.children.sort_by(|one, other| one.order().cmp(&other.order()));
        let wanted: BTreeSet<Kind> = self.children.iter().map(|child| child.kind.clone()).collect();
        let recorded = recorded(self.owner.meta(), self.manager);
        let known = prune::union(&wanted, &recorded);
        self.record(client, &recorded, &known).await?;

        let mut children = Vec::with_capacity(self.children.len());
        for child in &self.children {
            let done = child.send(client, self.manager, force).await;
            children.push(done.map_err(|source| child.failed(source))?);
        }

        let scope = self.owner.meta().namespace.as_deref();
        let selector = format!("{SET_LABEL}={}", label(self.manager, &self.reference.uid));
        let keep = children.iter().filter_map(|child| child.metadata.uid.clone()).collect();
        let pruning = prune::run(client, &known, scope, &selector, &self.reference.uid, &keep).await;
        let pruned = pruning.map_err(|source| self.failed(source))?;

        let left = prune::union(&wanted, &pruned.unfinished);
        self.record(client, &known, &left).await?;
        Ok(Applied { children, pruned })
    }

    /// Writes down which kinds the set may have objects of, if that is not what is written.
    async fn record(
        &self,
        client: &Client,
        before: &BTreeSet<Kind>,
        after: &BTreeSet<Kind>,
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
    fn address(&self) -> (&Kind, Option<&str>, &str) {
        (&self.kind, self.namespace.as_deref(), &self.name)
    }

    fn order(&self) -> (usize, &Kind, Option<&str>, &str) {
        (self.kind.rank(), &self.kind, self.namespace.as_deref(), &self.name)
    }

    async fn send(&self, client: &Client, manager: &str, force: Force) -> Result<DynamicObject, kube::Error> {
        let api = prune::api(client, &self.kind.resource(), self.namespace.as_deref());
        api.patch(&self.name, &params(manager, force), &Patch::Apply(&self.body)).await
    }

    fn failed(&self, source: kube::Error) -> Error {
        Error::Kube { kind: self.kind_name.clone(), name: self.name.clone(), source }
    }
}

/// What the controller wants of the object, without what only the server says.
fn intent(object: &impl Serialize, kind: &ApiResource) -> Result<Value, serde_json::Error> {
    let mut body = serde_json::to_value(object)?;
    body["apiVersion"] = json!(kind.api_version);
    body["kind"] = json!(kind.kind);
    if let Some(metadata) = body.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.retain(|field, _| !SERVER_WRITTEN.contains(&field.as_str()));
    }
    if let Some(fields) = body.as_object_mut() {
        // It is written through its own door, where there is one.
        fields.remove("status");
    }
    Ok(body)
}

/// A test of a patch that does not hold is answered as a broken rule, but it is a conflict.
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

fn recorded(owner: &ObjectMeta, manager: &str) -> BTreeSet<Kind> {
    let text = owner.annotations.as_ref().and_then(|all| all.get(&annotation(manager)));
    text.map(|text| prune::read(text)).unwrap_or_default()
}

/// Tests that the record is as it was read, lest a kind that another process added is lost.
fn record(owner: &ObjectMeta, key: &str, before: &BTreeSet<Kind>, after: &BTreeSet<Kind>) -> Value {
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
