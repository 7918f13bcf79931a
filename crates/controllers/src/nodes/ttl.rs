//! Kubelets of large clusters may keep secrets and ConfigMaps for longer: an annotation of the node says how long.

use k8s_openapi::api::core::v1::Node;
use kube::{
    Resource, ResourceExt,
    api::{Patch, PatchParams},
    core::PartialObjectMeta,
};
use operator::{Context, Controller, Failure, Key, Next, all, retry};
use serde_json::json;

const ANNOTATION: &str = "node.alpha.kubernetes.io/ttl";
/// Kubernetes: with so many nodes (at least, at most) the annotation stays at these seconds.
const STEPS: [(usize, usize, u32); 6] = [
    (0, 100, 0),
    (90, 500, 15),
    (450, 1000, 30),
    (900, 2000, 60),
    (1800, 10_000, 300),
    (9000, usize::MAX, 600),
];

pub(crate) fn controller() -> Controller {
    // Nodes are added one by one: each takes its value when it comes, and the others with their next change.
    Controller::new("ttl-controller", all::<Node>().metadata_only()).reconcile((), reconcile)
}

async fn reconcile(context: Context<()>, key: Key) -> Result<Next, Failure> {
    let nodes = context.view::<PartialObjectMeta<Node>>()?;
    let Some(node) = nodes.get(&key)?.filter(|node| node.meta().deletion_timestamp.is_none()) else {
        return Ok(Next::Settled);
    };
    let present = node.annotations().get(ANNOTATION).and_then(|text| text.parse().ok());
    let wanted = seconds(nodes.len(), present);
    if present != Some(wanted) {
        let patch = Patch::Merge(json!({"metadata": {"annotations": {ANNOTATION: wanted.to_string()}}}));
        match context.cluster::<Node>().patch(key.name(), &PatchParams::default(), &patch).await {
            Err(error) if retry::is_missing(&error) => {}
            result => drop(result?),
        }
    }
    Ok(Next::Settled)
}

/// The ranges of the steps overlap, so that a node more or less does not change them.
fn seconds(nodes: usize, present: Option<u32>) -> u32 {
    let fits = |(least, most, _): &&(usize, usize, u32)| (*least..=*most).contains(&nodes);
    let mut fitting = STEPS.iter().filter(fits).map(|(_, _, seconds)| *seconds);
    let first = fitting.clone().next().unwrap_or_default();
    fitting.find(|seconds| Some(*seconds) == present).unwrap_or(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_rise_with_the_number_of_nodes() {
        for (nodes, present, expected) in [
            (1, None, 0),
            (95, None, 0),
            (95, Some(15), 15),
            (101, Some(0), 15),
            (480, Some(15), 15),
            (480, Some(30), 30),
            (80, Some(15), 0),
            (20_000, None, 600),
        ] {
            assert_eq!(seconds(nodes, present), expected, "{nodes} {present:?}");
        }
    }
}
