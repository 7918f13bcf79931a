//! What else has a say in a write: built-in rules, policies and webhooks, in the order of the real server.
//!
//! A rule is a file. [`mutate`] and [`validate`] are the lists that it stands in: the first before an object is
//! prepared and checked, the second after. A rule finds out for itself whether a write is its business.

mod claim_resize;
mod default_class;
mod default_toleration_seconds;
mod namespace_lifecycle;
mod node_taint;
mod object_protection;
mod priority;
mod runtime_class;

use crate::verbs::Call;
use api::{kind::GroupResource, object, status::Status};
use serde_json::Value;

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
    pub(crate) fn forbidden(&self, reason: impl std::fmt::Display) -> Status {
        Status::forbidden(&self.resource(), self.name(), reason.to_string())
    }
}

/// Changes the object before it is prepared and checked.
pub(crate) async fn mutate(review: &mut Review<'_>) -> Result<(), Status> {
    namespace_lifecycle::check(review).await?; // nothing new where the namespace is not there or going
    node_taint::fill(review); // a new node is not ready
    priority::fill(review).await?; // how important a pod is
    default_toleration_seconds::fill(review); // how long a pod stays on a node that is lost
    default_class::fill(review).await?; // of claims and ingresses
    object_protection::fill(review); // data goes when nobody uses it
    runtime_class::fill(review).await?; // what a pod's runtime adds
    Ok(())
}

/// A delete, of which both say what they have to say.
pub(crate) async fn delete(call: &Call, old: &Value) -> Result<(), Status> {
    let mut review = Review::delete(call, old);
    mutate(&mut review).await?;
    validate(&review).await
}

/// The last word before the commit: nothing changes any more.
pub(crate) async fn validate(review: &Review<'_>) -> Result<(), Status> {
    namespace_lifecycle::check(review).await?;
    priority::check(review).await?;
    claim_resize::check(review).await?;
    runtime_class::check(review).await?;
    Ok(())
}
