//! Facts about pods that many loops decide by: whether a pod is active, ready, available.

pub(crate) mod deletion_order;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::{
    api::core::v1::{Pod, PodCondition, PodTemplateSpec},
    apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference},
};
use operator::cache::{Undecodable, View};
use std::{sync::Arc, time::Duration};

/// Whether it runs or will run: neither finished nor being deleted.
pub(crate) fn is_active(pod: &Pod) -> bool {
    !is_finished(pod) && !is_terminating(pod)
}

/// Whether its containers have ended for good.
pub(crate) fn is_finished(pod: &Pod) -> bool {
    matches!(phase(pod), "Succeeded" | "Failed")
}

/// Whether it is being deleted and has not finished yet.
pub(crate) fn is_terminating(pod: &Pod) -> bool {
    !is_finished(pod) && pod.metadata.deletion_timestamp.is_some()
}

pub(crate) fn phase(pod: &Pod) -> &str {
    pod.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or_default()
}

pub(crate) fn node_name(pod: &Pod) -> &str {
    pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref()).unwrap_or_default()
}

/// The pods that are bound to a node.
pub(crate) fn on_node(pods: &View<Pod>, node: &str) -> Result<Vec<Arc<Pod>>, Undecodable> {
    pods.index(BY_NODE, |pod| match node_name(pod) {
        "" => Vec::new(),
        node => vec![node.to_owned()],
    });
    pods.indexed(BY_NODE, node)
}

/// The index of pods by their node.
const BY_NODE: &str = "node";

pub(crate) fn condition<'a>(pod: &'a Pod, condition_type: &str) -> Option<&'a PodCondition> {
    let conditions = pod.status.as_ref()?.conditions.as_deref()?;
    conditions.iter().find(|condition| condition.type_ == condition_type)
}

pub(crate) fn is_ready(pod: &Pod) -> bool {
    condition(pod, "Ready").is_some_and(|ready| ready.status == "True")
}

/// Since when it is ready.
pub(crate) fn ready_since(pod: &Pod) -> Option<Timestamp> {
    condition(pod, "Ready")
        .filter(|ready| ready.status == "True")?
        .last_transition_time
        .as_ref()
        .map(|time| time.0)
}

/// Whether it has been ready for `min_ready_seconds`.
pub(crate) fn is_available(pod: &Pod, min_ready_seconds: i32, now: Timestamp) -> bool {
    is_ready(pod) && available_after(pod, min_ready_seconds, now).is_some_and(|left| left.is_zero())
}

/// How long until a ready pod is available; `None` if it is not ready.
pub(crate) fn available_after(pod: &Pod, min_ready_seconds: i32, now: Timestamp) -> Option<Duration> {
    if min_ready_seconds <= 0 {
        return is_ready(pod).then_some(Duration::ZERO);
    }
    let at = ready_since(pod)? + SignedDuration::from_secs(min_ready_seconds.into());
    Some(Duration::try_from(at.duration_since(now)).unwrap_or(Duration::ZERO))
}

/// How long until the next of the pods becomes available, if one waits for that.
pub(crate) fn next_available<'a>(
    pods: impl IntoIterator<Item = &'a Pod>,
    min_ready_seconds: i32,
    now: Timestamp,
) -> Option<Duration> {
    let waits = pods.into_iter().filter_map(|pod| available_after(pod, min_ready_seconds, now));
    waits.filter(|wait| !wait.is_zero()).min()
}

/// A new pod of a template, with the name left to the server.
pub(crate) fn from_template(template: &PodTemplateSpec, owner_name: &str, owner: OwnerReference) -> Pod {
    let template_meta = template.metadata.clone().unwrap_or_default();
    let metadata = ObjectMeta {
        labels: template_meta.labels,
        annotations: template_meta.annotations,
        finalizers: template_meta.finalizers,
        generate_name: Some(generate_name(owner_name)),
        owner_references: Some(vec![owner]),
        ..ObjectMeta::default()
    };
    Pod { metadata, spec: template.spec.clone(), status: None }
}

/// Whether a create was refused because the namespace is being deleted.
pub(crate) fn is_namespace_terminating(error: &kube::Error) -> bool {
    let kube::Error::Api(status) = error else { return false };
    let causes = status.details.as_ref().map(|details| details.causes.as_slice()).unwrap_or_default();
    causes.iter().any(|cause| cause.reason == "NamespaceTerminating")
}

/// The text of an error as the server has put it: what events and conditions of Kubernetes show.
pub(crate) fn message(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) => status.message.clone(),
        other => other.to_string(),
    }
}

/// Kubernetes: a dash after the owner's name, unless the name is too long or ends with something invalid.
fn generate_name(owner: &str) -> String {
    let prefix = format!("{owner}-");
    // The server cuts longer prefixes: five random letters follow, and a name has 253 at most.
    if prefix.len() <= MAX_NAME { prefix } else { owner.to_owned() }
}

const MAX_NAME: usize = 253;

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn pod(status: serde_json::Value) -> Pod {
        serde_json::from_value(json!({"metadata": {"name": "web"}, "status": status})).unwrap()
    }

    #[test]
    fn a_pod_is_available_after_it_was_ready_for_long_enough() {
        let now: Timestamp = "2026-01-01T00:01:00Z".parse().unwrap();
        let ready = |status: &str| {
            pod(json!({"conditions": [
                {"type": "Ready", "status": status, "lastTransitionTime": "2026-01-01T00:00:40Z"}]}))
        };
        for (pod, min_ready_seconds, left) in [
            (ready("True"), 0, Some(0)),
            (ready("True"), 20, Some(0)),
            (ready("True"), 30, Some(10)),
            (ready("False"), 0, None),
            (ready("False"), 10, None),
            (pod(json!({})), 0, None),
        ] {
            let left = left.map(Duration::from_secs);
            assert_eq!(available_after(&pod, min_ready_seconds, now), left, "{min_ready_seconds}");
            assert_eq!(is_available(&pod, min_ready_seconds, now), left == Some(Duration::ZERO));
        }
    }
}
