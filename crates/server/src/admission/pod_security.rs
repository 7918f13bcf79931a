//! PodSecurity: enforces the standard in a namespace's labels for pods, and warns about workloads that
//! would create others.

mod checks;
mod policy;

use super::{Operation, Review};
use crate::{lookup, refusal::Refusal};
use api::object;
use checks::{Pod, Violation};
use policy::{NamespacePolicy, SecurityLevel, Standard};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Kubernetes: a changed namespace label is checked against at most this many pods.
const MAX_PODS: usize = 3000;

/// Resources with a pod template, and its path in `spec`.
pub(crate) const POD_TEMPLATES: [(&str, &str, &str); 8] = [
    ("", "podtemplates", "/template"),
    ("", "replicationcontrollers", "/spec/template"),
    ("apps", "daemonsets", "/spec/template"),
    ("apps", "deployments", "/spec/template"),
    ("apps", "replicasets", "/spec/template"),
    ("apps", "statefulsets", "/spec/template"),
    ("batch", "cronjobs", "/spec/jobTemplate/spec/template"),
    ("batch", "jobs", "/spec/template"),
];

/// Subresources that do not change what runs in a pod.
const UNCHECKED_SUBRESOURCES: [&str; 8] =
    ["exec", "attach", "binding", "eviction", "log", "portforward", "proxy", "status"];

// Kubernetes: keys of audit annotations.
const ENFORCED: &str = "pod-security.kubernetes.io/enforce-policy";
const VIOLATIONS: &str = "pod-security.kubernetes.io/audit-violations";

pub(super) async fn check(review: &Review<'_>) -> Result<(), Refusal> {
    let (served, subresource) = (&review.call.served, review.call.target.subresource.as_str());
    if review.operation == Operation::Delete {
        return Ok(());
    }
    if served.is("", "pods") {
        let is_changed = review.old.is_none_or(|old| is_significant(&review.object, old));
        return match !UNCHECKED_SUBRESOURCES.contains(&subresource) && is_changed {
            true => check_pod(review).await,
            false => Ok(()),
        };
    }
    if !subresource.is_empty() {
        return Ok(());
    }
    if served.is("", "namespaces") {
        return check_namespace(review).await;
    }
    let template = POD_TEMPLATES.iter().find(|(group, resource, _)| served.is(group, resource));
    match template.and_then(|(.., place)| review.object.pointer(place)) {
        Some(template) => warn_of(review, template).await,
        None => Ok(()),
    }
}

fn pod(object: &Value) -> Pod<'_> {
    Pod { metadata: &object["metadata"], spec: &object["spec"] }
}

async fn policy(review: &Review<'_>) -> Result<NamespacePolicy, Refusal> {
    let name = review.namespace();
    let namespace = lookup::object(&review.call.inner, ("", "v1", "namespaces"), "", name).await?;
    let quoted = api::go::quote(name);
    let missing = || Refusal::internal_error(format!("failed to lookup namespace {quoted}"));
    Ok(NamespacePolicy::of(&namespace.ok_or_else(missing)?).0)
}

async fn check_pod(review: &Review<'_>) -> Result<(), Refusal> {
    let policy = policy(review).await?;
    review.call.trail.note(ENFORCED, || policy.enforce.to_string());
    if policy.is_privileged() {
        return Ok(());
    }
    note_violations(review, policy.audit, pod(&review.object));
    let violations = checks::violations(policy.enforce, pod(&review.object));
    if !violations.is_empty() {
        let (standard, details) = (policy.enforce, checks::details(&violations));
        return Err(review.forbidden(format!("violates PodSecurity \"{standard}\": {details}")));
    }
    warn(review, policy.warn, &checks::violations(policy.warn, pod(&review.object)));
    Ok(())
}

/// Pods are rejected at their own creation; the writer of a template is warned now.
async fn warn_of(review: &Review<'_>, template: &Value) -> Result<(), Refusal> {
    let policy = policy(review).await?;
    if template.is_object() {
        note_violations(review, policy.audit, pod(template));
    }
    if policy.warn.level != SecurityLevel::Privileged && template.is_object() {
        warn(review, policy.warn, &checks::violations(policy.warn, pod(template)));
    }
    Ok(())
}

