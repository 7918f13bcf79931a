//! PodTopologyLabels: copies zone and region from the node to a pod when it is bound.

use super::{Operation, Review};
use crate::{lookup, refusal::Refusal};
use api::object;

const LABELS: [&str; 2] = ["topology.kubernetes.io/zone", "topology.kubernetes.io/region"];

pub(super) async fn fill(review: &mut Review<'_>) -> Result<(), Refusal> {
    if review.operation != Operation::Create {
        return Ok(());
    }
    let place = if review.is_on("", "pods") {
        &review.object["spec"]["nodeName"]
    } else if review.is_on_sub("", "pods", "binding") && review.object["target"]["kind"] == "Node" {
        &review.object["target"]["name"]
    } else {
        return Ok(());
    };
    let Some(name) = place.as_str().filter(|name| !name.is_empty()) else { return Ok(()) };
    let Some(node) = lookup::object(&review.call.inner, ("", "v1", "nodes"), "", name).await? else {
        return Ok(());
    };
    for label in LABELS {
        if let Some(value) = object::label(&node, label) {
            review.object["metadata"]["labels"][label] = value.into();
        }
    }
    Ok(())
}
