//! Deployments, stateful and daemon sets, jobs and replication controllers: what hangs on their other fields.

use serde_json::json;

use super::member::{self, Members};

const ROLLING_UPDATE: &str = "RollingUpdate";

pub(super) fn deployment(deployment: &mut Members) {
    let strategy = member::made(member::made(deployment, "spec"), "strategy");
    member::default_to(strategy, "type", ROLLING_UPDATE);
    if member::text(strategy, "type") == ROLLING_UPDATE {
        let rolling = member::made(strategy, "rollingUpdate");
        member::default_to(rolling, "maxUnavailable", "25%");
        member::default_to(rolling, "maxSurge", "25%");
    }
}

/// Kubernetes: the generation of the template is a field of its internal type, and an annotation outside.
pub(crate) const TEMPLATE_GENERATION: &str = "deprecated.daemonset.template.generation";

pub(super) fn daemon_set(set: &mut Members) {
    let annotations = member::made(member::made(set, "metadata"), "annotations");
    annotations.entry(TEMPLATE_GENERATION).or_insert_with(|| "0".into());
    let strategy = member::made(member::made(set, "spec"), "updateStrategy");
    member::default_to(strategy, "type", ROLLING_UPDATE);
    if member::text(strategy, "type") == ROLLING_UPDATE {
        let rolling = member::made(strategy, "rollingUpdate");
        member::default_to(rolling, "maxUnavailable", 1);
        member::default_to(rolling, "maxSurge", 0);
    }
}

pub(super) fn stateful_set(set: &mut Members) {
    let spec = member::made(set, "spec");
    // Kubernetes: unlike templates of pods, these say what they are.
    for claim in member::items_mut(spec, "volumeClaimTemplates") {
        claim.insert("apiVersion".to_owned(), "v1".into());
        claim.insert("kind".to_owned(), "PersistentVolumeClaim".into());
    }
    let strategy = member::made(spec, "updateStrategy");
    if !member::is_set(strategy, "type") {
        strategy.insert("type".to_owned(), ROLLING_UPDATE.into());
        member::made(strategy, "rollingUpdate");
    }
    if member::text(strategy, "type") == ROLLING_UPDATE
        && let Some(rolling) = member::present(strategy, "rollingUpdate")
    {
        member::default_to(rolling, "partition", 0);
    }
}

pub(super) fn job(job: &mut Members) {
    let spec = member::made(job, "spec");
    if !member::is_set(spec, "completions") && !member::is_set(spec, "parallelism") {
        spec.insert("completions".to_owned(), json!(1));
    }
    let tries = if member::is_set(spec, "backoffLimitPerIndex") { i32::MAX } else { 6 };
    member::default_to(spec, "backoffLimit", tries);
    let replace = if spec.contains_key("podFailurePolicy") { "Failed" } else { "TerminatingOrFailed" };
    // Kubernetes: an empty one was said, and is refused.
    spec.entry("podReplacementPolicy").or_insert_with(|| replace.into());
    label_like_template(job);
}

pub(super) fn replication_controller(controller: &mut Members) {
    if let Some(labels) = template_labels(controller) {
        member::default_to(member::made(controller, "spec"), "selector", labels);
        label_like_template(controller);
    }
}

pub(crate) fn label_like_template(object: &mut Members) {
    if let Some(labels) = template_labels(object) {
        member::default_to(member::made(object, "metadata"), "labels", labels);
    }
}

fn template_labels(object: &Members) -> Option<Members> {
    let template = member::object(member::object(object, "spec")?, "template")?;
    member::object(member::object(template, "metadata")?, "labels")
        .filter(|labels| !labels.is_empty())
        .cloned()
}
