//! Adoption: an `ApplicationNamespace` becomes the controller of a namespace that may have existed before.
//!
//! Garbage collection deletes what an owner controls when the owner is deleted. So the spec says whether the
//! namespace is released or deleted then, and releasing it is the default.

use k8s_openapi::{api::core::v1::Namespace, apimachinery::pkg::apis::meta::v1::Condition};
use kube::{
    CustomResource, ResourceExt,
    api::{ListParams, PostParams},
    core::Selector,
};
use operator::{
    Context, Controller, Failure, Key, Next,
    adopt::Adoption,
    all,
    cache::View,
    condition::{self, Report},
    finalizer::{self, Lifecycle},
    owner, predicate, status,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::time::Duration;

pub const FINALIZER: &str = "application-namespace.example.com/release";
const BY_NAMESPACE: &str = "namespace";

/// A namespace of an application, with an owner.
#[derive(CustomResource, Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "example.com",
    version = "v1",
    kind = "ApplicationNamespace",
    status = "ApplicationNamespaceStatus"
)]
#[kube(printcolumn = r#"{"name":"Namespace","type":"string","jsonPath":".spec.namespaceName"}"#)]
#[serde(rename_all = "camelCase")]
pub struct ApplicationNamespaceSpec {
    /// The namespace to make or to adopt.
    #[schemars(length(min = 1, max = 63))]
    pub namespace_name: String,
    /// What becomes of the namespace when this object goes.
    #[serde(default)]
    pub on_delete: OnDelete,
}

/// What becomes of an adopted namespace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum OnDelete {
    /// It stays, with all that is in it.
    #[default]
    Release,
    /// It goes, with all that is in it.
    Delete,
}

/// What is known about it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ApplicationNamespaceStatus {
    /// The generation of the object that this speaks of.
    pub observed_generation: Option<i64>,
    #[serde(default)]
    #[schemars(schema_with = "operator::condition::schema")]
    pub conditions: Vec<Condition>,
}

/// Who controls the namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ownership {
    Missing,
    Deleting,
    Mine,
    Orphan,
    /// Another controller, with its kind and name.
    Taken(String),
}

pub fn controller() -> Controller {
    let counts = predicate::generation() | predicate::deletion();
    Controller::new("application-namespace", all::<ApplicationNamespace>().when(counts))
        .index(BY_NAMESPACE, |application| vec![application.spec.namespace_name.clone()])
        .owns(all::<Namespace>())
        .watches_through(all::<Namespace>(), applications_of)
        .applies::<Namespace>()
        .reconcile((), reconcile)
}

/// The applications that name this namespace, whether they control it or not.
fn applications_of(applications: &View<ApplicationNamespace>, namespace: &Namespace) -> Vec<Key> {
    let found = applications.indexed(BY_NAMESPACE, &namespace.name_any()).unwrap_or_default();
    found.iter().map(|application| Key::of(application.as_ref())).collect()
}

async fn reconcile(context: Context<()>, key: Key) -> Result<Next, Failure> {
    let Some(application) = context.get::<ApplicationNamespace>(&key)? else { return Ok(Next::Settled) };
    let applications = context.cluster::<ApplicationNamespace>();
    let application = ApplicationNamespace::clone(&application);
    finalizer::guard(&applications, application, FINALIZER, async |application| match application {
        Lifecycle::Live(application) => adopt(&context, &application).await,
        Lifecycle::Deleting(application) => release(&context, &application).await,
    })
    .await
}

async fn adopt(context: &Context<()>, application: &ApplicationNamespace) -> Result<Next, Failure> {
    let namespaces = context.cluster::<Namespace>();
    // Read from the server: an adoption must not depend on a cache that may be behind.
    let candidates = namespaces.list(&ListParams::default()).await?.items;
    let (owners, selector) = (context.cluster(), wanted(&application.spec.namespace_name));
    let adoption =
        Adoption { owner: application, owners: &owners, children: &namespaces, selector: &selector };
    adoption.claim(candidates).await?;
    let name = Key::new(None, &application.spec.namespace_name);
    let mut ownership = ownership(application, context.get::<Namespace>(&name)?.as_deref());
    if ownership == Ownership::Missing {
        let mut namespace = Namespace::default();
        namespace.metadata.name = Some(application.spec.namespace_name.clone());
        owner::control(application, &mut namespace)?;
        namespaces.create(&PostParams::default(), &namespace).await?;
        ownership = Ownership::Mine;
    }
    let mut status = application.status.clone().unwrap_or_default();
    condition::set(&mut status.conditions, report(&ownership).of(application), context.wall());
    status.observed_generation = application.metadata.generation;
    status::set(&context.cluster(), application, &status).await?;
    Ok(match ownership {
        Ownership::Deleting => Next::WaitFor("the namespace of that name to be gone"),
        Ownership::Taken(_) => Next::WaitFor("the namespace to be let go by its controller"),
        // It has changed just now, and perhaps there is no further change to wait for.
        Ownership::Orphan => Next::CheckAfter(Duration::from_secs(1)),
        Ownership::Missing | Ownership::Mine => Next::Settled,
    })
}

async fn release(context: &Context<()>, application: &ApplicationNamespace) -> Result<Next, Failure> {
    if application.spec.on_delete == OnDelete::Release {
        let (owners, namespaces) = (context.cluster(), context.cluster::<Namespace>());
        let selector = wanted(&application.spec.namespace_name);
        let adoption =
            Adoption { owner: application, owners: &owners, children: &namespaces, selector: &selector };
        adoption.release(namespaces.list(&ListParams::default()).await?.items).await?;
    }
    Ok(Next::Settled)
}

/// Every namespace has its name as a label: this selector matches no other.
fn wanted(name: &str) -> Selector {
    Selector::from_iter([("kubernetes.io/metadata.name".to_owned(), name.to_owned())])
}

pub fn ownership(application: &ApplicationNamespace, namespace: Option<&Namespace>) -> Ownership {
    let Some(namespace) = namespace else { return Ownership::Missing };
    match owner::controller_of(namespace) {
        _ if namespace.metadata.deletion_timestamp.is_some() => Ownership::Deleting,
        Some(_) if owner::is_controlled_by(namespace, application) => Ownership::Mine,
        Some(other) => Ownership::Taken(format!("{} {}", other.kind, other.name)),
        None => Ownership::Orphan,
    }
}

fn report(ownership: &Ownership) -> Report {
    match ownership {
        Ownership::Mine => {
            Report::new("Adopted", true, "InCharge", "the namespace is controlled by this object")
        }
        Ownership::Taken(other) => {
            Report::new("Adopted", false, "Taken", format!("it is controlled by {other}"))
        }
        Ownership::Deleting => {
            Report::new("Adopted", false, "Leaving", "a namespace of that name is on its way out")
        }
        Ownership::Missing | Ownership::Orphan => Report::new("Adopted", false, "Pending", "not adopted yet"),
    }
}
