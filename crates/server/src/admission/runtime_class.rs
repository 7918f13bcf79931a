//! RuntimeClass: sets a pod's overhead, nodeSelector and tolerations from its class.

use super::{Operation, Review};
use crate::{lookup, refusal::Refusal};
use api::name::Format;
use serde_json::Value;

pub(super) async fn fill(review: &mut Review<'_>) -> Result<(), Refusal> {
    let Some(class) = class_of(review).await? else { return Ok(()) };
    if let Some(overhead) = class["overhead"].get("podFixed") {
        let said = &review.object["spec"]["overhead"];
        if said.as_object().is_some_and(|said| !said.is_empty()) && said != overhead {
            return Err(mismatch(review));
        }
        review.object["spec"]["overhead"] = overhead.clone();
    }
    for (key, value) in class["scheduling"]["nodeSelector"].as_object().into_iter().flatten() {
        let said = &review.object["spec"]["nodeSelector"][key];
        if !said.is_null() && said != value {
            let (theirs, said) = (value.as_str().unwrap_or_default(), said.as_str().unwrap_or_default());
            return Err(review.forbidden(format!(
                "conflict: runtimeClass.scheduling.nodeSelector[{key}] = {theirs}; pod.spec.nodeSelector[{key}] = {said}"
            )));
        }
        review.object["spec"]["nodeSelector"][key] = value.clone();
    }
    if let Some(more) = class["scheduling"]["tolerations"].as_array() {
        let mut tolerations = review.object["spec"]["tolerations"].as_array().cloned().unwrap_or_default();
        let fresh: Vec<_> = more.iter().filter(|it| !tolerations.contains(it)).cloned().collect();
        tolerations.extend(fresh);
        review.object["spec"]["tolerations"] = tolerations.into();
    }
    Ok(())
}

pub(super) async fn check(review: &Review<'_>) -> Result<(), Refusal> {
    if review.operation != Operation::Create || !review.is_on("", "pods") {
        return Ok(());
    }
    let class = class_of(review).await?;
    let expected = class.as_ref().and_then(|class| class["overhead"].get("podFixed"));
    match (expected, review.object["spec"].get("overhead")) {
        (Some(expected), said) if said != Some(expected) => Err(mismatch(review)),
        (None, Some(_)) => Err(review
            .forbidden("pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead")),
        _ => Ok(()),
    }
}

fn mismatch(review: &Review<'_>) -> Refusal {
    review.forbidden("pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead")
}

/// The class that a new pod names.
async fn class_of(review: &Review<'_>) -> Result<Option<Value>, Refusal> {
    let name = review.object["spec"]["runtimeClassName"].as_str();
    let Some(name) = name.filter(|_| review.operation == Operation::Create && review.is_on("", "pods"))
    else {
        return Ok(None);
    };
    // Kubernetes: its client refuses names that no path can hold.
    let problems = Format::PathSegment.problems(name);
    if !problems.is_empty() {
        let (name, problems) = (api::go::quote(name), problems.join(" "));
        return Err(Refusal::unclassified(format!("invalid resource name {name}: [{problems}]")));
    }
    let found = lookup::object(&review.call.inner, ("node.k8s.io", "v1", "runtimeclasses"), "", name).await?;
    let missing =
        || review.forbidden(format!("pod rejected: RuntimeClass {} not found", api::go::quote(name)));
    found.map(Some).ok_or_else(missing)
}
