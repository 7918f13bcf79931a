//! What else has a say in a write: built-in rules, policies and webhooks, in the order of the real server.
//!
//! A rule is a file. [`mutate`] and [`validate`] are the lists that it stands in: the first before an object is
//! prepared and checked, the second after. A rule finds out for itself whether a write is its business.

mod authority;
mod certificate;
mod claim_resize;
mod configured;
mod default_class;
mod default_toleration_seconds;
mod evaluation;
mod facts;
mod limit_ranger;
mod matching;
mod namespace_lifecycle;
mod node_restriction;
mod node_taint;
mod object_protection;
mod owner_references;
mod pod_resize;
mod pod_resources;
mod pod_security;
mod pod_topology_labels;
mod policy;
mod priority;
mod reinvocation;
pub(crate) mod resource_quota;
mod runtime_class;
mod service_account;
mod webhook;

pub(crate) use configured::Configured;
pub(crate) use policy::status as policy_status;

use crate::{call::Call, refusal::Refusal};
use api::{kind::GroupResource, object};
use reinvocation::Reinvocation;
use serde_json::Value;

// Kubernetes: what a server says that does not know all webhooks and policies.
const NOT_READY: &str = "not yet ready to handle request";

/// A write on its way through.
#[derive(Debug)]
pub(crate) struct Review<'a> {
    pub(crate) call: &'a Call,
    pub(crate) operation: Operation,
    /// What is to be: defaulted, in the version of the request. Null when deleting.
    pub(crate) object: Value,
    /// What is.
    pub(crate) old: Option<&'a Value>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    Create,
    Update,
    Delete,
}

impl Operation {
    /// As rules and messages write it.
    pub(crate) fn text(self) -> &'static str {
        match self {
            Operation::Create => "CREATE",
            Operation::Update => "UPDATE",
            Operation::Delete => "DELETE",
        }
    }
}

impl<'a> Review<'a> {
    pub(crate) fn create(call: &'a Call, object: Value) -> Review<'a> {
        Review { call, operation: Operation::Create, object, old: None }
    }

    pub(crate) fn update(call: &'a Call, object: Value, old: &'a Value) -> Review<'a> {
        Review { call, operation: Operation::Update, object, old: Some(old) }
    }

    pub(crate) fn delete(call: &'a Call, old: &'a Value) -> Review<'a> {
        Review { call, operation: Operation::Delete, object: Value::Null, old: Some(old) }
    }

    /// Whether it is about this resource itself.
    pub(crate) fn is_on(&self, group: &str, resource: &str) -> bool {
        self.call.served.is(group, resource) && self.call.target.subresource.is_empty()
    }

    /// Whether it is about this subresource of the resource.
    pub(crate) fn is_on_sub(&self, group: &str, resource: &str, subresource: &str) -> bool {
        self.call.served.is(group, resource) && self.call.target.subresource == subresource
    }

    pub(crate) fn namespace(&self) -> &str {
        &self.call.target.namespace
    }

    /// What the object is called; empty where a name is still to be generated.
    pub(crate) fn name(&self) -> &str {
        match self.call.target.name.as_str() {
            "" => object::name(&self.object),
            name => name,
        }
    }

    pub(crate) fn resource(&self) -> GroupResource {
        self.call.resource()
    }

    /// 403, with the real server's frame around the reason.
    pub(crate) fn forbidden(&self, reason: impl std::fmt::Display) -> Refusal {
        // Kubernetes: names are generated after the mutating plugins have run.
        let names = [self.name(), object::generate_name(&self.object)];
        let name = names.into_iter().find(|name| !name.is_empty()).unwrap_or("Unknown");
        Refusal::forbidden(&self.resource(), name, reason.to_string())
    }
}

/// Changes the object before it is prepared and checked.
pub(crate) async fn mutate(review: &mut Review<'_>) -> Result<(), Refusal> {
    let mut rounds = Reinvocation::default();
    mutate_once(review, &mut rounds).await?;
    if rounds.is_wanted {
        rounds.begin_second();
        mutate_once(review, &mut rounds).await?;
    }
    Ok(())
}

async fn mutate_once(review: &mut Review<'_>, rounds: &mut Reinvocation) -> Result<(), Refusal> {
    namespace_lifecycle::check(review).await?; // nothing new where the namespace is not there or going
    limit_ranger::fill(review).await?; // what containers ask for by default
    service_account::fill(review).await?; // as whom a pod runs
    node_restriction::check(review).await?; // kubelets keep to what is theirs
    node_taint::fill(review); // a new node is not ready
    priority::fill(review).await?; // how important a pod is
    default_toleration_seconds::fill(review); // how long a pod stays on a node that is lost
    default_class::fill(review).await?; // of claims and ingresses
    object_protection::fill(review); // data goes when nobody uses it
    runtime_class::fill(review).await?; // what a pod's runtime adds
    pod_topology_labels::fill(review).await?; // where its node is
    policy::mutate(review, rounds).await?; // what expressions want
    webhook::mutate(review, rounds).await?; // what programs elsewhere want
    Ok(())
}

/// A request about an object that is no object itself: an eviction, a binding. What comes back is what was made of it,
/// if it makes sense.
pub(crate) async fn subresource(
    call: &Call,
    request: Value,
    check: impl Fn(&Value) -> Result<(), Refusal>,
) -> Result<Value, Refusal> {
    let mut review = Review::create(call, request);
    mutate(&mut review).await?;
    check(&review.object)?;
    validate(&review).await?;
    Ok(review.object)
}

/// A question that is kept nowhere: only programs elsewhere have a say. What comes back is what they made of it.
pub(crate) async fn question(call: &Call, asked: Value) -> Result<Value, Refusal> {
    let mut review = Review::create(call, asked);
    webhook::mutate(&mut review, &mut Reinvocation::default()).await?;
    webhook::validate(&review).await?;
    Ok(review.object)
}

/// A delete, of which both say what they have to say.
pub(crate) async fn delete(call: &Call, old: &Value) -> Result<(), Refusal> {
    let mut review = Review::delete(call, old);
    mutate(&mut review).await?;
    validate(&review).await
}

/// The last word before the commit: nothing changes any more. Quotas come last, within the commit.
pub(crate) async fn validate(review: &Review<'_>) -> Result<(), Refusal> {
    limit_ranger::check(review).await?;
    service_account::check(review).await?;
    pod_security::check(review).await?;
    priority::check(review).await?;
    owner_references::check(review).await?;
    claim_resize::check(review).await?;
    runtime_class::check(review).await?;
    certificate::check(review).await?;
    pod_resize::check(review).await?;
    policy::validate(review).await?;
    webhook::validate(review).await?;
    Ok(())
}
