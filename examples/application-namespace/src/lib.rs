//! Adoption: an `ApplicationNamespace` takes charge of a namespace that may have been there before.
//!
//! Adopting means becoming the controller: when the owner goes, garbage collection takes what it
//! owns with it. So whether the namespace is let go or goes along is said in the spec, and letting
//! it go is the default.

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
    finalizer::{self, Life},
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

/// How a namespace stands to the object that wants it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    Missing,
    Leaving,
    Mine,
    Orphan,
    /// Of somebody else, who is named.
    Taken(String),
}

pub fn controller() -> Controller {
    let counts = predicate::generation() | predicate::deletion();
    Controller::new("application-namespace", all::<ApplicationNamespace>().when(counts))
        .index(BY_NAMESPACE, |application| vec![application.spec.namespace_name.clone()])
        .owns(all::<Namespace>())
        .watches_through(all::<Namespace>(), who_wants)
        .applies::<Namespace>()
        .reconcile((), reconcile)
}

/// The applications that name a namespace, even if it has no owner yet.
fn who_wants(applications: &View<ApplicationNamespace>, namespace: &Namespace) -> Vec<Key> {
    let found = applications.indexed(BY_NAMESPACE, &namespace.name_any()).unwrap_or_default();
    found.iter().map(|application| Key::of(application.as_ref())).collect()
}

async fn reconcile(context: Context<()>, key: Key) -> Result<Next, Failure> {
    let Some(application) = context.get::<ApplicationNamespace>(&key)? else { return Ok(Next::Settled) };
    let applications = context.cluster::<ApplicationNamespace>();
    let application = ApplicationNamespace::clone(&application);
    finalizer::guard(&applications, application, FINALIZER, async |life| match life {
        Life::Live(application) => take_charge(&context, &application).await,
        Life::Leaving(application) => let_go(&context, &application).await,
    })
    .await
}

async fn take_charge(context: &Context<()>, application: &ApplicationNamespace) -> Result<Next, Failure> {
    let namespaces = context.cluster::<Namespace>();
    // Read live: an adoption must not rest on what a cache believes.
    let candidates = namespaces.list(&ListParams::default()).await?.items;
    let (owners, selector) = (context.cluster(), wanted(&application.spec.namespace_name));
    let adoption =
        Adoption { owner: application, owners: &owners, children: &namespaces, selector: &selector };
    adoption.claim(candidates).await?;
    let name = Key::new(None, &application.spec.namespace_name);
    let mut standing = standing(application, context.get::<Namespace>(&name)?.as_deref());
    if standing == Standing::Missing {
        let mut namespace = Namespace::default();
        namespace.metadata.name = Some(application.spec.namespace_name.clone());
        owner::control(application, &mut namespace)?;
        namespaces.create(&PostParams::default(), &namespace).await?;
        standing = Standing::Mine;
    }
    let mut status = application.status.clone().unwrap_or_default();
    condition::set(&mut status.conditions, report(&standing).of(application), context.wall());
    status.observed_generation = application.metadata.generation;
    status::set(&context.cluster(), application, &status).await?;
    Ok(match standing {
        Standing::Leaving => Next::WaitFor("the namespace of that name to be gone"),
        Standing::Taken(_) => Next::WaitFor("the namespace to be let go by its controller"),
        // Somebody changed it just now, and nothing says that he will again.
        Standing::Orphan => Next::CheckAfter(Duration::from_secs(1)),
        Standing::Missing | Standing::Mine => Next::Settled,
    })
}

async fn let_go(context: &Context<()>, application: &ApplicationNamespace) -> Result<Next, Failure> {
    if application.spec.on_delete == OnDelete::Release {
        let (owners, namespaces) = (context.cluster(), context.cluster::<Namespace>());
        let selector = wanted(&application.spec.namespace_name);
        let adoption =
            Adoption { owner: application, owners: &owners, children: &namespaces, selector: &selector };
        adoption.release(namespaces.list(&ListParams::default()).await?.items).await?;
    }
    Ok(Next::Settled)
}

/// Every namespace carries its name as a label: the selector can match no other.
fn wanted(name: &str) -> Selector {
    Selector::from_iter([("kubernetes.io/metadata.name".to_owned(), name.to_owned())])
}

pub fn standing(application: &ApplicationNamespace, namespace: Option<&Namespace>) -> Standing {
    let Some(namespace) = namespace else { return Standing::Missing };
    match owner::controller_of(namespace) {
        _ if namespace.metadata.deletion_timestamp.is_some() => Standing::Leaving,
        Some(_) if owner::is_controlled_by(namespace, application) => Standing::Mine,
        Some(other) => Standing::Taken(format!("{} {}", other.kind, other.name)),
        None => Standing::Orphan,
    }
}

fn report(standing: &Standing) -> Report {
    match standing {
        Standing::Mine => {
            Report::new("Adopted", true, "InCharge", "the namespace is controlled by this object")
        }
        Standing::Taken(other) => {
            Report::new("Adopted", false, "Taken", format!("it is controlled by {other}"))
        }
        Standing::Leaving => {
            Report::new("Adopted", false, "Leaving", "a namespace of that name is on its way out")
        }
        Standing::Missing | Standing::Orphan => Report::new("Adopted", false, "Pending", "not adopted yet"),
    }
}
