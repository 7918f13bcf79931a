//! LimitRanger: default requests and limits of containers, and their minimum and maximum.

use super::{
    Operation, Review,
    pod_resources::{self, Amounts},
};
use crate::{lookup, refusal::Refusal};
use api::{object, quantity::Quantity};
use serde_json::{Value, json};

// Kubernetes: the annotation that lists the defaults it has set.
const ANNOTATION: &str = "kubernetes.io/limit-ranger";

pub(super) async fn fill(review: &mut Review<'_>) -> Result<(), Refusal> {
    if !review.is_on("", "pods") || review.operation != Operation::Create {
        return Ok(());
    }
    for range in ranges(review).await? {
        let (limits, requests) = (defaults(&range, "default"), defaults(&range, "defaultRequest"));
        let mut set_defaults = Vec::new();
        for (field, what) in [("containers", "container"), ("initContainers", "init container")] {
            for container in review.object["spec"][field].as_array_mut().into_iter().flatten() {
                let name = container["name"].as_str().unwrap_or_default().to_owned();
                for (which, defaults) in [("requests", &requests), ("limits", &limits)] {
                    let set = set_missing(container, which, defaults);
                    if !set.is_empty() {
                        set_defaults.push(format!(
                            "{} {} for {what} {name}",
                            set.join(", "),
                            &which[..which.len() - 1]
                        ));
                    }
                }
            }
        }
        if !set_defaults.is_empty() {
            let text = format!("LimitRanger plugin set: {}", set_defaults.join("; "));
            review.object["metadata"]["annotations"][ANNOTATION] = text.into();
        }
    }
    Ok(())
}

pub(super) async fn check(review: &Review<'_>) -> Result<(), Refusal> {
    let is_claim = review.is_on("", "persistentvolumeclaims") && review.operation != Operation::Delete;
    let is_pod = (review.is_on("", "pods") && review.operation == Operation::Create)
        || (review.is_on_sub("", "pods", "resize") && review.operation == Operation::Update);
    if !(is_claim || is_pod) || review.old.is_some_and(object::is_deleting) {
        return Ok(());
    }
    for range in ranges(review).await? {
        let mut problems = Vec::new();
        for limit in range["spec"]["limits"].as_array().into_iter().flatten() {
            match limit["type"].as_str().unwrap_or_default() {
                "PersistentVolumeClaim" if is_claim => check_claim(limit, &review.object, &mut problems),
                "Container" if is_pod => {
                    let containers = ["containers", "initContainers"];
                    let all = containers.iter().flat_map(|field| review.object["spec"][field].as_array());
                    for container in all.flatten() {
                        let amounts = |which| pod_resources::amounts(&container["resources"], which);
                        check_limit(limit, &amounts("requests"), &amounts("limits"), &mut problems);
                    }
                }
                "Pod" if is_pod => {
                    let amounts = |which| pod_resources::of_pod(&review.object, which);
                    check_limit(limit, &amounts("requests"), &amounts("limits"), &mut problems);
                }
                _ => {}
            }
        }
        match &problems[..] {
            [] => {}
            [one] => return Err(review.forbidden(one)),
            // Kubernetes: Go's format for several errors.
            several => return Err(review.forbidden(format!("[{}]", several.join(", ")))),
        }
    }
    Ok(())
}

async fn ranges(review: &Review<'_>) -> Result<Vec<Value>, Refusal> {
    lookup::objects(&review.call.inner, ("", "v1", "limitranges"), review.namespace()).await
}

/// The defaults of a LimitRange for containers.
fn defaults(range: &Value, which: &str) -> Vec<(String, Value)> {
    let limits = range["spec"]["limits"].as_array().into_iter().flatten();
    let of_containers = limits.filter(|limit| limit["type"] == "Container");
    let listed = of_containers.flat_map(|limit| limit[which].as_object().into_iter().flatten());
    listed.map(|(name, amount)| (name.clone(), amount.clone())).collect()
}

/// Sets missing values; returns their names.
fn set_missing(container: &mut Value, which: &str, defaults: &[(String, Value)]) -> Vec<String> {
    let mut set = Vec::new();
    for (name, amount) in defaults {
        let own = &mut container["resources"];
        if !own.is_object() {
            *own = json!({});
        }
        if own[which].get(name).is_none() {
            own[which][name] = amount.clone();
            set.push(name.clone());
        }
    }
    set.sort();
    set
}

fn check_claim(limit: &Value, claim: &Value, problems: &mut Vec<String>) {
    let requests = pod_resources::amounts(&claim["spec"]["resources"], "requests");
    for (name, least) in &pod_resources::amounts(limit, "min") {
        problems.extend(too_little("PersistentVolumeClaim", name, least, &requests, &Amounts::new()));
    }
    for (name, most) in &pod_resources::amounts(limit, "max") {
        let frame = format!("maximum {name} usage per PersistentVolumeClaim is {most}");
        match requests.get(name) {
            None => problems.push(format!("{frame}.  No request is specified")),
            Some(request) if request > most => problems.push(format!("{frame}, but request is {request}")),
            Some(_) => {}
        }
    }
}

fn check_limit(limit: &Value, requests: &Amounts, limits: &Amounts, problems: &mut Vec<String>) {
    let sort = limit["type"].as_str().unwrap_or_default();
    for (name, least) in &pod_resources::amounts(limit, "min") {
        problems.extend(too_little(sort, name, least, requests, limits));
    }
    for (name, most) in &pod_resources::amounts(limit, "max") {
        problems.extend(too_much(sort, name, most, requests, limits));
    }
    for (name, ratio) in &pod_resources::amounts(limit, "maxLimitRequestRatio") {
        problems.extend(too_far_apart(sort, name, ratio, requests, limits));
    }
}

fn too_little(
    sort: &str,
    name: &str,
    least: &Quantity,
    requests: &Amounts,
    limits: &Amounts,
) -> Option<String> {
    let frame = format!("minimum {name} usage per {sort} is {least}");
    match (requests.get(name), limits.get(name)) {
        (None, _) => Some(format!("{frame}.  No request is specified")),
        (Some(request), _) if request < least => Some(format!("{frame}, but request is {request}")),
        (_, Some(limit)) if limit < least => Some(format!("{frame}, but limit is {limit}")),
        _ => None,
    }
}

fn too_much(sort: &str, name: &str, most: &Quantity, requests: &Amounts, limits: &Amounts) -> Option<String> {
    let frame = format!("maximum {name} usage per {sort} is {most}");
    match (requests.get(name), limits.get(name)) {
        (_, None) => Some(format!("{frame}.  No limit is specified")),
        (_, Some(limit)) if limit > most => Some(format!("{frame}, but limit is {limit}")),
        (Some(request), _) if request > most => Some(format!("{frame}, but request is {request}")),
        _ => None,
    }
}

fn too_far_apart(
    sort: &str,
    name: &str,
    ratio: &Quantity,
    requests: &Amounts,
    limits: &Amounts,
) -> Option<String> {
    let frame = format!("{name} max limit to request ratio per {sort} is {ratio}");
    let said =
        |amounts: &Amounts| amounts.get(name).map(Quantity::approximate).filter(|amount| *amount != 0.0);
    match (said(requests), said(limits)) {
        (None, _) => Some(format!("{frame}, but no request is specified or request is 0")),
        (_, None) => Some(format!("{frame}, but no limit is specified or limit is 0")),
        (Some(request), Some(limit)) => {
            let found = limit / request;
            (found > ratio.approximate()).then(|| format!("{frame}, but provided ratio is {found:.6}"))
        }
    }
}