/// Adds the violations of the audit standard to the audit event.
fn note_violations(review: &Review<'_>, standard: Standard, pod: Pod<'_>) {
    let trail = &review.call.trail;
    if !trail.is_kept() || standard.level == SecurityLevel::Privileged {
        return;
    }
    let violations = checks::violations(standard, pod);
    if !violations.is_empty() {
        let details = checks::details(&violations);
        trail.note(VIOLATIONS, || format!("would violate PodSecurity \"{standard}\": {details}"));
    }
}

fn warn(review: &Review<'_>, standard: Standard, violations: &[Violation]) {
    if !violations.is_empty() {
        let details = checks::details(violations);
        review.call.warn(format!("would violate PodSecurity \"{standard}\": {details}"));
    }
}

/// Kubernetes: of the checked fields only images are mutable, so other updates are skipped.
fn is_significant(pod: &Value, old: &Value) -> bool {
    let list = |of: &Value, field: &str| of["spec"][field].as_array().cloned().unwrap_or_default();
    let same_places = ["containers", "initContainers"].iter().all(|field| {
        let (new, old) = (list(pod, field), list(old, field));
        new.len() == old.len() && new.iter().zip(&old).all(|(new, old)| new["image"] == old["image"])
    });
    let known = list(old, "ephemeralContainers");
    let same_guests = list(pod, "ephemeralContainers").iter().all(|new| {
        let old = known.iter().find(|old| old["name"] == new["name"]);
        old.is_some_and(|old| old["image"] == new["image"])
    });
    !(same_places && same_guests)
}

async fn check_namespace(review: &Review<'_>) -> Result<(), Refusal> {
    let (new, errors) = NamespacePolicy::of(&review.object);
    let before = review.old.map(NamespacePolicy::of);
    let invalid = |errors| Refusal::invalid(&review.call.served.group_kind(), review.name(), &errors);
    if let Err(errors) = errors.into_result() {
        let known = before.as_ref().map(|(_, errors)| errors.to_string());
        if known != Some(errors.to_string()) {
            return Err(invalid(errors));
        }
    }
    let Some((old, _)) = before else { return Ok(()) };
    let is_no_stricter = new.enforce.version == old.enforce.version && new.enforce.level <= old.enforce.level;
    if new.enforce.level != SecurityLevel::Privileged && !is_no_stricter {
        warn_of_pods(review, new.enforce).await?;
    }
    Ok(())
}

/// Warns about pods of a namespace that violate its new standard.
async fn warn_of_pods(review: &Review<'_>, standard: Standard) -> Result<(), Refusal> {
    let name = review.name();
    let pods = lookup::objects(&review.call.inner, ("", "v1", "pods"), name).await?;
    let total = pods.len();
    let mut found: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for one in in_order(&pods).into_iter().take(MAX_PODS) {
        let violations = checks::violations(standard, pod(one));
        if !violations.is_empty() {
            found.entry(checks::reasons(&violations)).or_default().push(object::name(one));
        }
    }
    if total > MAX_PODS {
        review.call.warn(format!(
            "new PodSecurity enforce level only checked against the first {MAX_PODS} of {total} existing pods"
        ));
    }
    if !found.is_empty() {
        let namespace = api::go::quote(name);
        review.call.warn(format!(
            "existing pods in namespace {namespace} violate the new PodSecurity enforce level \"{standard}\""
        ));
    }
    let mut warnings: Vec<_> = found
        .iter()
        .filter_map(|(reasons, names)| {
            let first = names.iter().min()?;
            Some(match names.len() {
                1 => format!("{first}: {reasons}"),
                2 => format!("{first} (and 1 other pod): {reasons}"),
                count => format!("{first} (and {} other pods): {reasons}", count - 1),
            })
        })
        .collect();
    warnings.sort();
    warnings.into_iter().for_each(|warning| review.call.warn(warning));
    Ok(())
}

/// One pod of each controller first: the others are likely the same.
fn in_order(pods: &[Value]) -> Vec<&Value> {
    let mut seen = BTreeSet::new();
    let (first, others): (Vec<_>, Vec<_>) = pods.iter().partition(|pod| {
        let controller = object::controller(pod).and_then(|owner| owner["uid"].as_str());
        controller.is_none_or(|uid| seen.insert(uid.to_owned()))
    });
    first.into_iter().chain(others).collect()
}
