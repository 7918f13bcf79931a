//! NamespaceLifecycle: rejects creates in missing or terminating namespaces, and deletes of the three
//! system namespaces.

use super::{Operation, Review};
use crate::{lookup, refusal::Refusal};
use api::{kind::GroupResource, status::Cause};

// Kubernetes: these namespaces cannot be deleted.
const UNDELETABLE: [&str; 3] = ["default", "kube-system", "kube-public"];

pub(super) async fn check(review: &Review<'_>) -> Result<(), Refusal> {
    match review.operation {
        Operation::Delete if review.is_on("", "namespaces") && UNDELETABLE.contains(&review.name()) => {
            Err(review.forbidden("this namespace may not be deleted"))
        }
        Operation::Create => {
            check_definition(review)?;
            check_namespace(review).await
        }
        _ => Ok(()),
    }
}

/// Kubernetes: creates of a terminating definition's objects are rejected, too.
fn check_definition(review: &Review<'_>) -> Result<(), Refusal> {
    match review.call.served.custom() {
        Some(custom) if custom.definition.state.terminating => {
            Err(review.forbidden("create not allowed while custom resource definition is terminating"))
        }
        _ => Ok(()),
    }
}

async fn check_namespace(review: &Review<'_>) -> Result<(), Refusal> {
    let (inner, name) = (&review.call.inner, review.namespace());
    if name.is_empty() {
        return Ok(());
    }
    let namespace = lookup::stored(inner, ("", "v1", "namespaces"), "", name).await?;
    let missing = || Refusal::not_found(&GroupResource::new("", "namespaces"), name);
    if !namespace.ok_or_else(missing)?.is_deleting() {
        return Ok(());
    }
    let cause = format!("unable to create new content in namespace {name} because it is being terminated");
    let terminating = Cause::new("NamespaceTerminating", format!("namespace {name} is being terminated"));
    Err(review.forbidden(cause).with_cause(terminating.at("metadata.namespace")))
}
