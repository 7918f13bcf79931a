//! PodResizeValidator: rejects a resize beyond the node's capacity.

use super::{Operation, Review, pod_resources};
use crate::{lookup, refusal::Refusal};
use api::{go, object, quantity::Quantity, status::Cause};
use serde_json::Value;

pub(super) async fn check(review: &Review<'_>) -> Result<(), Refusal> {
    let name = review.object["spec"]["nodeName"].as_str().unwrap_or_default();
    let is_resize = review.operation == Operation::Update && review.is_on_sub("", "pods", "resize");
    let is_changed =
        review.old.is_some_and(|old| object::generation(old) != object::generation(&review.object));
    if !is_resize || !is_changed || name.is_empty() {
        return Ok(());
    }
    let node = lookup::object(&review.call.inner, ("", "v1", "nodes"), "", name).await?;
    let quoted = go::quote(name);
    let node = node.ok_or_else(|| review.forbidden(format!("node {quoted} not found")))?;
    let system = object::label(&node, "kubernetes.io/os").unwrap_or("linux");
    if system != "linux" {
        let system = go::quote(system);
        let text = format!("pod resize is only supported on linux nodes, node {quoted} is {system}");
        return Err(refusal(review, text, "UnsupportedPlatform"));
    }
    let lacking = lacking(&review.object, &node);
    if lacking.is_empty() {
        return Ok(());
    }
    let text = format!("node didn't have enough allocatable resources: {}", lacking.join("; "));
    Err(refusal(review, text, "NodeCapacity"))
}

/// Resources that the pod requests and its node lacks.
fn lacking(pod: &Value, node: &Value) -> Vec<String> {
    let mut requests = pod_resources::of_pod(pod, "requests");
    pod_resources::add(&mut requests, &pod_resources::amounts(&pod["spec"], "overhead"));
    let allocatable = pod_resources::amounts(&node["status"], "allocatable");
    type Shown = fn(&Quantity) -> Option<i64>;
    let sorts: [(&str, Shown); 2] = [("cpu", Quantity::milli_value), ("memory", Quantity::value)];
    let mut lacking = Vec::new();
    for (name, shown) in sorts {
        let requested = requests.get(name).cloned().unwrap_or_default();
        let there = allocatable.get(name).cloned().unwrap_or_default();
        if requested > there {
            let number = |amount| shown(amount).unwrap_or(i64::MAX);
            lacking.push(format!(
                "{name}, requested: {}, allocatable: {}",
                number(&requested),
                number(&there)
            ));
        }
    }
    lacking
}

fn refusal(review: &Review<'_>, text: String, reason: &'static str) -> Refusal {
    review.forbidden(text).with_cause(Cause::new(reason, ""))
}
