//! OwnerReferencesPermissionEnforcement, if enabled: changing an object's owners needs the right to delete
//! the object, and blockOwnerDeletion the right to update the owner's finalizers.

use super::{Operation, Review};
use crate::{
    authorize::{self, Attributes, Decision, OnResource},
    refusal::Refusal,
    served::Served,
};
use api::{go, object};
use serde_json::Value;
use std::collections::HashSet;

pub(super) async fn check(review: &Review<'_>) -> Result<(), Refusal> {
    let owners = |object: &Value| object::owner_references(object).cloned().collect::<Vec<_>>();
    let old = review.old.map(owners).unwrap_or_default();
    let is_exempt = review.operation == Operation::Delete || review.is_on_sub("", "pods", "status");
    if is_exempt || owners(&review.object) == old {
        return Ok(());
    }
    if review.operation == Operation::Update {
        check_deletable(review).await?;
    }
    let is_blocking = |owner: &&Value| owner["blockOwnerDeletion"] == true;
    let before: HashSet<&Value> = old.iter().filter(is_blocking).map(|old| &old["uid"]).collect();
    let was_blocking = |owner: &Value| before.contains(&owner["uid"]);
    let blocked: Vec<_> = object::owner_references(&review.object)
        .filter(is_blocking)
        .filter(|owner| !was_blocking(owner))
        .collect();
    let anything = OnResource {
        verb: "update",
        group: "*",
        resource: "*",
        subresource: "finalizers",
        name: "*",
        ..OnResource::default()
    };
    if blocked.is_empty() || allows(review, anything).await?.is_allowed {
        return Ok(());
    }
    for owner in blocked {
        check_blockable(review, owner).await?;
    }
    Ok(())
}

async fn check_deletable(review: &Review<'_>) -> Result<(), Refusal> {
    let target = &review.call.target;
    let delete = OnResource {
        verb: "delete",
        group: &target.group,
        resource: &target.resource,
        subresource: &target.subresource,
        namespace: &target.namespace,
        name: review.name(),
        fields: None,
    };
    let decision = allows(review, delete).await?;
    if decision.is_allowed {
        return Ok(());
    }
    let why = decision.reason;
    Err(review.forbidden(format!("cannot set an ownerRef on a resource you can't delete: {why}, <nil>")))
}

async fn check_blockable(review: &Review<'_>, owner: &Value) -> Result<(), Refusal> {
    let text = |field: &str| owner[field].as_str().unwrap_or_default();
    let (api_version, kind) = (text("apiVersion"), text("kind"));
    let inner = &review.call.inner;
    let customs = inner.registry.customs(&*inner.store).await?;
    let is_it = |served: &&Served| served.api_version() == api_version && served.resource.kind == kind;
    let Some(served) = inner.registry.kept().find(is_it).or_else(|| customs.all().find(is_it)) else {
        let quoted = (go::quote(kind), go::quote(api_version));
        return Err(review.forbidden(format!(
            "cannot set blockOwnerDeletion in this case because cannot find RESTMapping for APIVersion {api_version} \
             Kind {kind}: no matches for kind {} in version {}",
            quoted.0, quoted.1
        )));
    };
    let finalize = OnResource {
        verb: "update",
        group: &served.resource.group,
        resource: &served.resource.name,
        subresource: "finalizers",
        namespace: if served.is_namespaced() { review.namespace() } else { "" },
        name: text("name"),
        fields: None,
    };
    let decision = allows(review, finalize).await?;
    if decision.is_allowed {
        return Ok(());
    }
    let why = decision.reason;
    Err(review.forbidden(format!(
        "cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set finalizers on: {why}, \
         <nil>"
    )))
}

async fn allows(review: &Review<'_>, wanted: OnResource<'_>) -> Result<Decision, Refusal> {
    let caller = review.call.caller();
    authorize::allows(&review.call.inner, caller, &Attributes::Resource(wanted)).await
}
