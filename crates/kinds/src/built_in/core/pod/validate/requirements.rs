//! Requests and limits of a container, or of a pod as a whole.

use api::field::{Error, ErrorList, Path};
use api::name::Format;

use super::super::resources;
use crate::validate::at::At;
use crate::validate::resource_names as names;
use crate::validate::taken::Taken;

type NameCheck = fn(&Path<'_>, &str) -> ErrorList;

pub(super) fn of_container(resources: &At<'_, '_>, claims: &[&str], errors: &mut ErrorList) {
    check(resources, names::check_for_container, claims, errors);
}

pub(super) fn of_pod(spec: &At<'_, '_>, claims: &[&str], errors: &mut ErrorList) {
    let resources = spec.field("resources");
    if !resources.is_set() {
        return;
    }
    if spec.field("os").text_of("name") == "windows" {
        resources.forbidden(errors, "may not be set for a windows pod");
        return;
    }
    if resources.has("claims") {
        resources.field("claims").forbidden(errors, "claims may not be set for Resources at pod-level");
    }
    check(&resources, names::check_for_pod, claims, errors);
    covers_containers(spec, "requests", |_| true, errors);
    // Kubernetes: no container may use more huge pages than it asks for, so that limits of them add up as requests do.
    covers_containers(spec, "limits", names::is_huge_pages, errors);
    let (pod_limits, containers) = (resources.field("limits"), spec.field("containers"));
    for (index, container) in containers.items().enumerate() {
        let limits = container.field("resources");
        let limits = limits.field("limits");
        for (name, limit) in limits.entries() {
            let whole = pod_limits.field(name);
            let (Some(limit), Some(whole)) = (limit.quantity(), whole.quantity()) else { continue };
            if limit > whole {
                // Kubernetes: the path is put together in this order.
                let path = resources.path().child("containers");
                let path = path.index(index);
                let problem = format!("must be less than or equal to pod limits of {whole}");
                errors.push(Error::invalid(&path.key(name).child("limits"), limit.to_string(), problem));
            }
        }
    }
}

/// Of `requests` or `limits`, what the pod says of a resource must be enough for its containers together.
fn covers_containers(spec: &At<'_, '_>, what: &str, counts: fn(&str) -> bool, errors: &mut ErrorList) {
    let Some(members) = spec.value().as_object() else { return };
    let whole = spec.field("resources");
    let whole = whole.field(what);
    for (name, together) in resources::of_containers(members, what).iter().filter(|(name, _)| counts(name)) {
        let Some((_, whole)) = whole.entries().find(|(key, _)| key == name) else { continue };
        let Some(amount) = whole.quantity().filter(|amount| amount < together) else { continue };
        let problem = format!("must be greater than or equal to aggregate container {what} of {together}");
        whole.invalid_as(errors, amount.to_string(), problem);
    }
}

/// Of what a pod takes on top of its containers.
pub(crate) fn overhead(overhead: &At<'_, '_>, errors: &mut ErrorList) {
    for (name, amount) in At::new(overhead.value(), overhead.path().child("limits")).entries() {
        amounts(name, &amount, names::check_for_container, errors);
    }
}

fn amounts(name: &str, amount: &At<'_, '_>, name_check: NameCheck, errors: &mut ErrorList) {
    errors.extend(name_check(amount.path(), name));
    let Some(quantity) = amount.quantity() else { return };
    errors.extend(names::check_amount(amount.path(), name, &quantity));
}

fn check(resources: &At<'_, '_>, name_check: NameCheck, claims: &[&str], errors: &mut ErrorList) {
    let (limits, requests) = (resources.field("limits"), resources.field("requests"));
    for (name, limit) in limits.entries() {
        amounts(name, &limit, name_check, errors);
        huge_pages(name, &limit, errors);
    }
    for (name, request) in requests.entries() {
        amounts(name, &request, name_check, errors);
        within_limit(name, &request, &limits, &requests, errors);
        huge_pages(name, &request, errors);
    }
    let named =
        |wanted: fn(&str) -> bool| limits.entries().chain(requests.entries()).any(|(name, _)| wanted(name));
    if named(names::is_huge_pages) && !named(|name| matches!(name, "cpu" | "memory")) {
        resources.forbidden(errors, "HugePages require cpu or memory");
    }
    claim_names(&resources.field("claims"), claims, errors);
}

fn huge_pages(name: &str, amount: &At<'_, '_>, errors: &mut ErrorList) {
    let problem = amount.quantity().and_then(|quantity| names::huge_page_problem(name, &quantity));
    if let Some(problem) = problem {
        amount.invalid_text(errors, problem);
    }
}

/// Kubernetes: the error names the list of requests, not the one.
fn within_limit(
    name: &str,
    request: &At<'_, '_>,
    limits: &At<'_, '_>,
    requests: &At<'_, '_>,
    errors: &mut ErrorList,
) {
    let Some(wanted) = request.quantity() else { return };
    match limits.field(name).quantity() {
        Some(limit) if wanted != limit && !names::may_overcommit(name) => {
            let problem = format!("must be equal to {name} limit of {limit}");
            requests.invalid_as(errors, wanted.to_string(), problem);
        }
        Some(limit) if wanted > limit => {
            let problem = format!("must be less than or equal to {name} limit of {limit}");
            requests.invalid_as(errors, wanted.to_string(), problem);
        }
        None if !names::may_overcommit(name) => {
            limits.required(errors, "Limit must be set for non overcommitable resources");
        }
        _ => {}
    }
}

fn claim_names(claims: &At<'_, '_>, known: &[&str], errors: &mut ErrorList) {
    // Claims by their names, each with whether it was asked for as a whole, and the single requests of claims.
    let (mut names, mut wholes, mut parts) = (Taken::default(), Taken::default(), Taken::default());
    let known_names: Taken<&str> = known.iter().copied().collect();
    for claim in claims.items() {
        let (name, request) = (claim.text_of("name"), claim.text_of("request"));
        if name.is_empty() {
            claim.required(errors, "");
            continue;
        }
        let key = if request.is_empty() { name.to_owned() } else { format!("{name}/{request}") };
        if !request.is_empty() {
            claim.field("request").is_format(errors, Format::Dns1123Label);
        }
        let is_taken = wholes.contains(name)
            || if request.is_empty() { names.contains(name) } else { parts.contains(&key) };
        if is_taken {
            errors.push(Error::duplicate(claim.path(), key.as_str()));
        }
        names.push(name);
        if request.is_empty() {
            wholes.push(name);
        } else {
            parts.push(key);
        }
        if !known_names.contains(name) {
            let mut missing = Error::not_found(claim.path(), name);
            let listed = if known.is_empty() {
                " which is empty".to_owned()
            } else {
                format!(": {}", known.join(", "))
            };
            missing.detail = format!("must be one of the names in pod.spec.resourceClaims{listed}");
            errors.push(missing);
        }
    }
}
